"""A group moves from one protocol to the other while its members work on.

Up: the first member of the consumer protocol that joins a classic group turns it into a consumer group; the others go
on as classic members of it. Down: when the last member of the consumer protocol leaves, what remains becomes a classic
group. `group.consumer.migration.policy` says which way is open.
"""

from __future__ import annotations

from strandline.config import GroupSettings
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.classic_members import assignment_bytes, check_supported
from strandline.coordinators.groups.consumer.embedded import (
    by_topic_id,
    read_embedded_assignment,
    read_embedded_subscription,
)
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.member import ConsumerMember
from strandline.coordinators.groups.consumer.schemas import ClassicMetadata, SubscriptionValue
from strandline.coordinators.groups.consumer.values import ConsumerSurroundings
from strandline.coordinators.groups.member import ClassicMember
from strandline.coordinators.groups.modern.group import FIRST_EPOCH
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.errors import CorruptMessage, GroupIdNotFound
from strandline.metadata import MetadataImage

_UP = frozenset({"bidirectional", "upgrade"})
_DOWN = frozenset({"bidirectional", "downgrade"})


def upgraded(classic: ClassicGroup, around: ConsumerSurroundings) -> ConsumerChanges:
    """A consumer group with the members and assignments of the classic one. Raises GroupIdNotFound.

    Nothing has changed for the classic group yet: the join that causes this may still be refused.
    """
    _check_upgrade(classic, around.limits.broker)
    changes = ConsumerChanges(ConsumerGroup(classic.group_id))
    protocol = classic.protocol_name or classic.select_protocol()
    members = [_upgraded_member(classic, member, protocol, around.image) for member in classic.members.values()]
    epoch = max(classic.generation, FIRST_EPOCH)
    for member, _ in members:
        changes.put_member(member)
    changes.put_epoch(epoch, around.hashes.of_topics(changes.group.topics(), around.image))
    for member, assigned in members:
        changes.put_target(member.member_id, assigned)
    changes.put_target_epoch(epoch, 0)
    for member, _ in members:
        changes.put_assignment(member)
    return changes


def _check_upgrade(classic: ClassicGroup, settings: GroupSettings) -> None:
    start = f"Cannot upgrade classic group {classic.group_id} to consumer group because"
    if settings.group_consumer_migration_policy.lower() not in _UP:
        raise GroupIdNotFound(f"{start} online upgrade is disabled.")
    if not classic.is_consumer:
        raise GroupIdNotFound(f"{start} the group does not use the consumer embedded protocol.")
    if len(classic.members) > settings.group_consumer_max_size:
        raise GroupIdNotFound(f"{start} the group size exceeds the consumer group maximum size.")


def _upgraded_member(
    classic: ClassicGroup, member: ClassicMember, protocol: str | None, image: MetadataImage
) -> tuple[ConsumerMember, Partitions]:
    start = f"Cannot upgrade classic group {classic.group_id} to consumer group because"
    try:
        subscription = read_embedded_subscription(member.metadata_for(protocol))
        assignment = read_embedded_assignment(member.assignment)
    except CorruptMessage as error:
        raise GroupIdNotFound(f"{start} the embedded consumer protocol is malformed.") from error
    if assignment.user_data:
        raise GroupIdNotFound(
            f"{start} an unsupported custom assignor is in use. Switch to a default assignor and try again."
        )
    assigned = by_topic_id(assignment.partitions, image)
    epoch = classic.generation
    return (
        ConsumerMember(
            member_id=member.member_id,
            subscription=SubscriptionValue(
                instance_id=member.group_instance_id,
                rack_id=subscription.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                topics=tuple(sorted(set(subscription.topics))),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                classic=ClassicMetadata(session_timeout_ms=member.session_timeout_ms, protocols=member.protocols),
            ),
            epoch=epoch,
            previous_epoch=epoch,
            assigned={topic_id: dict.fromkeys(numbers, epoch) for topic_id, numbers in assigned.items()},
        ),
        assigned,
    )


def may_downgrade(group: ConsumerGroup, leaving: frozenset[str], settings: GroupSettings) -> bool:
    """Whether the group becomes a classic one when these members have left."""
    remaining = [member for member in group.members.values() if member.member_id not in leaving]
    return (
        bool(remaining)
        and all(member.is_classic for member in remaining)
        and settings.group_consumer_migration_policy.lower() in _DOWN
        and len(remaining) <= settings.group_max_size
    )


def downgraded(group: ConsumerGroup, leaving: frozenset[str], around: ConsumerSurroundings) -> ClassicGroup:
    """A stable classic group of the members that remain, all of which are classic ones."""
    members = []
    for member in group.members.values():
        if member.member_id not in leaving:
            classic = check_supported(member)
            members.append(
                ClassicMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.subscription.client_id,
                    client_host=member.subscription.client_host,
                    rebalance_timeout_ms=member.subscription.rebalance_timeout_ms,
                    session_timeout_ms=classic.session_timeout_ms,
                    protocol_type="consumer",
                    protocols=classic.protocols,
                    assignment=assignment_bytes(member, group.targets.get(member.member_id, {}), around.image),
                )
            )
    return ClassicGroup.stable(group.group_id, members, generation=group.epoch, now_ms=around.now_ms)
