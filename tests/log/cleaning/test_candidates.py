"""Choosing: which segments go together, and what of a log is dirty."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.log.cleaning.candidates import assess, dirtiest, groups_of, segments_between
from strandline.log.index_file import LoadedIndexes
from strandline.log.segment import LogSegment
from tests.log.cleaning.support import CompactedLog

INT_MAX = 2**31 - 1


def segments(directory: Path, *sizes: tuple[int, int]) -> list[LogSegment]:
    """Segments that are nothing but (base offset, size)."""
    return [LogSegment(str(directory), base, size=size, created_ms=0, cache=LoadedIndexes()) for base, size in sizes]


def bases(groups: list[list[LogSegment]]) -> list[list[int]]:
    return [[segment.base_offset for segment in group] for group in groups]


def test_groups_by_size(tmp_path: Path) -> None:
    found = groups_of(
        segments(tmp_path, (0, 60), (10, 40), (20, 1), (30, 99), (40, 150), (50, 10)),
        segment_bytes=100,
        index_bytes=1000,
        end=60,
    )
    assert bases(found) == [[0, 10], [20, 30], [40], [50]]


def test_groups_by_the_size_of_their_indexes(tmp_path: Path) -> None:
    three = segments(tmp_path, (0, 1), (10, 1), (20, 1))
    for segment in three:
        segment.offset_index.append(segment.base_offset + 1, 0)
        segment.offset_index.append(segment.base_offset + 2, 100)
    assert bases(groups_of(three, segment_bytes=100, index_bytes=32, end=30)) == [[0, 10], [20]]


def test_groups_by_their_span_of_offsets(tmp_path: Path) -> None:
    far = segments(tmp_path, (0, 1), (10, 1), (INT_MAX, 1), (INT_MAX + 10, 0))
    found = groups_of(far, segment_bytes=100, index_bytes=1000, end=INT_MAX + 20)
    assert bases(found) == [[0, 10], [INT_MAX, INT_MAX + 10]]


def test_an_empty_segment_may_join_any_group(tmp_path: Path) -> None:
    far = segments(tmp_path, (0, 1), (10, 0))
    assert bases(groups_of(far, segment_bytes=100, index_bytes=1000, end=INT_MAX + 20)) == [[0, 10]]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 100, [0, 10, 20]), (9, 10, [0]), (10, 10, []), (10, 11, [10]), (15, 21, [10, 20]), (99, 100, [20])],
)
def test_segments_between_offsets(tmp_path: Path, start: int, end: int, expected: list[int]) -> None:
    three = segments(tmp_path, (0, 1), (10, 1), (20, 1))
    assert [segment.base_offset for segment in segments_between(three, start, end)] == expected


def test_what_is_dirty(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path / "data")
    for _ in range(3):
        log.produce((b"a", b"1"), (b"b", b"1"))
        log.roll()
    size = log.log.segments.first.size
    fresh = assess(log.log, None, log.clock.now_ms())
    assert (fresh.first_dirty, fresh.end, fresh.clean_bytes, fresh.dirty_bytes) == (0, 6, 0, 3 * size)
    assert fresh.ratio == 1.0
    later = assess(log.log, 4, log.clock.now_ms())
    assert (later.first_dirty, later.end, later.clean_bytes, later.dirty_bytes) == (4, 6, 2 * size, size)
    # A pass that ran out of memory may end inside a segment, which then counts as clean and as dirty.
    middle = assess(log.log, 3, log.clock.now_ms())
    assert (middle.clean_bytes, middle.dirty_bytes) == (2 * size, 2 * size)
    done = assess(log.log, 6, log.clock.now_ms())
    assert (done.dirty_bytes, done.is_due) == (0, False)
    assert dirtiest([later, done, fresh]) is fresh
    assert dirtiest([done]) is None


def test_nothing_above_the_high_watermark_is_cleanable(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path / "data")
    for _ in range(3):
        log.produce((b"a", b"1"), (b"b", b"1"))
        log.roll()
    log.log.offsets.high_watermark = 3
    assert assess(log.log, None, log.clock.now_ms()).end == 2
    log.log.offsets.high_watermark = 1
    assert not assess(log.log, None, log.clock.now_ms()).is_due


def test_an_empty_log_is_clean(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path / "data")
    candidate = assess(log.log, None, log.clock.now_ms())
    assert (candidate.ratio, candidate.is_due) == (0.0, False)
