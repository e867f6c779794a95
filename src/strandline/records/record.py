"""Records inside a batch: reading them, for the few places where a semantic needs more than the header."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from strandline.errors import InvalidRecord, UnsupportedForMessageFormat
from strandline.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    Buffer,
    read_header,
)
from strandline.records.codecs import MAX_DECOMPRESSED_BYTES, decompress
from strandline.records.varint import read_more, read_varint


class Header(NamedTuple):
    """One header of a record. A key that is not UTF-8 keeps its bytes as lone surrogates."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """One record with its absolute offset and timestamp."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class RawRecord(NamedTuple):
    """A record of which only the key was looked at. `rest` and `end` delimit what follows the offset delta."""

    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool
    rest: int
    end: int


def records_data(batch: Buffer, header: BatchHeader, limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """The uncompressed bytes of the records of one whole batch. Raises CorruptMessage."""
    if header.is_legacy:
        raise UnsupportedForMessageFormat(f"Records of the old format {header.magic} cannot be read.")
    if len(batch) < header.size:
        raise InvalidRecord(f"The batch has {len(batch)} of its {header.size} bytes.")
    body = memoryview(batch)[HEADER_SIZE : header.size]
    if not header.attributes & CODEC_MASK:
        return bytes(body)
    if not body:  # an emptied batch keeps its codec but has nothing to decompress
        return b""
    return decompress(header.codec, body, limit)


def read_records(batch: Buffer) -> list[Record]:
    """All records of one whole batch. Raises CorruptMessage or InvalidRecord; the checksum is not looked at."""
    return list(iter_records(batch))


def iter_records(batch: Buffer) -> Iterator[Record]:
    """The records of one whole batch, one after the other. Raises as `read_records` does."""
    header = read_header(batch)
    data = records_data(batch, header)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_BIT else None
    for raw in iter_raw_records(data, header.record_count):
        timestamp = base_timestamp + raw.timestamp_delta if append_time is None else append_time
        value, headers = read_value_and_headers(data, raw)
        yield Record(base_offset + raw.offset_delta, timestamp, raw.key, value, headers)


def iter_raw_records(data: bytes, count: int) -> Iterator[RawRecord]:
    """Delimit `count` records in uncompressed data, reading no further than their keys.

    Raises InvalidRecord if the data holds fewer, more or broken records.
    """
    if count < 0:
        raise InvalidRecord(f"The batch claims to hold {count} records.")
    position = 0
    for index in range(count):
        raw = _read_raw(data, position, index)
        yield raw
        position = raw.end
    if position != len(data):
        raise InvalidRecord(f"After its {count} records the batch has {len(data) - position} bytes too many.")


def _read_raw(data: bytes, position: int, index: int) -> RawRecord:
    try:
        length, start = read_varint(data, position)
        end = start + length
        if length < 0 or end > len(data):
            raise InvalidRecord(f"Record {index} of the batch claims {length} bytes; {len(data) - start} are left.")
        timestamp_delta, position = read_varint(data, start + 1)
        offset_delta, position = read_varint(data, position)
        rest = position
        size = data[position]
        position += 1
        if size >= 0x80:
            size, position = read_more(data, position, size)
        key = None
        if not size & 1:
            size >>= 1
            key = data[position : position + size]
            position += size
        value_size = data[position]
    except IndexError:
        raise InvalidRecord(f"Record {index} of the batch is cut.") from None
    if position >= end:
        raise InvalidRecord(f"Record {index} of the batch is longer than its length says.")
    # Tuples are made by position here: this runs for every record of a topic that is cleaned.
    return RawRecord(timestamp_delta, offset_delta, key, not value_size & 1, rest, end)


def read_value_and_headers(data: bytes, raw: RawRecord) -> tuple[bytes | None, tuple[Header, ...]]:
    """The part of a record that `iter_raw_records` skipped. Raises InvalidRecord."""
    try:
        position = read_varint(data, raw.rest)[1] + len(raw.key or b"")
        value, position = _read_bytes(data, position)
        count = data[position]
        if not count:
            headers: tuple[Header, ...] = ()
            position += 1
        else:
            headers, position = _read_headers(data, position, raw.end)
    except IndexError:
        raise InvalidRecord("A record of the batch is cut inside its value or headers.") from None
    if position != raw.end:
        raise InvalidRecord(f"A record of the batch ends {position - raw.end} bytes off the end its length gives.")
    return value, headers


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(data, position)
    if size < 0:
        return None, position
    return data[position : position + size], position + size


def _read_headers(data: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= end - position:
        raise InvalidRecord(f"A record claims {count} headers; {end - position} bytes are left.")
    headers: list[Header] = []
    for _ in range(count):
        key, position = _read_bytes(data, position)
        if key is None:
            raise InvalidRecord("A header of a record has no key.")
        value, position = _read_bytes(data, position)
        headers.append(Header(key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position
