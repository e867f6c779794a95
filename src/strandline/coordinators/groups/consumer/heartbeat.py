"""ConsumerGroupHeartbeat: a member joins, goes on or changes its subscription, and learns what it is to own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from strandline.coordinators.fields import LONGEST_STRING
from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.member import STATIC_LEAVING_EPOCH, ConsumerMember
from strandline.coordinators.groups.consumer.partitions import is_within, without_epochs
from strandline.coordinators.groups.consumer.regular_expressions import compile_expression
from strandline.coordinators.groups.consumer.schemas import SubscriptionValue
from strandline.coordinators.groups.consumer.target import assigned_by_preference, reconcile_member
from strandline.coordinators.groups.consumer.values import ConsumerSurroundings, HeartbeatRequest
from strandline.coordinators.groups.modern.group import JOINING_EPOCH, LEAVING_EPOCH
from strandline.coordinators.groups.modern.partitions import NO_PARTITIONS
from strandline.coordinators.groups.modern.target import assign_if_due, check_room, check_topics, raise_epoch
from strandline.coordinators.groups.modern.values import HeartbeatResponse
from strandline.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    InvalidRequest,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)

_MOST_BYTES: Final = 4  # of a character in UTF-8


def check_request(request: HeartbeatRequest, assignors: Sequence[str]) -> None:
    """Refuse a request that no group could accept. Raises InvalidRequest or UnsupportedAssignor."""
    _check_names(request)
    epoch = request.member_epoch
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
        if request.owned is None or request.owned:
            raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
        if request.topics is None and request.regex is None:
            raise InvalidRequest(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif epoch == STATIC_LEAVING_EPOCH:
        if request.instance_id is None:
            raise InvalidRequest("InstanceId can't be null.")
    elif epoch < STATIC_LEAVING_EPOCH:
        raise InvalidRequest(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    if request.assignor is not None and request.assignor not in assignors:
        known = ", ".join(assignors)
        raise UnsupportedAssignor(f"ServerAssignor {request.assignor} is not supported. Supported assignors: {known}.")


def _check_names(request: HeartbeatRequest) -> None:
    if not request.member_id.strip():
        is_new = request.member_epoch in (JOINING_EPOCH, STATIC_LEAVING_EPOCH)
        if request.member_id or not (request.may_lack_id and is_new):
            raise InvalidRequest("MemberId can't be empty.")
    for what, text in (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise InvalidRequest(f"{what} can't be empty.")
    for text in (request.group_id, request.member_id):
        if len(text) * _MOST_BYTES > LONGEST_STRING and len(text.encode()) > LONGEST_STRING:
            raise InvalidRequest(f"A name of {len(text)} characters is too long for the record of a group.")


def heartbeat(changes: ConsumerChanges, request: HeartbeatRequest, around: ConsumerSurroundings) -> HeartbeatResponse:
    """Decide. Raises what the member has to react to; the changes are then to be taken back."""
    group = changes.group
    check_room(group, request.member_id, around.limits)
    before = _find(changes, request)
    subscription = _subscription(before, request)
    if subscription.regex and not group.readers_of(subscription.regex):
        compile_expression(subscription.regex)
    subscription_changed = update_subscription(changes, before, subscription, around)
    check_topics(changes, around)
    assign_if_due(changes, around, assigned_by_preference)
    member = reconcile_member(
        changes,
        request.member_id,
        around,
        owned=request.owned,
        subscription_changed=subscription_changed,
    )
    has_changed = without_epochs(member.assigned) != without_epochs(before.assigned)
    tells_all = request.member_epoch == JOINING_EPOCH or request.is_full or has_changed
    return HeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=around.limits.heartbeat_interval_ms,
        assignment=without_epochs(member.assigned) if tells_all else None,
    )


def update_subscription(
    changes: ConsumerChanges, before: ConsumerMember, subscription: SubscriptionValue, around: ConsumerSurroundings
) -> bool:
    """Store what the member subscribes to, and raise the epoch of the group if that changes what it reads.

    An expression that was not matched yet does not raise the epoch: its first match does.
    """
    group = changes.group
    is_same = subscription is before.subscription or subscription == before.subscription
    if before.member_id not in group.members or not is_same:
        changes.put_member(before.subscribed(subscription))
    names_changed = subscription.topics != before.subscription.topics
    regex_changed = (subscription.regex or "") != before.regex
    if regex_changed:
        changes.drop_unread([before.regex])
    waits_for_match = bool(subscription.regex) and subscription.regex not in group.expressions
    if names_changed or (regex_changed and not waits_for_match):
        raise_epoch(changes, around)
    return names_changed or regex_changed


def says_nothing_new(known: SubscriptionValue, request: HeartbeatRequest) -> bool:
    """Most heartbeats name nothing but the member."""
    return (
        request.topics is None
        and request.regex is None
        and request.assignor is None
        and request.rebalance_timeout_ms == -1
        and (request.instance_id is None or request.instance_id == known.instance_id)
        and (request.rack_id is None or request.rack_id == known.rack_id)
        and request.client_id == known.client_id
        and request.client_host == known.client_host
        and known.classic is None
    )


def _subscription(before: ConsumerMember, request: HeartbeatRequest) -> SubscriptionValue:
    known = before.subscription
    timeout = request.rebalance_timeout_ms
    if says_nothing_new(known, request):
        return known
    return replace(
        known,
        instance_id=known.instance_id if request.instance_id is None else request.instance_id,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=known.topics if request.topics is None else tuple(sorted(set(request.topics))),
        regex=known.regex if request.regex is None else request.regex,
        rebalance_timeout_ms=known.rebalance_timeout_ms if timeout == -1 else timeout,
        assignor=known.assignor if request.assignor is None else request.assignor,
        classic=None,
    )


# The member ---------------------------------------------------------------------------------------------------------


def _find(changes: ConsumerChanges, request: HeartbeatRequest) -> ConsumerMember:
    """The member as it was before this request; a new one if it joins. A static member may take another's place."""
    group = changes.group
    is_joining = request.member_epoch == JOINING_EPOCH
    if request.instance_id is None:
        found = group.members.get(request.member_id)
        if found is None and is_joining:
            return ConsumerMember(member_id=request.member_id)
        member = found or group.check_member(request.member_id)
        if not is_joining:  # a member that joins again owns nothing, so no epoch of it can do harm
            _check_epoch(member, request)
        return member
    known = group.static_member(request.instance_id)
    if not is_joining:
        member = check_static(group, request.instance_id, request.member_id)
        _check_epoch(member, request)
        return member
    if known is None:
        return group.members.get(request.member_id) or ConsumerMember(member_id=request.member_id)
    if not known.has_left_for_now and not known.is_classic:
        raise UnreleasedInstanceId(
            f"Static member {request.member_id} with instance id {request.instance_id} cannot join the group because "
            f"the instance id is owned by {known.member_id} member."
        )
    return replace_static(changes, known, request.member_id)


