"""ShareGroupHeartbeat: a member joins, goes on or changes its subscription, and learns what it is to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strandline.coordinators.fields import LONGEST_STRING
from strandline.coordinators.groups.modern.group import JOINING_EPOCH, LEAVING_EPOCH
from strandline.coordinators.groups.modern.partitions import NO_PARTITIONS, Partitions
from strandline.coordinators.groups.modern.target import assign_if_due, check_room, check_topics, raise_epoch
from strandline.coordinators.groups.modern.topics import ids_of
from strandline.coordinators.groups.modern.values import HeartbeatResponse
from strandline.coordinators.groups.share.assignor import ShareAssignorMember, assign_simply
from strandline.coordinators.groups.share.changes import ShareChanges
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.member import ShareMember
from strandline.coordinators.groups.share.schemas import ShareMemberValue
from strandline.coordinators.groups.share.values import ShareHeartbeatRequest, ShareSurroundings
from strandline.errors import FencedMemberEpoch, InvalidRequest
from strandline.metadata import MetadataImage


def check_share_heartbeat(request: ShareHeartbeatRequest) -> None:
    """Refuse a request that no group could accept. Raises InvalidRequest."""
    names = (("MemberId", request.member_id), ("GroupId", request.group_id), ("RackId", request.rack_id))
    for what, text in names:
        if text is not None and not text.strip():
            raise InvalidRequest(f"{what} can't be empty.")
        if text is not None and len(text.encode()) > LONGEST_STRING:
            raise InvalidRequest(f"{what} of {len(text)} characters is too long for the record of a group.")
    if request.member_epoch == JOINING_EPOCH and not request.topics:
        raise InvalidRequest("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVING_EPOCH:
        raise InvalidRequest("MemberEpoch is invalid.")


def decide_heartbeat(
    changes: ShareChanges, request: ShareHeartbeatRequest, around: ShareSurroundings
) -> HeartbeatResponse:
    """Decide. Raises what the member has to react to; the changes are then to be taken back."""
    group = changes.group
    check_room(group, request.member_id, around.limits)
    before = _find(group, request)
    waits = group.epoch <= group.target_epoch and is_assignment_pending(group, around.image)
    subscription = _subscription(before, request)
    if before.member_id not in group.members or subscription != before.subscription:
        changes.put_member(before.subscribed(subscription))
    has_other_topics = subscription.topics != before.subscription.topics
    if has_other_topics or waits:
        raise_epoch(changes, around)
    check_topics(changes, around)
    assign_if_due(changes, around, assigned_simply)
    member = _reconciled(group, request.member_id, around.image, has_other_topics=has_other_topics)
    if member != group.members[request.member_id]:
        changes.put_assignment(member)
    is_full = request.member_epoch == JOINING_EPOCH or request.topics is not None
    return HeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=around.limits.heartbeat_interval_ms,
        assignment=member.assigned if is_full or member.assigned != before.assigned else None,
    )


def _find(group: ShareGroup, request: ShareHeartbeatRequest) -> ShareMember:
    """The member as it was before this request; a new one if it joins. Raises UnknownMemberId, FencedMemberEpoch."""
    received = request.member_epoch
    if received == JOINING_EPOCH:
        return group.members.get(request.member_id) or ShareMember(member_id=request.member_id)
    member = group.check_member(request.member_id)
    # The answer with the newest epoch may be lost: the one before it is accepted.
    if received not in (member.epoch, member.previous_epoch):
        relation = "greater" if received > member.epoch else "smaller"
        raise FencedMemberEpoch(
            f"Share group member {request.member_id} has a {relation} member epoch ({received}) than the one known by "
            f"the group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
        )
    return member


def _subscription(before: ShareMember, request: ShareHeartbeatRequest) -> ShareMemberValue:
    known = before.subscription
    return replace(
        known,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=known.topics if request.topics is None else tuple(sorted(set(request.topics))),
    )


# The target ---------------------------------------------------------------------------------------------------------


def is_assignment_pending(group: ShareGroup, image: MetadataImage) -> bool:
    """Whether partitions have state that are not assigned yet, or are assigned and have lost their state."""
    if not group.members:
        return False
    assigned = group.targeted
    return any(
        assigned.get(topic_id, frozenset()) != topic.partitions
        for topic_id, topic in group.states.initialized.items()
        if group.is_subscribed_to(topic.name) and topic_id in image.topics_by_id
    )


def assigned_simply(group: ShareGroup, around: ShareSurroundings) -> Mapping[str, Partitions]:
    """The target of each member."""
    members = {
        member_id: ShareAssignorMember(
            topics=ids_of(member.subscription.topics, around.image),
            target=group.targets.get(member_id, NO_PARTITIONS),
        )
        for member_id, member in group.members.items()
    }
    return assign_simply(members, group.assignable)


def _reconciled(group: ShareGroup, member_id: str, image: MetadataImage, *, has_other_topics: bool) -> ShareMember:
    """The member with its newest target. No member has to give anything up first: partitions are shared."""
    member = group.members[member_id]
    is_behind = member.epoch < group.target_epoch
    if not is_behind and not has_other_topics:
        return member
    subscribed = ids_of(member.subscription.topics, image)
    target = group.targets.get(member_id, NO_PARTITIONS)
    assigned = {topic_id: numbers for topic_id, numbers in target.items() if topic_id in subscribed}
    if not is_behind:
        return replace(member, assigned=assigned)
    return replace(member, assigned=assigned, previous_epoch=member.epoch, epoch=group.target_epoch)
