"""What a leader checks before it appends a batch: Kafka's rules, in Kafka's order, with Kafka's errors.

The header is enough for almost every batch. The records themselves are read only where a rule is about them: keys on
compacted topics, the oldest timestamp allowed, and a compression type that the topic prescribes. Other
contradictions between a header and its records are not looked for: the producer wrote both, and a checksum over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crc32c import crc32c

from strandline.config import TopicConfig
from strandline.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    RecordError,
    UnsupportedCompressionType,
)
from strandline.model import INT64_MAX, NO_TIMESTAMP
from strandline.records.batch import (
    CODEC_MASK,
    CRC_START,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    TimestampType,
    crc_matches,
    iter_headers,
    read_header,
    stamp_max_timestamp,
)
from strandline.records.builder import build_batch
from strandline.records.codecs import Codec
from strandline.records.record import Record, read_records

HOUR_MS: Final = 3_600_000

# Attributes of ordinary batches: a known codec, transactional or not.
_PLAIN_ATTRIBUTES: Final = frozenset({codec | bit for codec in Codec for bit in (0, 0x10)})
_FIRST_WITH_ZSTD: Final = 7
_SHOWN_ERRORS: Final = 3
_CODECS: Final = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
_TIMESTAMP_TYPES: Final = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """What a topic accepts. The defaults are Kafka's."""

    max_message_bytes: int = 1_048_588
    codec: Codec | None = None  # None: whatever the producer chose
    level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    before_max_ms: int = INT64_MAX
    after_max_ms: int = HOUR_MS
    is_compacted: bool = False
    header_is_enough: bool = field(init=False)

    def __post_init__(self) -> None:
        enough = (
            self.codec is None
            and self.timestamp_type is TimestampType.CREATE_TIME
            and self.before_max_ms >= INT64_MAX
            and not self.is_compacted
        )
        object.__setattr__(self, "header_is_enough", enough)

    @classmethod
    def of(cls, config: TopicConfig) -> BatchLimits:
        """The limits that a topic's settings ask for."""
        codec = _CODECS[config.compression_type]
        levels = {
            Codec.GZIP: None if config.compression_gzip_level == -1 else config.compression_gzip_level,
            Codec.LZ4: config.compression_lz4_level,
            Codec.ZSTD: config.compression_zstd_level,
        }
        return cls(
            max_message_bytes=config.max_message_bytes,
            codec=codec,
            level=None if codec is None else levels.get(codec),
            timestamp_type=_TIMESTAMP_TYPES[config.message_timestamp_type],
            before_max_ms=config.message_timestamp_before_max_ms,
            after_max_ms=config.message_timestamp_after_max_ms,
            is_compacted=config.is_compacted,
        )


class Produced(NamedTuple):
    """A batch that may be appended once its offsets are stamped. The buffer holds this batch and nothing else."""

    buffer: "memoryview"  # noqa: UP037 - mypyc looks a bare name up among those of the module
    header: BatchHeader


def validate_produced(buffer: memoryview, *, limits: BatchLimits, now_ms: int) -> Produced:
    """Check the batch that a client sent for one partition.

    The buffer comes back unless the batch had to be rewritten; LogAppendTime is stamped into it in place. Raises
    CorruptMessage, InvalidRecord, InvalidTimestamp, MessageTooLarge or UnsupportedCompressionType.
    """
    header = ordinary_header(buffer, limits, now_ms)
    if header is not None:
        return Produced(buffer, header)
    return _validate_closely(buffer, limits, now_ms)


def ordinary_header(buffer: memoryview, limits: BatchLimits, now_ms: int) -> BatchHeader | None:
    """The header of a batch that breaks no rule, and whose header alone shows that; None: look closely."""
    size = len(buffer)
    if size < HEADER_SIZE or buffer[MAGIC_POSITION] != CURRENT_MAGIC or not limits.header_is_enough:
        return None
    try:
        header = read_header(buffer)
    except CorruptMessage:
        return None
    # One test for everything that holds in ordinary batches; `_validate_closely` finds out which rule was broken.
    if (
        header.batch_length + LOG_OVERHEAD == size <= limits.max_message_bytes
        and not header.base_offset
        and header.record_count == header.last_offset_delta + 1 > 0
        and header.attributes in _PLAIN_ATTRIBUTES
        and (header.base_sequence >= 0 if header.producer_id >= 0 else header.attributes < TRANSACTIONAL_BIT)
        and header.max_timestamp <= now_ms + limits.after_max_ms
        and crc32c(buffer[CRC_START:]) == header.crc
    ):
        return header
    return None


