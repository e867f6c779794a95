"""Members that leave: by their own wish, for a while, or because they were silent for too long."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.heartbeat import check_static
from strandline.coordinators.groups.consumer.member import STATIC_LEAVING_EPOCH, ConsumerMember
from strandline.coordinators.groups.consumer.values import ConsumerSurroundings, HeartbeatRequest
from strandline.coordinators.groups.modern.target import raise_epoch


def find_leaving(changes: ConsumerChanges, request: HeartbeatRequest) -> ConsumerMember:
    """The member that wants to leave. Raises UnknownMemberId or FencedInstanceId."""
    if request.instance_id is None:
        return changes.group.check_member(request.member_id)
    return check_static(changes.group, request.instance_id, request.member_id)


def leave_for_a_while(changes: ConsumerChanges, member: ConsumerMember) -> None:
    """A static member keeps its partitions until it comes back or its session ends."""
    changes.put_assignment(replace(member, epoch=STATIC_LEAVING_EPOCH, pending_revocation={}))


def remove_members(changes: ConsumerChanges, members: Collection[ConsumerMember], around: ConsumerSurroundings) -> None:
    """Take members out; what they owned is free, and the group needs another target."""
    if not members:
        return
    for member in members:
        changes.remove_member(member.member_id)
    changes.drop_unread(member.regex for member in members)
    raise_epoch(changes, around)
