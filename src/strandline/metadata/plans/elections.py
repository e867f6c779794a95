"""Elects the leader of a partition, and says which replicas stay eligible. The rules are Kafka's, with KIP-966.

A record is committed when as many replicas are in sync as min.insync.replicas asks for, and all of them have it. When
fewer are in sync nothing is committed, and the replicas that leave the in-sync set from then on have everything that
ever was: they are eligible. The set may become empty. An eligible replica that returns leads; one whose log may have
lost records (it was not stopped cleanly) is no longer eligible. If no replica is left in either set, the last leader
may lead, which is an unclean election, unless it is known to have lost its log.
"""

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


class UncleanElections(NamedTuple):
    """Elections of leaders that may lack committed records: how many partitions, and who leads them now."""

    partitions: int
    leaders: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"Brokers that were not in sync ({', '.join(map(str, self.leaders))}) lead {self.partitions} of the "
            "partitions now: no replica with all committed records could lead them. Records may be lost."
        )


def unclean_elections(records: Iterable[object]) -> UncleanElections | None:
    """Those that these records tell of; None if there are none."""
    unclean = [
        (record, record.leader)
        for record in records
        if isinstance(record, PartitionChangeRecord)
        and record.leader_recovery_state is LeaderRecoveryState.RECOVERING
        and record.leader is not None
    ]
    if not unclean:
        return None
    count = sum(len(numbers) for record, _ in unclean for _, numbers in record.partitions)
    return UncleanElections(count, tuple(sorted({leader for _, leader in unclean})))


class ElectionType(IntEnum):
    """Which replicas may be elected. PREFERRED and UNCLEAN have Kafka's numbers."""

    PREFERRED = 0
    UNCLEAN = 1
    ONLINE = 2


class Returned(NamedTuple):
    """What a broker that has started again may have lost. Node ids, or NO_LEADER.

    The log of one that is `incomplete` may lack records that were committed; that of one that is `empty` is gone.
    """

    incomplete: int = NO_LEADER
    empty: int = NO_LEADER


KEPT_EVERYTHING: Final = Returned()


def elect(
    partition: PartitionImage,
    *,
    isr: tuple[int, ...],
    is_active: Callable[[int], bool],
    election: ElectionType = ElectionType.ONLINE,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
) -> tuple[int, bool]:
    """The leader if these are in sync and eligible, and whether it is in neither of the sets.

    Eligible replicas are asked only if none is in sync, and the last known leader only if none is eligible either.
    """
    valid = {node for node in isr or elr if is_active(node)}
    if election is ElectionType.PREFERRED and partition.preferred_leader in valid:
        return partition.preferred_leader, False
    if partition.leader in valid:
        return partition.leader, False
    for node in partition.replicas:
        if node in valid:
            return node, False
    if not isr and not elr and len(last_known) == 1 and is_active(last_known[0]):
        return last_known[0], True
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
    committed_by: int = 0,
    returned: Returned = KEPT_EVERYTHING,
) -> PartitionChange | None:
    """The change that gives the partition this in-sync set and the leader that follows; None if nothing changes.

    `committed_by`: how many in-sync replicas commit a record. 0: no eligible replicas are kept, and an empty `isr`
    means that the last members stay in it; otherwise it would be unknown which replicas have the data.
    """
    target = isr if committed_by else isr or partition.isr
    elr = _eligible(partition, target, committed_by, returned)
    known = tuple(node for node in partition.last_known_elr if node != returned.empty)
    leader, is_unclean = elect(partition, isr=target, is_active=is_active, election=election, elr=elr, last_known=known)
    recovery = partition.leader_recovery_state
    if is_unclean:
        target, elr, recovery = (leader,), (), LeaderRecoveryState.RECOVERING
    elif leader in elr:
        target = (leader,)
        elr = _eligible(partition, target, committed_by, returned)
    change = PartitionChange(
        topic_id,
        partition.partition,
        None if target == partition.isr else target,
        # An unclean election of the current leader starts a new epoch, too: its log may have been truncated.
        None if leader == partition.leader and not is_unclean else leader,
        None if recovery == partition.leader_recovery_state else recovery,
        elr=None if elr == partition.elr else elr,
        last_known_elr=_last_known(partition, known, leader, committed_by, returned),
    )
    return None if change.is_nothing else change


def _eligible(
    partition: PartitionImage, isr: tuple[int, ...], committed_by: int, returned: Returned
) -> tuple[int, ...]:
    """The replicas that have every committed record although they are not in this set."""
    if len(isr) >= committed_by:
        return ()
    complete = {*partition.elr, *partition.isr} - {*isr, returned.incomplete}
    return tuple(node for node in partition.replicas if node in complete)


def _last_known(
    partition: PartitionImage, known: tuple[int, ...], leader: int, committed_by: int, returned: Returned
) -> tuple[int, ...] | None:
    """What becomes of the memory of the last leader, which there is only while there is no leader. None: unchanged."""
    if leader != NO_LEADER or not committed_by:
        known = ()
    elif not known and partition.has_leader and partition.leader != returned.empty:
        known = (partition.leader,)
    return None if known == partition.last_known_elr else known


def without_eligible(topic_id: uuid.UUID, partition: PartitionImage, committed_by: int) -> PartitionChange | None:
    """The change that follows when min.insync.replicas changes; None if nothing follows.

    If the in-sync set is large enough now, records are committed that eligible replicas do not get. If it is still too
    small, or empty, nothing is committed, and they stay eligible (Kafka forgets them all the same).
    """
    if not partition.elr or len(partition.isr) < max(committed_by, 1):
        return None
    return PartitionChange(topic_id, partition.partition, elr=())
