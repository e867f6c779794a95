"""Batches captured from a real broker, byte by byte."""

from __future__ import annotations

from crc32c import crc32c

from strandline.records import (
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    TimestampType,
    build_batch,
    build_marker,
    crc_matches,
    read_header,
    read_marker,
    read_records,
)

PLAIN = bytes.fromhex(
    "00000000000000000000003b00000001020318a2700000000000000000015dff7b063c0000015dff7b063cffffffffffffffffffffffff"
    "ffff0000000112000000010631323300"
)
COMMIT = bytes.fromhex(
    "000000000000002a000000420000000302e2c09fdd0030000000000000018bcfe568000000018bcfe5680000000000000003e90005ffff"
    "ffff000000012000000008000000010c00000000000700"
)


def test_the_checksum_is_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_a_plain_batch_is_read() -> None:
    header = read_header(PLAIN)
    assert header.size == len(PLAIN)
    assert (header.base_offset, header.last_offset, header.next_offset) == (0, 0, 1)
    assert (header.leader_epoch, header.magic, header.record_count) == (1, 2, 1)
    assert header.codec is Codec.NONE
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert not header.is_transactional
    assert not header.is_control
    assert not header.has_producer_id
    assert header.last_sequence == -1
    assert header.delete_horizon_ms is None
    assert crc_matches(PLAIN, 0, header)
    assert read_records(PLAIN) == [Record(0, 1503229838908, None, b"123")]


def test_a_plain_batch_is_built() -> None:
    assert build_batch([Record(0, 1503229838908, None, b"123")], leader_epoch=1) == PLAIN


def test_a_marker_is_read() -> None:
    header = read_header(COMMIT)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1001, 5, -1)
    assert read_marker(COMMIT) == EndTransactionMarker(ControlType.COMMIT, 7)


def test_a_marker_is_built() -> None:
    built = build_marker(
        EndTransactionMarker(ControlType.COMMIT, 7),
        producer_id=1001,
        producer_epoch=5,
        timestamp_ms=1700000000000,
        base_offset=42,
        leader_epoch=3,
    )
    assert built == COMMIT
