"""How work is cut into jobs and tasks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

from strandline.conversion_api.values import ClaimedFile, MergeRange
from strandline.model import TopicIdPartition
from strandline.pipeline.driver.reporting import wanted_bytes

T = TypeVar("T")

TASK_BYTES: Final = 32_000_000
"""A task has about so much to do at least, where there is enough: to start one costs tens of milliseconds."""
JOB_BYTES_PER_SLOT: Final = 256_000_000
"""What a merge job has done counts when all of it is done: so much for each core of the cluster, about."""
_JOINED_BYTES: Final = 256 * 1024
LEAST_BUNDLE_BYTES: Final = 1_000_000
"""Less than this is not worth another bundle, even if a core has nothing to do."""
_LONGEST_CHAIN: Final = 100
_ITEM_BYTES: Final = 100_000
"""What an item costs that has no bytes."""


def tasks_of(items: Sequence[T], *, size: Callable[[T], int], slots: int) -> list[list[T]]:
    """Items for tasks of about the same size: as many as there are slots, or more of `TASK_BYTES` or a bit more."""
    if not items:
        return []
    total = sum(map(size, items))
    count = min(len(items), max(slots, total // TASK_BYTES))
    tasks: list[list[T]] = [[] for _ in range(count)]
    loads = [0] * count
    for item in sorted(items, key=size, reverse=True):
        least = loads.index(min(loads))
        tasks[least].append(item)
        loads[least] += size(item) + _ITEM_BYTES
    return tasks


def joined_bytes(max_segment_bytes: int) -> int:
    """How large a split file of several WAL objects may be: segments are made of whole ones, and are 1 MB or more."""
    return min(_JOINED_BYTES, max_segment_bytes // 4)


def bundles_of(
    files: Iterable[ClaimedFile], *, slots: int, most_bytes: int, most_rows: int, alone: Collection[str] = ()
) -> list[list[ClaimedFile]]:
    """WAL objects that are split together: small ones that follow each other, so that there are few split files.

    A bundle is recorded in one transaction, hence `most_rows`. It fits into the memory of a task, `most_bytes`; a
    larger object is taken by itself, and so are those that have failed before (`alone`, by key).
    """
    ordered = sorted(files, key=lambda file: file.file_id)
    share = -(-sum(map(wanted_bytes, ordered)) // slots)
    limit = min(most_bytes, max(share, LEAST_BUNDLE_BYTES))
    bundles: list[list[ClaimedFile]] = []
    size = rows = 0
    is_closed = True
    for file in ordered:
        is_alone = file.object_key in alone
        file_size, file_rows = wanted_bytes(file), sum(len(split.rows) for split in file.splits)
        if is_closed or is_alone or size + file_size > limit or rows + file_rows > most_rows:
            bundles.append([])
            size = rows = 0
        bundles[-1].append(file)
        size, rows, is_closed = size + file_size, rows + file_rows, is_alone
    return bundles


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