def check_static(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The static member, if it has this member id. Raises UnknownMemberId or FencedInstanceId."""
    known = group.static_member(instance_id)
    if known is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
    if known.member_id != member_id:
        raise FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member {known.member_id}."
        )
    return known


def replace_static(changes: ConsumerChanges, known: ConsumerMember, member_id: str) -> ConsumerMember:
    """A static member comes back with another member id and keeps its target and what it owned."""
    target = changes.group.targets.get(known.member_id, NO_PARTITIONS)
    member = replace(known, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
    changes.remove_member(known.member_id)
    changes.put_member(member)
    changes.put_target(member_id, target)
    changes.put_assignment(member)
    return member


def _check_epoch(member: ConsumerMember, request: HeartbeatRequest) -> None:
    received = request.member_epoch
    if received > member.epoch:
        relation = "greater"
    elif received < member.epoch:
        # The answer with the new epoch may be lost; a member that owns no more than it was given may go on.
        if (
            received == member.previous_epoch
            and request.owned is not None
            and is_within(request.owned, member.assigned)
        ):
            return
        relation = "smaller"
    else:
        return
    raise FencedMemberEpoch(
        f"The consumer group member has a {relation} member epoch ({received}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )


def is_leaving(request: HeartbeatRequest) -> bool:
    return request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH)
