"""Indexes of remote segments answer as those of local segments do, and damage is seen."""

from __future__ import annotations

import sys
from array import array
from copy import copy
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.log.offset_index import OffsetIndex
from strandline.log.time_index import TimeIndex
from strandline.remote.indexes import segment as indexes_module
from strandline.remote.indexes.cache import DEFAULT_MEMORY
from strandline.remote.indexes.memory import IndexMemory
from strandline.remote.indexes.segment import (
    RemoteIndexDamaged,
    RemoteIndexes,
    SegmentAbortedTransactions,
    check_index,
    check_offset_index,
    check_time_index,
    check_transaction_index,
)
from strandline.remote.reader.segments.opened import MOST_OPEN
from strandline.remote.values import IndexType, RemoteLogSegmentMetadata
from tests.remote.segments import make_segment

BASE = 5_000_000_000
steps = st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 5000), st.integers(1, 100)), max_size=60)


@given(steps=steps, asked=st.lists(st.integers(-50, 70_000), max_size=20))
def test_every_question_is_answered_as_by_a_local_index(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int]], asked: list[int]
) -> None:
    directory = tmp_path_factory.mktemp("index")
    offsets, times = OffsetIndex(str(directory), BASE), TimeIndex(str(directory), BASE)
    offsets.create()
    times.create()
    offset, position, timestamp = BASE - 1, 0, 0
    for records, size, later in steps:
        offset, timestamp = offset + records, timestamp + later
        offsets.append(offset, position)
        times.maybe_append(timestamp, offset)
        position += size
    offsets.write()
    times.write()
    indexes = RemoteIndexes(BASE, Path(offsets.path).read_bytes(), Path(times.path).read_bytes())
    assert indexes.memory_bytes == len(steps) * 20
    for value in asked:
        assert indexes.position_of(BASE + value) == offsets.lookup(BASE + value)
        assert indexes.offset_at_or_after(value) == offsets.offset_at_or_after(value)
        assert indexes.position_at_or_before(value) == offsets.position_at_or_before(value)
        assert indexes.next_position(value) == next((e.position for e in offsets.entries if e.position > value), None)
        assert indexes.first_offset_for_time(value) == times.lookup(value).offset


@given(steps=steps, most=st.integers(1, 20), asked=st.lists(st.integers(-50, 70_000), max_size=20))
def test_a_thinned_index_leads_to_the_same_records_from_further_away(
    steps: list[tuple[int, int, int]], most: int, asked: list[int]
) -> None:
    pairs, stamps, offset, position, timestamp = [], [], -1, 0, 0
    for records, size, later in steps:
        offset, timestamp = offset + records, timestamp + later
        pairs.append((offset, position))
        stamps.append((timestamp, offset))
        position += size
    with pytest.MonkeyPatch.context() as patch:
        whole = RemoteIndexes(0, entries(*pairs), times(*stamps))
        patch.setattr(indexes_module, "THIN_POSITIONS", most)
        patch.setattr(indexes_module, "MOST_TIMES", most)
        thinned = RemoteIndexes(0, entries(*pairs), times(*stamps))
        assert thinned.is_dense == (len(pairs) > most)
        thinned.thin()
        assert not thinned.is_dense
    assert thinned.memory_bytes <= most * 20
    known = {0, *(position for _, position in pairs)}
    for value in asked:
        assert thinned.position_of(value) <= whole.position_of(value)
        assert thinned.position_at_or_before(value) <= whole.position_at_or_before(value)
        assert {thinned.position_of(value), thinned.position_at_or_before(value)} <= known
        assert thinned.first_offset_for_time(value) <= whole.first_offset_for_time(value)
        upper = thinned.offset_at_or_after(value)
        assert upper is None or upper >= (whole.offset_at_or_after(value) or 0)


def large() -> RemoteIndexes:
    """Of a segment of a gigabyte with an entry every 4 KB."""
    count = 262_144
    positions = array("Q", (at << 32 | at << 12 for at in range(1, count)))
    if sys.byteorder == "little":
        positions.byteswap()
    return RemoteIndexes(0, positions.tobytes(), bytes(range(1, 13)) * count)


