"""Markers of the usual shape are read at one look: the same comes out as if each record were read."""

from __future__ import annotations

import pytest

from strandline.errors import CorruptMessage, InvalidRecord, UnsupportedCompressionType, UnsupportedForMessageFormat
from strandline.records.batch import HEADER_SIZE
from strandline.records.builder import build_batch
from strandline.records.codecs import Codec
from strandline.records.control import (
    ControlType,
    EndTransactionMarker,
    build_marker,
    control_key,
    marker_of,
    read_marker,
)
from strandline.records.record import Header, Record, read_records

REFUSALS = (CorruptMessage, InvalidRecord, UnsupportedCompressionType, UnsupportedForMessageFormat)


def built(kind: ControlType = ControlType.COMMIT, epoch: int = 7) -> bytearray:
    return build_marker(EndTransactionMarker(kind, epoch), producer_id=5, producer_epoch=1, timestamp_ms=9)


def outcome(batch: bytearray | memoryview) -> EndTransactionMarker | type[Exception] | None:
    try:
        return read_marker(batch)
    except REFUSALS as error:
        return type(error)


def slow_outcome(batch: bytearray) -> EndTransactionMarker | type[Exception] | None:
    try:
        return next((marker_of(record) for record in read_records(batch)), None)
    except REFUSALS as error:
        return type(error)


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
@pytest.mark.parametrize("epoch", [-1, 0, 2**31 - 1])
def test_a_marker_is_read_as_it_was_built(kind: ControlType, epoch: int) -> None:
    batch = built(kind, epoch)
    for one in (batch, memoryview(batch)):
        marker = read_marker(one)
        assert marker == EndTransactionMarker(kind, epoch)
        assert marker.type is kind


@pytest.mark.parametrize("position", [*range(8, 12), 16, 21, 22, *range(57, HEADER_SIZE + 17)])
def test_whatever_byte_is_another_one_both_ways_agree(position: int) -> None:
    batch = built()
    for value in range(256):
        batch[position] = value
        assert outcome(batch) == slow_outcome(batch), value


@pytest.mark.parametrize(
    "record",
    [
        Record(0, 9, control_key(ControlType.LEADER_CHANGE), b"\0\0\0\0\0\7"),
        Record(0, 9, control_key(ControlType.COMMIT), b"\0\1\0\0\0\7\0"),
        Record(0, 9, control_key(ControlType.COMMIT), b"\0\0\0\0\0\7", (Header("a", None),)),
        Record(0, 9, control_key(ControlType.COMMIT) + b"\0", b"\0\0\0\0\7"),
        Record(0, 9, None, b"\0\0\0\0\0\7\0\0\0\0"),
    ],
)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_other_shapes_are_read_record_by_record(record: Record, codec: Codec) -> None:
    batch = build_batch([record], base_offset=0, leader_epoch=0, producer_id=5, is_control=True, codec=codec)
    assert outcome(batch) == slow_outcome(batch)


def test_the_batch_that_every_marker_is() -> None:
    """If this one had another size, each marker would be read the slow way, and nothing else would tell."""
    assert len(built()) == HEADER_SIZE + 17
