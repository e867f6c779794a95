"""How work is cut into jobs and tasks."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from strandline.conversion_api.values import ClaimedFile, MergeRange, NewSplit, PlannedRow, PlannedSplit, SplitFile
from strandline.model import TopicIdPartition, TopicPartition
from strandline.pipeline.driver.plans import (
    LEAST_BUNDLE_BYTES,
    TASK_BYTES,
    bundles_of,
    chains_of,
    merge_jobs_of,
    tasks_of,
)
from strandline.pipeline.driver.tasks import SplitResult, recorded_together

_TOPIC = UUID(int=7)


def _range(partition: int, base: int, last: int, size: int) -> MergeRange:
    where = TopicIdPartition(_TOPIC, TopicPartition("orders", partition))
    return MergeRange(partition=where, base_offset=base, last_offset=last, size_bytes=size, splits=())


@given(st.lists(st.integers(0, 3 * TASK_BYTES), max_size=60), st.integers(1, 8))
def test_every_item_is_in_one_task_and_no_task_is_empty(sizes: list[int], slots: int) -> None:
    items = list(enumerate(sizes))
    tasks = tasks_of(items, size=lambda item: item[1], slots=slots)
    assert sorted(item for task in tasks for item in task) == items
    assert all(tasks)
    assert len(tasks) <= max(slots, sum(sizes) // TASK_BYTES + 1)


def test_small_files_share_the_tasks_that_run_at_a_time() -> None:
    tasks = tasks_of([1000] * 20, size=int, slots=2)
    assert [len(task) for task in tasks] == [10, 10]


def test_large_files_are_tasks_of_their_own() -> None:
    assert len(tasks_of([TASK_BYTES] * 5, size=int, slots=2)) == 5


def test_a_chain_has_the_ranges_of_a_partition_in_their_order_up_to_a_size() -> None:
    ranges = [_range(0, 0, 9, 60), _range(0, 10, 19, 60), _range(1, 5, 9, 500), _range(1, 10, 19, 1)]
    chains = chains_of(ranges, most_bytes=100)
    assert [(chain.partition.partition, len(chain.ranges), chain.size_bytes) for chain in chains] == [
        (0, 1, 60),
        (1, 1, 500),
    ]
    assert [len(chain.ranges) for chain in chains_of(ranges, most_bytes=1000)] == [2, 2]


def test_a_chain_ends_before_a_gap() -> None:
    (chain,) = chains_of([_range(0, 0, 9, 1), _range(0, 20, 29, 1)], most_bytes=100)
    assert [one.base_offset for one in chain.ranges] == [0]


def test_partitions_that_fail_are_left_out() -> None:
    ranges = [_range(0, 0, 9, 1), _range(1, 0, 9, 1)]
    (chain,) = chains_of(ranges, most_bytes=100, without={ranges[0].partition})
    assert chain.partition.partition == 1


def test_merge_jobs_are_bounded_and_the_longest_chains_come_first() -> None:
    sizes = [10, 600_000_000, 300_000_000, 300_000_000, 20]
    chains = chains_of([_range(n, 0, 9, size) for n, size in enumerate(sizes)], most_bytes=10**9)
    jobs = merge_jobs_of(chains, slots=2)
    assert [[chain.size_bytes for chain in job] for job in jobs] == [[600_000_000, 300_000_000], [300_000_000, 20, 10]]


def _file(number: int, size: int, rows: int = 1) -> ClaimedFile:
    where = TopicIdPartition(_TOPIC, TopicPartition("orders", 0))
    planned = [PlannedRow(n, n, 0, size if n == 0 else 0, 0, 0, 0, 0) for n in range(rows)]
    splits = (PlannedSplit(partition=where, rows=tuple(planned)),)
    return ClaimedFile(file_id=number, object_key=f"f{number}", size=size, expires_at_ms=0, splits=splits)


@given(
    st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(1, 9)), max_size=40),
    st.integers(1, 4),
    st.integers(1, 5_000_000),
    st.integers(1, 30),
    st.sets(st.integers(0, 40)),
)
def test_bundles_are_files_that_follow_each_other(
    sizes: list[tuple[int, int]], slots: int, most_bytes: int, most_rows: int, alone: set[int]
) -> None:
    files = [_file(number, *size) for number, size in enumerate(sizes)]
    names = {f"f{number}" for number in alone}
    bundles = bundles_of(files, slots=slots, most_bytes=most_bytes, most_rows=most_rows, alone=names)
    assert [file for bundle in bundles for file in bundle] == files
    for bundle in bundles:
        if len(bundle) > 1:
            assert sum(file.size for file in bundle) <= most_bytes
            assert sum(len(file.splits[0].rows) for file in bundle) <= most_rows
            assert not names & {file.object_key for file in bundle}


def test_small_files_are_one_bundle_and_larger_ones_keep_all_slots_busy() -> None:
    few = [_file(n, LEAST_BUNDLE_BYTES // 10) for n in range(10)]
    assert len(bundles_of(few, slots=4, most_bytes=8_000_000, most_rows=1000)) == 1
    many = [_file(n, LEAST_BUNDLE_BYTES // 10) for n in range(80)]
    assert len(bundles_of(many, slots=4, most_bytes=8_000_000, most_rows=1000)) == 4


def _result(number: int, batches: int, trouble: str = "") -> SplitResult:
    where = TopicIdPartition(_TOPIC, TopicPartition("orders", 0))
    file = SplitFile(
        object_key=f"split/{number}",
        base_offset=0,
        last_offset=9,
        size_bytes=1,
        batch_count=batches,
        max_timestamp=0,
        leader_epochs=((0, 0),),
    )
    troubles = {f"wal/{number}": trouble} if trouble else {}
    return SplitResult(object_keys=(f"wal/{number}",), splits=(NewSplit(where, file),), troubles=troubles)


def test_results_are_recorded_in_few_requests() -> None:
    results = [_result(0, 400), _result(1, 500, "Damaged."), _result(2, 200), _result(3, 2000), _result(4, 1)]
    together = recorded_together(results, 1000)
    assert [one.object_keys for one in together] == [("wal/0", "wal/1"), ("wal/2",), ("wal/3",), ("wal/4",)]
    assert together[0].splits == results[0].splits + results[1].splits
    assert [dict(one.troubles) for one in together] == [{"wal/1": "Damaged."}, {}, {}, {}]
    assert recorded_together([], 10) == []
