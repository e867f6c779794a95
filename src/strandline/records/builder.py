"""Building batches, byte for byte as Kafka's own builder does for uncompressed records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strandline.errors import InvalidRecord
from strandline.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from strandline.records.batch import (
    CONTROL_BIT,
    CURRENT_MAGIC,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    TimestampType,
    renew_crc,
)
from strandline.records.codecs import Codec, compress
from strandline.records.record import Record
from strandline.records.varint import FAR, in_64_bits, varint_size, write_varint

_NULL: Final = b"\x01"  # the length -1


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    max_timestamp: int | None = None,
    delete_horizon_ms: int | None = None,
    last_offset: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytearray:
    """One batch with these records. Their offsets must rise from `base_offset` on; gaps are allowed.

    `max_timestamp` is by default that of the records, `last_offset` that of the last record. A batch without
    records needs both: it only keeps the state of its producer.
    """
    if last_offset is None:
        last_offset = _last_offset(records)
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    attributes = (
        codec
        | (TIMESTAMP_TYPE_BIT if timestamp_type else 0)
        | (TRANSACTIONAL_BIT if is_transactional else 0)
        | (CONTROL_BIT if is_control else 0)
        | (DELETE_HORIZON_BIT if delete_horizon_ms is not None else 0)
    )
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        leader_epoch=leader_epoch,
        magic=CURRENT_MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    body = bytearray()
    for record in records:
        write_record(body, record, base_offset, base_timestamp)
    return assemble(header, body, level)


def assemble(header: BatchHeader, body: bytes | bytearray, level: int | None = None) -> bytearray:
    """The batch of this header and these uncompressed records; length and checksum of the header are computed."""
    if header.codec and body:
        body = compress(header.codec, body, level)
    batch = bytearray(HEADER_SIZE)
    batch += body
    HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - LOG_OVERHEAD))
    renew_crc(batch, 0)
    return batch


def write_record(output: bytearray, record: Record, base_offset: int, base_timestamp: int) -> None:
    """Append one record, with its offset and timestamp relative to those of the batch."""
    rest = bytearray()
    _write_bytes(rest, record.key)
    _write_bytes(rest, record.value)
    write_varint(rest, len(record.headers))
    for key, value in record.headers:
        _write_bytes(rest, key.encode("utf-8", "surrogateescape"))
        _write_bytes(rest, value)
    write_raw_record(output, record.timestamp - base_timestamp, record.offset - base_offset, rest)


def write_raw_record(
    output: bytearray, timestamp_delta: int, offset_delta: int, rest: bytes | bytearray | memoryview
) -> None:
    """Append a record; everything behind its offset delta is encoded already."""
    if not -FAR < timestamp_delta < FAR:
        timestamp_delta = in_64_bits(timestamp_delta)
    write_varint(output, 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + len(rest))
    output.append(0)
    write_varint(output, timestamp_delta)
    write_varint(output, offset_delta)
    output += rest


def _write_bytes(output: bytearray, value: bytes | None) -> None:
    if value is None:
        output += _NULL
    else:
        write_varint(output, len(value))
        output += value


def _last_offset(records: Sequence[Record]) -> int:
    if not records:
        raise InvalidRecord("A batch without records needs a last offset.")
    return records[-1].offset
