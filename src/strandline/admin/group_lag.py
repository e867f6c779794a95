"""How far groups are behind, as far as this broker knows without asking others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from strandline.admin.status import GroupRow
from strandline.coordinators.groups import Group, GroupCoordinator, OffsetStore
from strandline.coordinators.runtime import CoordinatorState
from strandline.errors import StrandlineError
from strandline.hybrid.diskless.figures import DisklessFigures
from strandline.hybrid.partitions import Partitions
from strandline.model import TopicPartition

# Looked at for one page: a broker may coordinate very many, and clients wait meanwhile.
_MOST_GROUPS: Final = 500


def describe_groups(groups: GroupCoordinator, partitions: Partitions, figures: DisklessFigures) -> tuple[GroupRow, ...]:
    """The groups that this broker coordinates, the largest lag first."""
    rows = (_row(group, offsets, partitions, figures) for group, offsets in islice(_groups(groups), _MOST_GROUPS))
    return tuple(sorted(rows, key=lambda row: (-row.lag, row.group_id)))


def _groups(groups: GroupCoordinator) -> Iterator[tuple[Group, OffsetStore]]:
    for context in groups.runtime.contexts:
        if context.state is CoordinatorState.ACTIVE:
            for group in context.shard.groups.values():
                yield group, context.shard.offsets


def _row(group: Group, offsets: OffsetStore, partitions: Partitions, figures: DisklessFigures) -> GroupRow:
    topics: set[str] = set()
    lag = unknown = 0
    for partition, committed in offsets.of_group(group.group_id):
        topics.add(partition.topic)
        end = max(_end(partition, partitions), _figure(partition, figures))
        if end < 0:
            unknown += 1
        else:
            lag += max(end - committed.offset, 0)
    return GroupRow(
        group_id=group.group_id,
        state=group.state.value,
        topics=tuple(sorted(topics)),
        lag=lag,
        unknown_partitions=unknown,
    )


def _end(partition: TopicPartition, partitions: Partitions) -> int:
    """The high watermark; negative if this broker does not know it, as of a diskless partition that no client reads."""
    found = partitions.by_key.get(partition)
    try:
        return -1 if found is None else found.newest.without_records().high_watermark
    except StrandlineError:
        return -1


def _figure(partition: TopicPartition, figures: DisklessFigures) -> int:
    """The high watermark of a diskless partition as the control plane had it last; negative if that is not known."""
    log = figures.of(partition)
    return -1 if log is None else log.high_watermark
