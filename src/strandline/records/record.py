"""Reading the records inside a batch, for the few rules that need more than the header."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from strandline.errors import InvalidRecord, UnsupportedForMessageFormat
from strandline.records.batch import CODEC_MASK, HEADER_SIZE, TIMESTAMP_TYPE_BIT, BatchHeader, Buffer, read_header
from strandline.records.codecs import MAX_DECOMPRESSED_BYTES, decompress
from strandline.records.varint import FAR, in_64_bits, read_long, read_more, read_varint

if TYPE_CHECKING:
    from mypy_extensions import i64  # a machine integer in compiled code; plain Python does not load it


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


RawRecord: TypeAlias = tuple[int, int, bytes | None, bool, int, int]
"""A record of which only the key was read: timestamp delta, offset delta, key, whether it has a value, and where the
bytes behind the offset delta begin and end. A bare tuple: one is made for each record that compaction looks at."""

_new_record = tuple.__new__  # skips a Python call for each record


def records_data(batch: Buffer, header: BatchHeader, limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """The uncompressed bytes of the records of one whole batch. Raises CorruptMessage."""
    if header.is_legacy:
        raise UnsupportedForMessageFormat(f"Records of the old format {header.magic} cannot be read.")
    if len(batch) < header.size:
        raise InvalidRecord(f"The batch has {len(batch)} of its {header.size} bytes.")
    body = memoryview(batch)[HEADER_SIZE : header.size]
    if not header.attributes & CODEC_MASK:
        return bytes(body)
    if not body:  # compaction may leave a batch that has a codec but no records
        return b""
    return decompress(header.codec, body, limit)


def read_records(batch: Buffer) -> list[Record]:
    """All records of one whole batch. Raises CorruptMessage or InvalidRecord; the checksum is not checked."""
    header = read_header(batch)
    data = records_data(batch, header)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_BIT else None
    records: list[Record] = []
    position: i64 = 0
    try:
        for _ in range(_checked(header.record_count)):
            time, offset, key, _, rest, end = _read_raw(data, position)
            value, headers = _read_rest(data, rest, end, key)
            timestamp = base_timestamp + time if append_time is None else append_time
            if not -FAR < timestamp < FAR:
                timestamp = in_64_bits(timestamp)
            records.append(_new_record(Record, (base_offset + offset, timestamp, key, value, headers)))
            position = end
    except IndexError:
        raise InvalidRecord("A record of the batch is cut.") from None
    _check_end(data, header.record_count, position)
    return records


def read_raw_records(data: bytes, count: int) -> list[RawRecord]:
    """Delimit `count` records in uncompressed data, reading no further than their keys.

    Raises InvalidRecord if the data holds fewer, more or broken records.
    """
    records: list[RawRecord] = []
    position: i64 = 0
    try:
        for _ in range(_checked(count)):
            raw = _read_raw(data, position)
            records.append(raw)
            position = raw[5]
    except IndexError:
        raise InvalidRecord("A record of the batch is cut.") from None
    _check_end(data, count, position)
    return records


def _checked(count: int) -> int:
    if count < 0:
        raise InvalidRecord(f"The batch claims to hold {count} records.")
    return count


def _check_end(data: bytes, count: int, position: i64) -> None:
    if position != len(data):
        raise InvalidRecord(f"After its {count} records the batch has {len(data) - position} bytes too many.")


def _read_raw(data: bytes, position: i64) -> RawRecord:
    """The record at `position`. Numbers of one byte, which are the most frequent, are read without a call."""
    length: i64 = data[position]
    position += 1
    if length >= 0x80:
        length, position = read_more(data, position, length)
    end = position + (length >> 1)
    if length & 1 or end > len(data):
        raise InvalidRecord(f"A record of the batch claims {length >> 1} bytes; {len(data) - position} are left.")
    time: i64 = data[position + 1]
    position += 2
    if time < 0x80:
        time = (time >> 1) ^ -(time & 1)
    else:
        time, position = read_long(data, position, time)
    offset: i64 = data[position]
    position += 1
    if offset >= 0x80:
        offset, position = read_more(data, position, offset)
    rest = position
    size: i64 = data[position]
    position += 1
    if size >= 0x80:
        size, position = read_more(data, position, size)
    key = None
    if not size & 1:
        key = data[position : position + (size >> 1)]
        position += size >> 1
    has_value = not data[position] & 1
    if position >= end:
        raise InvalidRecord("A record of the batch is longer than its length says.")
    return time, (offset >> 1) ^ -(offset & 1), key, has_value, rest, end


def _read_rest(data: bytes, rest: i64, end: i64, key: bytes | None) -> tuple[bytes | None, tuple[Header, ...]]:
    """Value and headers of a record whose key has been read already."""
    position: i64 = rest + 1 if data[rest] < 0x80 else read_varint(data, rest)[1]
    if key:
        position += len(key)
    size: i64 = data[position]
    position += 1
    if size >= 0x80:
        size, position = read_more(data, position, size)
    value = None
    if not size & 1:
        value = data[position : position + (size >> 1)]
        position += size >> 1
    if not data[position]:
        headers: tuple[Header, ...] = ()
        position += 1
    else:
        headers, position = _read_headers(data, position, end)
    if position != end:
        raise InvalidRecord(f"A record of the batch ends {position - end} bytes off the end its length gives.")
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
