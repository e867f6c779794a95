"""Elects the leader of a partition. The order of preference is Kafka's (ELR is not used)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from strandline.metadata.image import LeaderRecoveryState, PartitionImage
from strandline.metadata.records import PartitionChangeRecord
from strandline.model import NO_LEADER

_MOST_PER_RECORD: Final = 5000

_Nodes: TypeAlias = tuple[int, ...]
_Fields: TypeAlias = tuple[
    _Nodes | None, int | None, LeaderRecoveryState | None, _Nodes | None, _Nodes | None, _Nodes | None
]


class PartitionChange(NamedTuple):
    """A planned change of one partition. None: unchanged."""

    topic_id: uuid.UUID
    partition: int
    isr: tuple[int, ...] | None = None
    leader: int | None = None
    leader_recovery_state: LeaderRecoveryState | None = None
    replicas: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None

    @property
    def fields(self) -> _Fields:
        """What changes, in the order of the arguments of `PartitionImage.changed`."""
        return self[2:]

    @property
    def is_nothing(self) -> bool:
        """True if nothing changes."""
        return all(field is None for field in self.fields)


def grouped(changes: Iterable[PartitionChange]) -> list[PartitionChangeRecord]:
    """The records for these changes, each partition at most once. Partitions with equal changes share a record."""
    groups: dict[tuple[object, ...], list[dict[uuid.UUID, list[int]]]] = {}
    sizes: dict[tuple[object, ...], int] = {}
    kinds: dict[tuple[object, ...], PartitionChange] = {}
    for change in changes:
        key = change.fields
        size = sizes.get(key, 0)
        if size % _MOST_PER_RECORD == 0:
            groups.setdefault(key, []).append({})
            kinds.setdefault(key, change)
        sizes[key] = size + 1
        groups[key][-1].setdefault(change.topic_id, []).append(change.partition)
    return [
        PartitionChangeRecord(
            partitions=tuple((topic_id, tuple(numbers)) for topic_id, numbers in page.items()),
            isr=kinds[key].isr,
            leader=kinds[key].leader,
            leader_recovery_state=kinds[key].leader_recovery_state,
            replicas=kinds[key].replicas,
            elr=kinds[key].elr,
            last_known_elr=kinds[key].last_known_elr,
        )
        for key, pages in groups.items()
        for page in pages
    ]


class ElectionType(IntEnum):
    """Which replicas may be elected. PREFERRED and UNCLEAN have Kafka's numbers."""

    PREFERRED = 0
    UNCLEAN = 1
    ONLINE = 2


def elect(
    partition: PartitionImage,
    *,
    isr: tuple[int, ...],
    is_active: Callable[[int], bool],
    election: ElectionType = ElectionType.ONLINE,
) -> tuple[int, bool]:
    """The leader if the in-sync set becomes `isr`, and whether it is outside that set."""
    valid = {node for node in isr if is_active(node)}
    if election is ElectionType.PREFERRED and partition.preferred_leader in valid:
        return partition.preferred_leader, False
    if partition.leader in valid:
        return partition.leader, False
    for node in partition.replicas:
        if node in valid:
            return node, False
    if election is ElectionType.UNCLEAN:
        for node in partition.replicas:
            if is_active(node):
                return node, True
    return NO_LEADER, False


def partition_change(
    topic_id: uuid.UUID,
    partition: PartitionImage,
    *,
    isr: tuple[int, ...],
    is_active: Callable[[int], bool],
    election: ElectionType = ElectionType.ONLINE,
) -> PartitionChange | None:
    """The change that gives the partition this in-sync set and the leader that follows; None if nothing changes.

    An empty `isr` means that the last members stay in it: otherwise it would be unknown which replicas have the data.
    """
    target = isr or partition.isr
    leader, is_unclean = elect(partition, isr=target, is_active=is_active, election=election)
    recovery = partition.leader_recovery_state
    if is_unclean:
        target, recovery = (leader,), LeaderRecoveryState.RECOVERING
    change = PartitionChange(
        topic_id,
        partition.partition,
        None if target == partition.isr else target,
        # An unclean election of the current leader starts a new epoch, too: its log may have been truncated.
        None if leader == partition.leader and not is_unclean else leader,
        None if recovery == partition.leader_recovery_state else recovery,
    )
    is_same = change.isr is None and change.leader is None and change.leader_recovery_state is None
    return None if is_same else change
