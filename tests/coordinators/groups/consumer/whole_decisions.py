"""Heartbeats that skip the decision, compared with the decision that they skip."""

from __future__ import annotations

from strandline.coordinators.groups import HeartbeatRequest, HeartbeatResponse
from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.heartbeat import heartbeat
from strandline.coordinators.groups.consumer.member import ConsumerMember
from strandline.coordinators.groups.consumer.partitions import without_epochs
from strandline.coordinators.groups.consumer.steady import is_steady
from strandline.coordinators.groups.consumer.values import ConsumerSurroundings


def steady_members(group: ConsumerGroup, around: ConsumerSurroundings) -> set[str]:
    """Who is answered without a decision now. Fails if a decision would change anything, or answer anything else."""
    found = set()
    for member in list(group.members.values()):
        for request in _requests(member):
            if is_steady(group, member, request, around.image):
                changes = ConsumerChanges(group)
                assert heartbeat(changes, request, around) == HeartbeatResponse(
                    member_id=member.member_id,
                    member_epoch=member.epoch,
                    heartbeat_interval_ms=around.limits.heartbeat_interval_ms,
                )
                assert not changes.is_any
                found.add(member.member_id)
    return found


def _requests(member: ConsumerMember) -> list[HeartbeatRequest]:
    """What a client may say that does not speak of its subscription: also with epochs that it does not have."""
    return [
        HeartbeatRequest(
            group_id="g", member_id=member.member_id, member_epoch=epoch, instance_id=instance_id, owned=owned
        )
        for epoch in {member.epoch, member.previous_epoch, member.epoch + 1}
        for instance_id in {None, member.instance_id, "i-c0"}
        for owned in (None, {}, without_epochs(member.assigned))
    ]
