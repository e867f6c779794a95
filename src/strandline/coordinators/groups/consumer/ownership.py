"""A partition has one owner, also in a group that was loaded from a log with a gap."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from uuid import UUID

from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.member import ConsumerMember, ReconciliationState
from strandline.coordinators.groups.consumer.partitions import PartitionEpochs
from strandline.coordinators.groups.modern.partitions import pairs


def leave_one_owner(changes: ConsumerChanges) -> None:
    """Take every partition that two members own from the one that got it later.

    The log refused a write (a member is gone, or gave a partition up) and took a later one that was already on its way
    (another member gets the partition), and the broker ended before it had written the first one again. The later owner
    was not told: its answer was an error. The earlier one may still read.
    """
    members = changes.group.members.values()
    lost: dict[str, set[tuple[UUID, int]]] = {}
    since: dict[tuple[UUID, int], tuple[int, str]] = {}
    for member in members:
        for owned in (member.assigned, member.pending_revocation):
            for partition in pairs(owned):
                mine = (owned[partition[0]][partition[1]], member.member_id)
                known = since.get(partition, mine)
                since[partition] = min(known, mine)
                if known != mine:
                    lost.setdefault(max(known, mine)[1], set()).add(partition)
    for member_id, partitions in lost.items():
        changes.put_assignment(_without(changes.group.members[member_id], partitions))


def _without(member: ConsumerMember, lost: Container[tuple[UUID, int]]) -> ConsumerMember:
    is_stable = member.state is ReconciliationState.STABLE
    return replace(
        member,
        state=ReconciliationState.UNRELEASED_PARTITIONS if is_stable else member.state,
        assigned=_kept(member.assigned, lost),
        pending_revocation=_kept(member.pending_revocation, lost),
    )


def _kept(owned: PartitionEpochs, lost: Container[tuple[UUID, int]]) -> PartitionEpochs:
    kept = {
        topic_id: {number: since for number, since in numbers.items() if (topic_id, number) not in lost}
        for topic_id, numbers in owned.items()
    }
    return {topic_id: numbers for topic_id, numbers in kept.items() if numbers}
