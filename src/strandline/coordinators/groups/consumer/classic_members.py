"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup and Heartbeat on its terms.

While a group moves from one protocol to the other it has members of both kinds. A classic member gets its epoch as the
generation, is never the leader, and is told to rejoin when it has something to give up or to get.
"""

from __future__ import annotations

from dataclasses import replace

from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.embedded import (
    EmbeddedSubscription,
    by_topic_id,
    by_topic_name,
    read_embedded_subscription,
    write_embedded_assignment,
)
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.heartbeat import check_static, replace_static, update_subscription
from strandline.coordinators.groups.consumer.member import ConsumerMember, ReconciliationState
from strandline.coordinators.groups.consumer.partitions import without_epochs
from strandline.coordinators.groups.consumer.schemas import ClassicMetadata
from strandline.coordinators.groups.consumer.target import assigned_by_preference, reconcile_member
from strandline.coordinators.groups.consumer.values import ConsumerSurroundings
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.modern.target import assign_if_due, check_room, check_topics
from strandline.coordinators.groups.subscription import CONSUMER_PROTOCOL
from strandline.coordinators.groups.values import JoinRequest, JoinResponse, SyncRequest, SyncResponse
from strandline.errors import (
    CorruptMessage,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from strandline.metadata import MetadataImage


def check_join(group: ConsumerGroup, request: JoinRequest, member_id: str, around: ConsumerSurroundings) -> None:
    """Raises GroupMaxSizeReached or InconsistentGroupProtocol."""
    check_room(group, member_id, around.limits)
    supported = [{protocol.name for protocol in check_supported(member).protocols} for member in group.classic_members]
    names = {protocol.name for protocol in request.protocols}
    if request.protocol_type != CONSUMER_PROTOCOL or not names.intersection(*supported):
        raise InconsistentGroupProtocol(
            f"Group {group.group_id} uses protocol type {CONSUMER_PROTOCOL!r}, and its classic members have no "
            f"protocol in common with {sorted(names)}."
        )


def join_member(
    changes: ConsumerChanges, request: JoinRequest, member_id: str, around: ConsumerSurroundings
) -> tuple[ConsumerMember, EmbeddedSubscription, bool]:
    """The member with its new subscription, what it said, and whether its subscription has changed. Raises refusals."""
    embedded = _embedded(request)
    before = _find(changes, request, member_id)
    timeout = request.rebalance_timeout_ms
    subscription = replace(
        before.subscription,
        instance_id=before.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=embedded.rack_id or before.subscription.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=tuple(sorted(set(embedded.topics))),
        regex="",
        rebalance_timeout_ms=before.subscription.rebalance_timeout_ms if timeout == -1 else timeout,
        classic=ClassicMetadata(session_timeout_ms=request.session_timeout_ms, protocols=request.protocols),
    )
    changed = update_subscription(changes, before, subscription, around)
    check_topics(changes, around)
    return changes.group.members[member_id], embedded, changed


def reconcile_joined(
    changes: ConsumerChanges,
    member_id: str,
    embedded: EmbeddedSubscription,
    around: ConsumerSurroundings,
    *,
    changed: bool,
) -> JoinResponse:
    """The group stays what it is: the member takes its next step."""
    assign_if_due(changes, around, assigned_by_preference)
    owned = by_topic_id(embedded.owned, around.image)
    member = reconcile_member(changes, member_id, around, owned=owned, subscription_changed=changed)
    return joined(member)


def joined(member: ConsumerMember) -> JoinResponse:
    return JoinResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=check_supported(member).protocols[0].name,
    )


def check_classic(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicMetadata]:
    """The member, if it speaks the classic protocol. Raises UnknownMemberId, FencedInstanceId or IllegalGeneration."""
    member = group.check_member(member_id) if instance_id is None else check_static(group, instance_id, member_id)
    classic = member.subscription.classic
    if classic is None:
        raise UnknownMemberId(f"Member {member.member_id} does not use the classic protocol.")
    if generation_id != member.epoch:
        raise IllegalGeneration(
            f"The request generation id {generation_id} is not equal to the member epoch {member.epoch} of member "
            f"{member.member_id}."
        )
    return member, classic


def sync(group: ConsumerGroup, request: SyncRequest, image: MetadataImage) -> SyncResponse:
    """What the member owns now. Raises refusals; RebalanceInProgress if there is a newer target."""
    member, classic = check_classic(group, request.member_id, request.group_instance_id, request.generation_id)
    for given, used in (
        (request.protocol_type, CONSUMER_PROTOCOL),
        (request.protocol_name, classic.protocols[0].name),
    ):
        if given is not None and given != used:
            raise InconsistentGroupProtocol(f"Group {group.group_id} uses {used!r}, the member says {given!r}.")
    if group.target_epoch > member.epoch and member.state is not ReconciliationState.UNREVOKED_PARTITIONS:
        raise RebalanceInProgress(f"Group {group.group_id} has a new assignment; join again.")
    return SyncResponse(
        assignment=assignment_bytes(member, without_epochs(member.assigned), image),
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
    )


def assignment_bytes(member: ConsumerMember, partitions: Partitions, image: MetadataImage) -> bytes:
    """The partitions as SyncGroup tells them, in the version that the member speaks."""
    version = read_embedded_subscription(check_supported(member).protocols[0].metadata).version
    return write_embedded_assignment(version, by_topic_name(partitions, image))


def has_to_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """There is a new target, or something to give up, or something that others have given up."""
    return (
        member.epoch < group.target_epoch
        or member.state is ReconciliationState.UNREVOKED_PARTITIONS
        or (member.state is ReconciliationState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
    )


def _find(changes: ConsumerChanges, request: JoinRequest, member_id: str) -> ConsumerMember:
    group = changes.group
    if request.group_instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id=member_id)
    known = group.static_member(request.group_instance_id)
    if request.member_id:
        return check_static(group, request.group_instance_id, member_id)
    return ConsumerMember(member_id=member_id) if known is None else replace_static(changes, known, member_id)


def _embedded(request: JoinRequest) -> EmbeddedSubscription:
    try:
        return read_embedded_subscription(request.protocols[0].metadata)
    except CorruptMessage as error:
        raise InconsistentGroupProtocol(f"The subscription of the member cannot be read: {error}") from error


def check_supported(member: ConsumerMember) -> ClassicMetadata:
    """What the member said as a classic one. Raises UnknownMemberId."""
    classic = member.subscription.classic
    if classic is None:
        raise UnknownMemberId(f"Member {member.member_id} does not use the classic protocol.")
    return classic