def ordinary_internal_header(buffer: memoryview, limits: BatchLimits) -> BatchHeader | None:
    """The same for a batch that a coordinator of this broker built, as far as `validate_internal` has rules for it."""
    size = len(buffer)
    if size < HEADER_SIZE or limits.timestamp_type is not TimestampType.CREATE_TIME:
        return None
    header = read_header(buffer)
    if (
        header.magic == CURRENT_MAGIC
        and header.batch_length + LOG_OVERHEAD == size <= limits.max_message_bytes
        and not header.is_control
        and crc32c(buffer[CRC_START:]) == header.crc
    ):
        return header
    return None


def validate_internal(buffer: memoryview, *, limits: BatchLimits, now_ms: int) -> Produced:
    """Check a batch that a coordinator of this broker built: format and size, not the rules for clients.

    Any codec is allowed. Topics with LogAppendTime stamp these batches like all others.
    """
    header = _only_batch(buffer)
    buffer = buffer[: header.size]
    _check_size_and_crc(buffer, header, limits)
    if header.is_control or limits.timestamp_type is TimestampType.CREATE_TIME:
        return Produced(buffer, header)
    return _stamped(buffer, TimestampType.LOG_APPEND_TIME, now_ms)


def _validate_closely(buffer: memoryview, limits: BatchLimits, now_ms: int) -> Produced:
    header = _only_batch(buffer)
    buffer = buffer[: header.size]
    if header.base_offset:
        raise InvalidRecord(f"The base offset of a produced batch has to be 0, but it is {header.base_offset}.")
    _check_size_and_crc(buffer, header, limits)
    codec = header.codec
    _check_header(header)
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise InvalidTimestamp("A producer may not set the timestamp type LogAppendTime.")
    max_timestamp = header.max_timestamp
    target = codec if limits.codec is None else limits.codec
    if _needs_records(header, limits, now_ms) or codec is not target:
        records = read_records(buffer)
        _check_records(records, limits, now_ms)
        if codec is not target or not _offsets_are_dense(records, header):
            return _rewritten(header, records, target, limits, now_ms)
        max_timestamp = max(record.timestamp for record in records)
    if limits.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return _stamped(buffer, TimestampType.LOG_APPEND_TIME, now_ms)
    return _stamped(buffer, TimestampType.CREATE_TIME, max_timestamp)


def _only_batch(buffer: memoryview) -> BatchHeader:
    """The header of the one batch in the buffer. An incomplete second batch is ignored, as Kafka does."""
    if len(buffer) > MAGIC_POSITION and buffer[MAGIC_POSITION] < CURRENT_MAGIC:
        raise InvalidRecord(f"Batches of the old format {buffer[MAGIC_POSITION]} are not accepted; use format 2.")
    headers = iter_headers(buffer)
    first = next(headers, None)
    if first is None:
        raise InvalidRecord("A produce request needs one whole record batch for each partition.")
    if next(headers, None) is not None:
        raise InvalidRecord("A produce request may hold only one record batch for each partition.")
    return first[1]


def _check_size_and_crc(buffer: Buffer, header: BatchHeader, limits: BatchLimits) -> None:
    if header.size > limits.max_message_bytes:
        raise _too_large(header.size, limits)
    if not crc_matches(buffer, 0, header):
        raise CorruptMessage(f"The batch is damaged: its checksum {header.crc:#010x} does not fit its bytes.")


