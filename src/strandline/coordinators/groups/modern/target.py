"""The epoch of a group and its target assignment: when they rise, and what they become.

The epoch of a group rises when its members, their subscriptions or their topics change. The target is computed for the
newest epoch, at most once in an assignment interval, so that a hundred members that join one after the other do not
cause a hundred assignments. A member that has to wait learns its part in a later heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from strandline.coordinators.groups.modern.changes import GroupChanges
from strandline.coordinators.groups.modern.group import ModernGroup
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.modern.surroundings import ModernLimits, Surroundings
from strandline.errors import GroupMaxSizeReached

G = TypeVar("G", bound=ModernGroup[Any])
L = TypeVar("L", bound=ModernLimits)


def check_room(group: ModernGroup[Any], member_id: str, limits: ModernLimits) -> None:
    """Raises GroupMaxSizeReached if the member is new and the group is full."""
    if len(group.members) >= limits.max_size and member_id not in group.members:
        kind = group.group_type.value
        raise GroupMaxSizeReached(f"Group {group.group_id} has {limits.max_size} members: group.{kind}.max.size.")


def raise_epoch(changes: GroupChanges[Any], around: Surroundings[ModernLimits], *, beyond: int = 0) -> None:
    """The members, their subscriptions or their topics have changed: the group needs another target."""
    group = changes.group
    epoch = max(group.epoch, beyond) + 1
    changes.put_epoch(epoch, around.hashes.of_topics(group.topics(), around.image))
    group.checked_image = around.image


def go_beyond_members(changes: GroupChanges[Any], around: Surroundings[ModernLimits]) -> None:
    """Raise the epoch of a group beyond those of its members and its target, if the log has lost what led to them.

    A write that the log refused and a later one that it took leave such a group when the broker ends between them.
    Without this, members would go back to an earlier epoch, or never hear of a later target.
    """
    group = changes.group
    told = max((member.epoch for member in group.members.values()), default=0)
    if told > group.target_epoch or group.target_epoch > group.epoch:
        raise_epoch(changes, around, beyond=max(told, group.target_epoch))


def check_topics(changes: GroupChanges[Any], around: Surroundings[ModernLimits]) -> None:
    """Raise the epoch if the topics of the group are not what they were when it was raised last."""
    group = changes.group
    if group.checked_image is not around.image:
        if around.hashes.of_topics(group.topics(), around.image) != group.metadata_hash:
            raise_epoch(changes, around)
        group.checked_image = around.image


def assignment_delay_ms(group: ModernGroup[Any], around: Surroundings[ModernLimits]) -> int | None:
    """How long the next target has to wait; None if the group has a target for its epoch."""
    if group.epoch <= group.target_epoch:
        return None
    due = group.target_timestamp_ms + around.limits.assignment_interval_ms
    return max(due - around.now_ms, 0) if group.target_timestamp_ms else 0


def assign_if_due(
    changes: GroupChanges[G],
    around: Surroundings[L],
    assign: Callable[[G, Surroundings[L]], Mapping[str, Partitions]],
) -> None:
    """Compute the target for the epoch of the group, if it is time. Only what changes is written."""
    group = changes.group
    if assignment_delay_ms(group, around) != 0:
        return
    for member_id, partitions in assign(group, around).items():
        if group.targets.get(member_id) != partitions:
            changes.put_target(member_id, partitions)
    changes.put_target_epoch(group.epoch, around.now_ms)