def test_the_indexes_of_all_segments_that_may_be_open_fit_into_the_memory_for_them() -> None:
    memory: IndexMemory[RemoteIndexes] = IndexMemory(DEFAULT_MEMORY - DEFAULT_MEMORY // 3)
    data = large()
    assert MOST_OPEN * data.memory_bytes > 8 * memory.max_bytes
    opened = {UUID(int=number): copy(data) for number in range(MOST_OPEN)}
    for segment_id, value in opened.items():
        memory.put(segment_id, value)
        assert memory.bytes <= memory.max_bytes
    for _ in range(2):  # all of them are read in turn, and none has to be brought again
        assert all(memory.get(segment_id) is value for segment_id, value in opened.items())
    assert sum(value.memory_bytes for value in opened.values()) <= memory.bytes <= memory.max_bytes


def test_few_large_indexes_stay_whole() -> None:
    memory: IndexMemory[RemoteIndexes] = IndexMemory(DEFAULT_MEMORY - DEFAULT_MEMORY // 3)
    data = large()
    values = [copy(data) for _ in range(30)]
    for number, value in enumerate(values):
        memory.put(UUID(int=number), value)
    assert all(value.is_dense for value in values)


def test_zeros_that_were_allocated_ahead_are_no_entries() -> None:
    entry, time = (9).to_bytes(4, "big") + (70).to_bytes(4, "big"), (1000).to_bytes(8, "big") + (9).to_bytes(4, "big")
    indexes = RemoteIndexes(0, entry + bytes(80), time + bytes(120))
    assert indexes.memory_bytes == 20
    assert (indexes.position_of(100), indexes.first_offset_for_time(5000)) == (70, 9)


@pytest.fixture
def metadata(tmp_path: Path) -> RemoteLogSegmentMetadata:
    """Offsets 100 to 599 in 5000 bytes."""
    return make_segment(tmp_path, base_offset=100).metadata


def entries(*pairs: tuple[int, int]) -> bytes:
    return b"".join(offset.to_bytes(4, "big") + position.to_bytes(4, "big") for offset, position in pairs)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (entries((9, 0), (19, 100))[:-1], "15 bytes are not a whole number of entries"),
        (entries((9, 0), (9, 100)), "not in ascending order"),
        (entries((19, 0), (9, 100)), "not in ascending order"),
        (entries((9, 100), (19, 0)), "not in ascending order"),
        (entries((9, 100), (19, 100)), "not in ascending order"),
        (entries((9, 0), (500, 100)), "it has an entry for offset 600"),
        (entries((9, 0), (19, 5000)), "it has an entry for position 5000"),
        (entries(*((at, at) for at in range(1, 4200)), (1, 1), (1, 5)), "not in ascending order"),
    ],
)
def test_an_offset_index_that_cannot_be_is_found(metadata: RemoteLogSegmentMetadata, data: bytes, fault: str) -> None:
    with pytest.raises(RemoteIndexDamaged, match=fault) as raised:
        check_offset_index(metadata, data)
    assert "The index of orders-3 (AAAAAAAAAAAAAAAAAKvN7w) for offsets 100 to 599 is damaged" in str(raised.value)


def times(*pairs: tuple[int, int]) -> bytes:
    return b"".join(
        timestamp.to_bytes(8, "big", signed=True) + offset.to_bytes(4, "big") for timestamp, offset in pairs
    )


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (times((5, 9))[:-4], "8 bytes are not a whole number of entries"),
        (times((5, 9), (4, 19)), "not in ascending order"),
        (times((5, 19), (6, 9)), "not in ascending order"),
        (times((5, 9), (6, 500)), "it has an entry for offset 600"),
    ],
)
def test_a_time_index_that_cannot_be_is_found(metadata: RemoteLogSegmentMetadata, data: bytes, fault: str) -> None:
    with pytest.raises(RemoteIndexDamaged, match=fault):
        check_time_index(metadata, data)


def aborted(version: int, *fields: int) -> bytes:
    return version.to_bytes(2, "big") + b"".join(field.to_bytes(8, "big") for field in fields)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (aborted(0, 7, 100, 110, 111) + b"x", "35 bytes are not a whole number of entries"),
        (aborted(1, 7, 100, 110, 111), "an impossible entry"),
        (aborted(0, 7, 100, 110, 111) * 2, "an impossible entry"),
        (aborted(0, 7, 10, 99, 111), "an impossible entry"),
        (aborted(0, 7, 100, 600, 601), "an impossible entry"),
    ],
)
def test_a_transaction_index_that_cannot_be_is_found(
    metadata: RemoteLogSegmentMetadata, data: bytes, fault: str
) -> None:
    with pytest.raises(RemoteIndexDamaged, match=fault):
        check_transaction_index(metadata, data)


def test_a_transaction_may_have_begun_in_an_earlier_segment(metadata: RemoteLogSegmentMetadata) -> None:
    data = aborted(0, 7, 3, 100, 101)
    check_transaction_index(metadata, data)
    [entry] = SegmentAbortedTransactions(data)
    assert entry.first_offset == 3


def test_aborted_transactions_are_given_from_an_offset_on() -> None:
    found = SegmentAbortedTransactions(b"".join(aborted(0, 7, at, at + 5, at + 6) for at in range(100, 200, 10)))
    assert len(found) == 10
    for offset in range(95, 205):
        assert [entry.last_offset for entry in found.ending_from(offset)] == [
            at + 5 for at in range(100, 200, 10) if at + 5 >= offset
        ]


def test_empty_indexes_are_fine(metadata: RemoteLogSegmentMetadata) -> None:
    for kind in (IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.TRANSACTION):
        check_index(metadata, kind, b"")
    indexes = RemoteIndexes(100, b"", b"")
    assert (indexes.position_of(300), indexes.next_position(0), indexes.offset_at_or_after(0)) == (0, None, None)
    assert (indexes.position_at_or_before(7), indexes.first_offset_for_time(10**13)) == (0, 100)