def _check_header(header: BatchHeader) -> None:
    if header.last_offset_delta < 0:
        raise InvalidRecord(f"The batch has an impossible range of offsets: 0 to {header.last_offset_delta}.")
    if header.record_count <= 0:
        raise InvalidRecord(f"The batch claims to hold {header.record_count} records.")
    if header.record_count != header.last_offset_delta + 1:
        raise InvalidRecord(
            f"The batch claims {header.record_count} records but has offsets for {header.last_offset_delta + 1}."
        )
    if header.is_control:
        raise InvalidRecord("Clients may not write control records.")
    if header.has_producer_id and header.base_sequence < 0:
        raise InvalidRecord(
            f"The batch of producer {header.producer_id} has the impossible sequence number {header.base_sequence}."
        )


def _needs_records(header: BatchHeader, limits: BatchLimits, now_ms: int) -> bool:
    if limits.is_compacted:
        return True
    if limits.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return False
    return limits.before_max_ms < INT64_MAX or header.max_timestamp > now_ms + limits.after_max_ms


def _check_records(records: Sequence[Record], limits: BatchLimits, now_ms: int) -> None:
    """Kafka's answer names every bad record; it is INVALID_TIMESTAMP only if nothing else is wrong."""
    keyless: list[RecordError] = []
    untimely: list[RecordError] = []
    oldest, newest = now_ms - limits.before_max_ms, now_ms + limits.after_max_ms
    checks_time = limits.timestamp_type is TimestampType.CREATE_TIME
    for index, record in enumerate(records):
        if limits.is_compacted and record.key is None:
            keyless.append(RecordError(index, "A compacted topic does not accept records without a key."))
        elif checks_time and record.timestamp != NO_TIMESTAMP and not oldest <= record.timestamp <= newest:
            message = f"The timestamp {record.timestamp} is outside the range from {oldest} to {newest}."
            untimely.append(RecordError(index, message))
    if keyless:
        _refuse(sorted(keyless + untimely))
    if untimely:
        untimely_error = InvalidTimestamp(f"{len(untimely)} records have a timestamp that the topic does not allow.")
        untimely_error.record_errors = tuple(untimely)
        raise untimely_error


def _refuse(errors: Sequence[RecordError]) -> None:
    shown = "; ".join(f"record {index}: {message}" for index, message in errors[:_SHOWN_ERRORS])
    error = InvalidRecord(f"{len(errors)} records were refused: {shown}")
    error.record_errors = tuple(errors)
    raise error


def _offsets_are_dense(records: Sequence[Record], header: BatchHeader) -> bool:
    return all(record.offset == offset for offset, record in enumerate(records, header.base_offset))


def _rewritten(
    header: BatchHeader, records: Sequence[Record], codec: Codec, limits: BatchLimits, now_ms: int
) -> Produced:
    """The batch in the topic's codec. Its records get the offsets 0, 1, 2 and so on, whatever they had."""
    appended = limits.timestamp_type is TimestampType.LOG_APPEND_TIME
    batch = build_batch(
        [record._replace(offset=offset) for offset, record in enumerate(records)],
        leader_epoch=header.leader_epoch,
        codec=codec,
        level=limits.level,
        timestamp_type=limits.timestamp_type,
        max_timestamp=now_ms if appended else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )
    if len(batch) > limits.max_message_bytes:
        raise _too_large(len(batch), limits)
    return Produced(memoryview(batch), read_header(batch))


def _stamped(buffer: memoryview, timestamp_type: TimestampType, timestamp_ms: int) -> Produced:
    if buffer.readonly:
        buffer = memoryview(bytearray(buffer))
    stamp_max_timestamp(buffer, 0, timestamp_type, timestamp_ms)
    return Produced(buffer, read_header(buffer))


def _too_large(size: int, limits: BatchLimits) -> MessageTooLarge:
    return MessageTooLarge(
        f"The batch has {size} bytes, more than the {limits.max_message_bytes} that max.message.bytes allows."
    )


def check_codec_of_version(attributes: int, produce_version: int) -> None:
    """Refuse zstd in a Produce request of a version without it. Raises UnsupportedCompressionType."""
    if produce_version < _FIRST_WITH_ZSTD and attributes & CODEC_MASK == Codec.ZSTD:
        raise UnsupportedCompressionType(
            f"Compression with zstd needs Produce version {_FIRST_WITH_ZSTD}; the request has {produce_version}."
        )
