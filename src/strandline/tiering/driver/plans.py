"""How work is cut into jobs and tasks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

from strandline.model import TopicIdPartition
from strandline.tiering_api.values import MergeRange

T = TypeVar("T")

TASK_BYTES: Final = 32_000_000
"""A task has about so much to do at least, where there is enough: to start one costs tens of milliseconds."""
JOB_BYTES_PER_SLOT: Final = 256_000_000
"""What a merge job has done counts when all of it is done: so much for each core of the cluster, about."""
_LONGEST_CHAIN: Final = 100
_ITEM_BYTES: Final = 100_000
"""What an item costs that has no bytes."""


def tasks_of(items: Sequence[T], *, size: Callable[[T], int], slots: int) -> list[list[T]]:
    """Items for tasks of about the same size: as many as there are slots, or more of `TASK_BYTES` each."""
    if not items:
        return []
    total = sum(map(size, items))
    count = min(len(items), max(slots, -(-total // TASK_BYTES)))
    tasks: list[list[T]] = [[] for _ in range(count)]
    loads = [0] * count
    for item in sorted(items, key=size, reverse=True):
        least = loads.index(min(loads))
        tasks[least].append(item)
        loads[least] += size(item) + _ITEM_BYTES
    return tasks


class MergeChain(NamedTuple):
    """Ranges of one partition that follow each other: one task builds their segments, in this order."""

    partition: TopicIdPartition
    ranges: tuple[MergeRange, ...]

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.ranges)


def chains_of(
    ranges: Iterable[MergeRange], *, most_bytes: int, without: Collection[TopicIdPartition] = ()
) -> list[MergeChain]:
    """A chain for each partition; not longer than `most_bytes`, or one range, so that it counts before it is all."""
    chains = []
    for partition, found in groupby(ranges, key=lambda one: one.partition):
        if partition in without:
            continue
        chosen: list[MergeRange] = []
        size = 0
        for one in found:
            if chosen and (
                size + one.size_bytes > most_bytes
                or len(chosen) == _LONGEST_CHAIN
                or one.base_offset != chosen[-1].last_offset + 1
            ):
                break
            chosen.append(one)
            size += one.size_bytes
        chains.append(MergeChain(partition, tuple(chosen)))
    return chains


def merge_jobs_of(chains: Sequence[MergeChain], *, slots: int) -> list[list[MergeChain]]:
    """Chains that are merged by one job: the longest first, and together about `JOB_BYTES_PER_SLOT` for each slot."""
    jobs: list[list[MergeChain]] = []
    size = 0
    for chain in sorted(chains, key=lambda one: one.size_bytes, reverse=True):
        if not jobs or (size >= slots * JOB_BYTES_PER_SLOT and len(jobs[-1]) >= slots):
            jobs.append([])
            size = 0
        jobs[-1].append(chain)
        size += chain.size_bytes
    return jobs
