"""A heartbeat that decides nothing, which nearly all of them are: the member is there and has nothing to hear."""

from __future__ import annotations

from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.heartbeat import says_nothing_new
from strandline.coordinators.groups.consumer.member import ConsumerMember
from strandline.coordinators.groups.consumer.values import HeartbeatRequest
from strandline.coordinators.groups.modern.group import JOINING_EPOCH
from strandline.metadata import MetadataImage


def is_steady(group: ConsumerGroup, member: ConsumerMember, request: HeartbeatRequest, image: MetadataImage) -> bool:
    """True only if `heartbeat` would change nothing, and answer with no more than the epoch of the member.

    The group has a target for its epoch and the newest topics, no member reads by a regular expression, and the member
    has reached the target, knows its epoch and says nothing of itself. What it owns does not matter then.
    """
    epoch = member.epoch
    return (
        request.member_epoch == epoch == group.target_epoch
        and epoch > JOINING_EPOCH
        and group.epoch <= epoch
        and group.checked_image is image
        and member.is_reconciled_to(epoch)
        and not group.has_expressions
        and (request.instance_id is None or group.instances.get(request.instance_id) == member.member_id)
        and says_nothing_new(member.subscription, request)
    )
