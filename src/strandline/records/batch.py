"""Record batch headers: read with one unpack, checked and patched in place.

The records behind the header stay opaque here. A batch of the current format (magic 2) starts with 61 bytes of
header; the checksum covers everything from the attributes on, so the base offset and the leader epoch can be
written without touching it. Batches of the old formats (magic 0 and 1) may lie in directories that an old Kafka
wrote: they get a header with the fields they have, and their size and offsets are right.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from crc32c import crc32c

from strandline.errors import CorruptMessage
from strandline.model import INT32_MAX, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from strandline.records.codecs import Codec

Buffer: TypeAlias = bytes | bytearray | memoryview

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
CRC_START: Final = 21
CURRENT_MAGIC: Final = 2

CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

HEADER: Final = Struct(">qiibIhiqqqhii")
_OFFSET_AND_LENGTH: Final = Struct(">qi")
_LEGACY: Final = Struct(">qiIbb")
_LEGACY_SIZE: Final = 18
_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT16: Final = Struct(">h")


class TimestampType(IntEnum):
    """Whether the producer set the timestamps of a batch, or the broker that appended it."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(NamedTuple):
    """The fixed fields of a batch, in their order on disk."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """Raises UnsupportedCompressionType for a number Kafka has no codec for."""
        return Codec.of(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_BIT else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; -1 without one."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones and markers of a cleaned batch may be removed; None if no cleaner set it."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def is_legacy(self) -> bool:
        """Whether the batch has one of the formats before magic 2."""
        return self.magic < CURRENT_MAGIC


_new_header = tuple.__new__
_unpack_header = HEADER.unpack_from


def increment_sequence(sequence: int, increment: int) -> int:
    """The sequence number `increment` records after `sequence`. After the largest 31-bit number comes zero."""
    if sequence > INT32_MAX - increment:
        return increment - (INT32_MAX - sequence) - 1
    return sequence + increment


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`. Raises CorruptMessage if the bytes there cannot begin a batch.

    The rest of the batch need not be in the buffer. A batch of magic 0 or 1 gets a header with `is_legacy`.
    """
    if len(buffer) - position >= HEADER_SIZE and buffer[position + MAGIC_POSITION] == CURRENT_MAGIC:
        header = _new_header(BatchHeader, _unpack_header(buffer, position))
        if header.batch_length >= HEADER_SIZE - LOG_OVERHEAD:
            return header
    return _read_unusual(buffer, position)


def iter_headers(buffer: Buffer, start: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Every (position, header) from `start` on. Stops before a batch whose end is not in the buffer.

    Raises CorruptMessage where the bytes cannot begin a batch.
    """
    end = len(buffer)
    position = start
    while end - position > MAGIC_POSITION:
        size = _INT32.unpack_from(buffer, position + 8)[0] + LOG_OVERHEAD
        if size > end - position and buffer[position + MAGIC_POSITION] <= CURRENT_MAGIC:
            return
        header = read_header(buffer, position)
        yield position, header
        position += size


def crc_matches(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the stored checksum of the batch at `position` fits its bytes, all of which must be in the buffer."""
    end = position + header.batch_length + LOG_OVERHEAD
    if end > len(buffer):
        return False
    if header.magic != CURRENT_MAGIC:
        return zlib.crc32(memoryview(buffer)[position + MAGIC_POSITION : end]) == header.crc
    return crc32c(memoryview(buffer)[position + CRC_START : end]) == header.crc


def stamp(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write the base offset and the leader epoch in place. The checksum does not cover them."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + 12, leader_epoch)


def stamp_log_append_time(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    """Set LogAppendTime `timestamp_ms` in place, and renew the checksum."""
    stamp_max_timestamp(buffer, position, TimestampType.LOG_APPEND_TIME, timestamp_ms)


def stamp_max_timestamp(
    buffer: bytearray | memoryview, position: int, timestamp_type: TimestampType, timestamp_ms: int
) -> None:
    """Set type and maximum of the timestamps in place, and renew the checksum, unless they are set already."""
    attributes: int = _INT16.unpack_from(buffer, position + CRC_START)[0]
    wanted = attributes | TIMESTAMP_TYPE_BIT if timestamp_type else attributes & ~TIMESTAMP_TYPE_BIT
    if wanted == attributes and _INT64.unpack_from(buffer, position + 35)[0] == timestamp_ms:
        return
    _INT16.pack_into(buffer, position + CRC_START, wanted)
    _INT64.pack_into(buffer, position + 35, timestamp_ms)
    renew_crc(buffer, position)


def renew_crc(buffer: bytearray | memoryview, position: int) -> None:
    """Compute the checksum of the whole batch at `position` and store it."""
    end = position + LOG_OVERHEAD + _INT32.unpack_from(buffer, position + 8)[0]
    _UINT32.pack_into(buffer, position + CRC_POSITION, crc32c(memoryview(buffer)[position + CRC_START : end]))


def _read_unusual(buffer: Buffer, position: int) -> BatchHeader:
    """The header of an old format, or the reason why there is none."""
    left = len(buffer) - position
    if left < _LEGACY_SIZE:
        raise CorruptMessage(f"Only {left} bytes are left at position {position}: too few for the header of a batch.")
    magic = buffer[position + MAGIC_POSITION]
    if magic > CURRENT_MAGIC:
        raise CorruptMessage(f"The bytes at position {position} are not a batch: unknown magic {magic}.")
    if magic == CURRENT_MAGIC:
        _, length = _OFFSET_AND_LENGTH.unpack_from(buffer, position)
        if length < HEADER_SIZE - LOG_OVERHEAD:
            raise CorruptMessage(f"The batch at position {position} gives its length as {length}: less than a header.")
        raise CorruptMessage(f"Only {left} bytes are left at position {position}: a batch header needs {HEADER_SIZE}.")
    return _read_legacy(buffer, position)


def _read_legacy(buffer: Buffer, position: int) -> BatchHeader:
    offset, length, crc, magic, attributes = _LEGACY.unpack_from(buffer, position)
    smallest = 14 if magic == 0 else 22
    if length < smallest:
        raise CorruptMessage(f"The record at position {position} gives its length as {length}: less than a header.")
    timestamp = NO_TIMESTAMP
    if magic == 1:
        if len(buffer) - position < _LEGACY_SIZE + 8:
            raise CorruptMessage(f"The record at position {position} is cut inside its header.")
        timestamp = _INT64.unpack_from(buffer, position + _LEGACY_SIZE)[0]
    # A compressed wrapper carries the offset of its last record; the records inside it are not counted here.
    return BatchHeader(
        base_offset=offset,
        batch_length=length,
        leader_epoch=-1,
        magic=magic,
        crc=crc,
        attributes=attributes & (CODEC_MASK | TIMESTAMP_TYPE_BIT),
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=1,
    )
