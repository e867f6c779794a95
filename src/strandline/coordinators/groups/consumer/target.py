"""The target assignment of a consumer group, and a member's steps to it."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.coordinators.groups.consumer.assignors import ASSIGNORS, AssignmentSpec, AssignorMember
from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.member import ConsumerMember
from strandline.coordinators.groups.consumer.reconciliation import Target, reconcile
from strandline.coordinators.groups.consumer.values import ConsumerSurroundings
from strandline.coordinators.groups.modern.partitions import NO_PARTITIONS, Partitions
from strandline.coordinators.groups.modern.topics import ids_of, partition_counts


def assigned_by_preference(group: ConsumerGroup, around: ConsumerSurroundings) -> Mapping[str, Partitions]:
    """The target of each member, by the assignor that most of them ask for."""
    image = around.image
    topics = {member_id: ids_of(group.topics_of(member), image) for member_id, member in group.members.items()}
    spec = AssignmentSpec(
        members={
            member_id: AssignorMember(
                topics=topics[member_id],
                instance_id=member.instance_id,
                target=group.targets.get(member_id, NO_PARTITIONS),
            )
            for member_id, member in group.members.items()
        },
        partition_counts=partition_counts(frozenset().union(*topics.values()), image),
    )
    name = group.preferred_assignor(around.limits.assignors[0])
    return ASSIGNORS.get(name, ASSIGNORS[around.limits.assignors[0]])(spec)


def reconcile_member(
    changes: ConsumerChanges,
    member_id: str,
    around: ConsumerSurroundings,
    *,
    owned: Partitions | None,
    subscription_changed: bool,
) -> ConsumerMember:
    """Let a member take its next step to the target. Raises FencedMemberEpoch."""
    group = changes.group
    member = group.members[member_id]
    if not subscription_changed and member.is_reconciled_to(group.target_epoch):
        return member
    target = Target(
        epoch=group.target_epoch,
        partitions=group.targets.get(member_id, NO_PARTITIONS),
        subscribed=ids_of(group.topics_of(member), around.image),
    )
    moved = reconcile(
        member,
        target,
        owned=owned,
        is_owned_by_anyone=group.is_owned,
        subscription_changed=subscription_changed,
    )
    if moved != member:
        changes.put_assignment(moved)
    return moved
