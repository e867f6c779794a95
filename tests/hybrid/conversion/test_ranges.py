"""Which split files become one segment."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from strandline.controlplane.conversion.values import LogSplits, PendingSplit, SplitObject, TopicTiering
from strandline.controlplane.values import DisklessLog
from strandline.hybrid.conversion.ranges import SegmentSizes, plan_ranges_of
from strandline.hybrid.conversion.translating import split_file
from strandline.model import INT32_MAX, TopicIdPartition, TopicPartition

PARTITION = TopicIdPartition(UUID(int=7), TopicPartition("t", 0))
NOW = 1_000_000
SIZES = SegmentSizes(min_bytes=100, max_bytes=1000, max_wait_ms=60_000)


def split(base: int, last: int, size: int, *, created: int = NOW, committed: int = NOW) -> PendingSplit:
    file = SplitObject(
        object_key=f"split/{base}",
        base_offset=base,
        last_offset=last,
        size_bytes=size,
        batch_count=1,
        max_timestamp=NOW,
        leader_epochs=((0, base),),
    )
    return PendingSplit(file, created, committed)


def splits_of(*splits: PendingSplit, tiering: TopicTiering | None = None) -> LogSplits:
    return LogSplits(
        log=DisklessLog(partition=PARTITION, log_start_offset=0, high_watermark=10_000),
        tiering=tiering or TopicTiering(),
        splits=splits,
        next_upload_offset=splits[0].file.base_offset if splits else 0,
        now_ms=NOW,
    )


def planned(log: LogSplits, sizes: SegmentSizes = SIZES) -> list[tuple[int, int, int]]:
    return [(one.base_offset, one.last_offset, one.size_bytes) for one in plan_ranges_of(log, sizes)]


def test_nothing_to_merge() -> None:
    assert planned(splits_of()) == []


def test_few_young_bytes_wait_for_more() -> None:
    assert planned(splits_of(split(0, 9, 99))) == []
    assert planned(splits_of(split(0, 9, 99), split(10, 10, 1))) == [(0, 10, 100)]


def test_few_old_bytes_do_not_wait_for_ever() -> None:
    old = NOW - SIZES.max_wait_ms
    assert planned(splits_of(split(0, 9, 1, created=old), split(10, 19, 1))) == [(0, 19, 2)]
    assert planned(splits_of(split(0, 9, 1, created=old + 1))) == []


def test_what_was_triggered_does_not_wait() -> None:
    triggered = TopicTiering(triggered_at_ms=NOW - 10)
    assert planned(splits_of(split(0, 9, 1, committed=NOW - 10), tiering=triggered)) == [(0, 9, 1)]
    later = splits_of(split(0, 9, 1, committed=NOW - 10), split(10, 19, 1, committed=NOW - 9), tiering=triggered)
    assert planned(later) == [], "a part of it was written after the trigger"


def test_a_segment_is_full_before_the_split_that_does_not_fit() -> None:
    found = planned(splits_of(split(0, 9, 600), split(10, 19, 400), split(20, 29, 1), split(30, 39, 1000)))
    assert found == [(0, 19, 1000), (20, 29, 1), (30, 39, 1000)]


def test_a_split_that_is_larger_than_a_segment_is_one_by_itself() -> None:
    assert planned(splits_of(split(0, 9, 5000), split(10, 19, 50))) == [(0, 9, 5000)]


def test_relative_offsets_fit_into_an_index() -> None:
    found = planned(splits_of(split(0, 9, 100), split(10, INT32_MAX, 100), split(INT32_MAX + 1, INT32_MAX + 1, 100)))
    assert found == [(0, INT32_MAX, 200), (INT32_MAX + 1, INT32_MAX + 1, 100)]


def test_topics_with_segments_smaller_than_the_least_size_are_merged() -> None:
    assert planned(splits_of(split(0, 9, 60)), SegmentSizes(100, 50, 60_000)) == [(0, 9, 60)]


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 1500)), max_size=30), st.booleans())
def test_ranges_are_dense_and_as_large_as_they_can_be(parts: list[tuple[int, int]], is_triggered: bool) -> None:
    base, splits = 0, []
    for count, size in parts:
        splits.append(split(base, base + count - 1, size))
        base += count
    ranges = list(plan_ranges_of(splits_of(*splits, tiering=TopicTiering(False, NOW if is_triggered else None)), SIZES))
    assert [file for one in ranges for file in one.splits] == [split_file(s.file) for s in splits][
        : sum(len(r.splits) for r in ranges)
    ]
    at = 0
    for number, one in enumerate(ranges):
        assert one.base_offset == at
        at = one.last_offset + 1
        assert one.size_bytes == sum(file.size_bytes for file in one.splits)
        assert one.size_bytes <= SIZES.max_bytes or len(one.splits) == 1
        if number + 1 < len(ranges):
            assert one.size_bytes + ranges[number + 1].splits[0].size_bytes > SIZES.max_bytes
    if is_triggered:
        assert at == base


def test_many_small_split_files_of_one_leader_epoch_become_one_segment() -> None:
    """Every split file names its epochs: the same one again and again is one epoch of the segment."""
    many = [split(base, base, 1) for base in range(3000)]
    assert planned(splits_of(*many), SIZES._replace(max_bytes=10_000)) == [(0, 2999, 3000)]


def test_a_segment_has_a_limited_number_of_leader_epochs() -> None:
    many = [split(base, base, 1) for base in range(2500)]
    many = [one._replace(file=replace(one.file, leader_epochs=((at, at),))) for at, one in enumerate(many)]
    found = planned(splits_of(*many), SIZES._replace(max_bytes=10_000))
    assert found == [(0, 999, 1000), (1000, 1999, 1000), (2000, 2499, 500)]
