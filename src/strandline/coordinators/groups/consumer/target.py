"""The epoch of a group and its target assignment: when they rise, and what they become.

The epoch of a group rises when its members, their subscriptions or their topics change. The target is computed for the
newest epoch, at most once in `group.consumer.assignment.interval.ms`, so that a hundred members who join one after the
other do not cause a hundred assignments.
"""

from __future__ import annotations

from strandline.coordinators.groups.consumer.assignors import ASSIGNORS, AssignmentSpec, AssignorMember
from strandline.coordinators.groups.consumer.changes import GroupChanges, Surroundings
from strandline.coordinators.groups.consumer.group import FIRST_EPOCH, ConsumerGroup
from strandline.coordinators.groups.consumer.member import ConsumerMember
from strandline.coordinators.groups.consumer.partitions import NO_PARTITIONS, Partitions
from strandline.coordinators.groups.consumer.reconciliation import Target, reconcile
from strandline.coordinators.groups.consumer.topics import ids_of, partition_counts


def raise_epoch(changes: GroupChanges, around: Surroundings) -> None:
    """The members or their subscriptions have changed: the group needs another target."""
    group = changes.group
    changes.put_epoch(group.epoch + 1, around.hashes.of_topics(group.topics(), around.image))
    group.checked_image = around.image


def go_beyond_members(changes: GroupChanges, around: Surroundings) -> None:
    """Raise the epoch of a group beyond those of its members, if the log has lost the target that they were told.

    A write that the log refused and a later one that it took leave such a group when the broker ends between them.
    Without this, members would go back to an earlier epoch.
    """
    group = changes.group
    told = max((member.epoch for member in group.members.values()), default=FIRST_EPOCH)
    if told > group.target_epoch:
        changes.put_epoch(max(group.epoch, told) + 1, around.hashes.of_topics(group.topics(), around.image))
        group.checked_image = around.image


def check_topics(changes: GroupChanges, around: Surroundings) -> None:
    """Raise the epoch if the topics of the group are not what they were when it was raised last."""
    group = changes.group
    if group.checked_image is not around.image:
        if around.hashes.of_topics(group.topics(), around.image) != group.metadata_hash:
            raise_epoch(changes, around)
        group.checked_image = around.image


def assignment_delay_ms(group: ConsumerGroup, around: Surroundings) -> int | None:
    """How long the next target has to wait; None if the group has a target for its epoch."""
    if group.epoch <= group.target_epoch:
        return None
    due = group.target_timestamp_ms + around.limits.group.consumer_assignment_interval_ms
    return max(due - around.now_ms, 0) if group.target_timestamp_ms else 0


def assign_if_due(changes: GroupChanges, around: Surroundings) -> None:
    if assignment_delay_ms(changes.group, around) == 0:
        assign(changes, around)


def assign(changes: GroupChanges, around: Surroundings) -> None:
    """Compute the target for the epoch of the group. Only what changes is written."""
    group, image = changes.group, around.image
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
    assignor = ASSIGNORS.get(name, ASSIGNORS[around.limits.assignors[0]])
    for member_id, partitions in assignor(spec).items():
        if group.targets.get(member_id) != partitions:
            changes.put_target(member_id, partitions)
    changes.put_target_epoch(group.epoch, around.now_ms)


def reconcile_member(
    changes: GroupChanges,
    member_id: str,
    around: Surroundings,
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
