"""How work is cut into jobs and tasks."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from strandline.model import TopicIdPartition, TopicPartition
from strandline.tiering.driver.plans import TASK_BYTES, chains_of, merge_jobs_of, tasks_of
from strandline.tiering_api.values import MergeRange

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
