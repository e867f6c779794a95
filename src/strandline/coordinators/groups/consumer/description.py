"""A consumer group as administrators see it."""

from __future__ import annotations

from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.member import ConsumerMember
from strandline.coordinators.groups.consumer.partitions import without_epochs
from strandline.coordinators.groups.consumer.values import DescribedConsumer, DescribedConsumerGroup
from strandline.coordinators.groups.modern.partitions import NO_PARTITIONS, Partitions
from strandline.coordinators.groups.modern.values import DescribedModernGroup


def describe(group: ConsumerGroup, default_assignor: str) -> DescribedConsumerGroup:
    return DescribedModernGroup(
        group_id=group.group_id,
        state=group.state,
        epoch=group.epoch,
        target_epoch=group.target_epoch,
        assignor=group.preferred_assignor(default_assignor),
        members=tuple(
            _described(member, group.targets.get(member.member_id, NO_PARTITIONS)) for member in group.members.values()
        ),
    )


def _described(member: ConsumerMember, target: Partitions) -> DescribedConsumer:
    subscription = member.subscription
    return DescribedConsumer(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        member_epoch=member.epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        topics=subscription.topics,
        regex=subscription.regex,
        assigned=without_epochs(member.owned),  # as in Kafka also what it is to give up, until it has
        target=target,
        is_classic=member.is_classic,
    )
