"""Headers: damaged ones, old ones, emptied ones, and the numbers derived from them."""

from __future__ import annotations

import struct
import zlib

import pytest

from strandline.errors import CorruptMessage, InvalidRecord, UnsupportedForMessageFormat
from strandline.records import (
    ControlType,
    EndTransactionMarker,
    Record,
    build_batch,
    control_key,
    control_type_of,
    crc_matches,
    increment_sequence,
    iter_headers,
    marker_of,
    read_header,
    read_marker,
    read_records,
)
from strandline.records.batch import renew_crc

INT_MAX = 2**31 - 1


def legacy(magic: int, offset: int, value: bytes, timestamp: int = 1000) -> bytes:
    """One uncompressed record as Kafka 0.10 and before wrote it."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", timestamp) if magic else b"")
    body += struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        (b"", "0 bytes are left"),
        (bytes(build_batch([Record(0, 0, None, None)])[:17]), "17 bytes are left"),
        (bytes(build_batch([Record(0, 0, None, None)])[:60]), "needs 61"),
        (bytes(16) + b"\x07" + bytes(60), "unknown magic 7"),
        (struct.pack(">qiib", 0, 48, 0, 2) + bytes(60), "length as 48"),
        (struct.pack(">qiib", 0, -20, 0, 2) + bytes(60), "length as -20"),
        (legacy(0, 5, b"")[:8] + struct.pack(">i", 13) + legacy(0, 5, b"")[12:], "length as 13"),
        (legacy(1, 5, b"value")[:20], "cut inside its header"),
    ],
)
def test_bytes_that_cannot_begin_a_batch(batch: bytes, sentence: str) -> None:
    with pytest.raises(CorruptMessage, match=sentence):
        read_header(batch)


def test_iteration_reports_nonsense_between_batches() -> None:
    batch = bytes(build_batch([Record(0, 0, None, b"v")]))
    found = iter_headers(batch + b"\x00" * 40 + b"\xff" * 40)
    assert next(found)[0] == 0
    with pytest.raises(CorruptMessage):
        next(found)


def test_iteration_starts_where_it_is_told() -> None:
    first, second = build_batch([Record(0, 0, None, b"v")]), build_batch([Record(1, 0, None, b"w")], base_offset=1)
    assert [(position, header.base_offset) for position, header in iter_headers(first + second, len(first))] == [
        (len(first), 1)
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_recognised(magic: int) -> None:
    data = legacy(magic, 7, b"old") + legacy(magic, 8, b"older") + bytes(build_batch([Record(9, 5, b"k", b"new")]))
    found = list(iter_headers(data))
    assert [header.magic for _, header in found] == [magic, magic, 2]
    assert [(header.base_offset, header.last_offset, header.is_legacy) for _, header in found[:2]] == [
        (7, 7, True),
        (8, 8, True),
    ]
    assert all(crc_matches(data, position, header) for position, header in found)
    assert found[0][1].max_timestamp == (1000 if magic else -1)
    assert sum(header.size for _, header in found) == len(data)
    with pytest.raises(UnsupportedForMessageFormat):
        read_records(data)


def test_a_checksum_needs_the_whole_batch() -> None:
    batch = build_batch([Record(0, 0, None, b"v")])
    assert not crc_matches(batch[:-1], 0, read_header(batch))


def test_records_need_the_whole_batch() -> None:
    with pytest.raises(InvalidRecord, match="of its"):
        read_records(build_batch([Record(0, 0, None, b"v")])[:-1])


def test_an_emptied_batch_remembers_its_producer() -> None:
    batch = build_batch(
        [], base_offset=10, last_offset=14, producer_id=3, producer_epoch=1, base_sequence=20, max_timestamp=99
    )
    header = read_header(batch)
    assert (header.record_count, header.base_offset, header.last_offset, header.last_sequence) == (0, 10, 14, 24)
    assert (header.base_timestamp, header.max_timestamp) == (-1, 99)
    assert read_records(batch) == []
    with pytest.raises(InvalidRecord, match="last offset"):
        build_batch([])


@pytest.mark.parametrize(
    ("body", "count", "sentence"),
    [
        (b"", 1, "cut"),
        (b"\x0c", 1, "claims 6 bytes; 0 are left"),
        (b"\x01\x00", 1, "claims"),
        (b"\x0c\x00\x00\x00\x01\x01\x00", -1, "hold -1 records"),
        (b"\x0c\x00\x00\x00\x01\x01\x00" * 2, 1, "7 bytes too many"),
        (b"\x0a\x00\x00\x00\x01\x01\x00", 1, "ends 1 bytes off"),
        (b"\x0c\x00\x00\x00\x10\x01\x00", 1, "cut"),
        (b"\x06\x00\x00\x00\x01\x01\x00", 1, "longer than its length"),
        (b"\x0c\x00\x00\x00\x01\x10\x00", 1, "is cut"),
        (b"\x0c\x00\x00\x00\x01\x01\x01", 1, "claims -1 headers"),
        (b"\x0c\x00\x00\x00\x01\x01\x20", 1, "claims 16 headers"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", 1, "header of a record has no key"),
    ],
)
def test_broken_records(body: bytes, count: int, sentence: str) -> None:
    batch = bytearray(build_batch([Record(0, 0, None, None)])[:61]) + body
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">i", batch, 57, count)
    with pytest.raises(InvalidRecord, match=sentence):
        read_records(batch)


def test_a_long_way_to_say_null() -> None:
    body = b"\x10\x00\x00\x00\x81\x01\x81\x01\x00"  # key and value of length -65: negative is null
    batch = bytearray(build_batch([Record(0, 0, None, None)])[:61]) + body
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    assert read_records(batch) == [Record(0, 0, None, None)]


@pytest.mark.parametrize(
    ("sequence", "step", "expected"),
    [(0, 0, 0), (0, 5, 5), (INT_MAX, 0, INT_MAX), (INT_MAX, 1, 0), (INT_MAX - 2, 5, 2)],
)
def test_sequences_wrap(sequence: int, step: int, expected: int) -> None:
    assert increment_sequence(sequence, step) == expected


def test_the_last_sequence_of_a_batch_wraps() -> None:
    records = [Record(i, 0, None, b"v") for i in range(4)]
    assert read_header(build_batch(records, producer_id=1, base_sequence=INT_MAX - 1)).last_sequence == 1


def test_control_records() -> None:
    assert control_type_of(control_key(ControlType.ABORT)) is ControlType.ABORT
    assert control_type_of(struct.pack(">hh", 0, 77)) is ControlType.UNKNOWN
    assert control_type_of(struct.pack(">hhi", 3, 1, 0)) is ControlType.COMMIT
    assert EndTransactionMarker(ControlType.ABORT, 0).is_abort
    assert marker_of(Record(0, 0, control_key(ControlType.LEADER_CHANGE), b"")) is None
    assert read_marker(build_batch([], last_offset=0, is_control=True)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x00", b""),
        (struct.pack(">hh", -1, 0), b""),
        (control_key(ControlType.ABORT), None),
        (control_key(ControlType.COMMIT), b"\x00\x00"),
        (control_key(ControlType.COMMIT), struct.pack(">hi", -1, 0)),
    ],
)
def test_broken_control_records(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        marker_of(Record(0, 0, key, value))


def test_renewing_a_checksum() -> None:
    batch = build_batch([Record(0, 0, None, b"v")])
    batch[-2] ^= 1
    assert not crc_matches(batch, 0, read_header(batch))
    renew_crc(batch, 0)
    assert crc_matches(batch, 0, read_header(batch))
