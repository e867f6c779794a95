"""Plans for AlterPartition: a leader asks for another in-sync set. The order of checks is Kafka's."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial

from strandline.errors import (
    BrokerIdNotRegistered,
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NotController,
    StaleBrokerEpoch,
    StrandlineError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from strandline.metadata.image import LeaderRecoveryState, MetadataImage, PartitionImage
from strandline.metadata.plans.elections import PartitionChange, grouped, partition_change
from strandline.metadata.plans.membership import checked_broker
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.requests import IsrChange, IsrMember, Plan


def plan_isr_changes(
    image: MetadataImage, node_id: int, broker_epoch: int, changes: Sequence[IsrChange], rules: ConfigRules
) -> Plan[list[PartitionImage | StrandlineError]]:
    """Records for the changes that are legal. Raises StaleBrokerEpoch for the request as a whole."""
    _check_sender(image, node_id, broker_epoch)
    accepted: list[PartitionChange] = []
    answers: list[PartitionImage | StrandlineError] = []
    named: set[tuple[uuid.UUID, int]] = set()
    for change in changes:
        try:
            if (change.topic_id, change.partition) in named:
                raise InvalidUpdateVersion("The partition is named twice in the request.")
            named.add((change.topic_id, change.partition))
            partition = _checked_partition(image, node_id, change)
            _check_isr(partition, change)
            for member in change.isr:
                _check_member(image, partition, member)
        except StrandlineError as error:
            answers.append(error)
            continue
        difference = _difference(image, partition, change, rules)
        if difference is None:
            answers.append(partition)
        else:
            accepted.append(difference)
            answers.append(partition.changed(*difference.fields))
    return Plan(grouped(accepted), answers)


def _check_sender(image: MetadataImage, node_id: int, broker_epoch: int) -> None:
    """As Kafka, this answers a broker that is not registered with StaleBrokerEpoch, too."""
    try:
        checked_broker(image, node_id, broker_epoch)
    except BrokerIdNotRegistered as error:
        raise StaleBrokerEpoch(str(error)) from error


def _checked_partition(image: MetadataImage, node_id: int, change: IsrChange) -> PartitionImage:
    topic = image.topics_by_id.get(change.topic_id)
    if topic is None:
        raise UnknownTopicId("This server does not host this topic ID.")
    partition = topic.partition(change.partition)
    if partition is None:
        raise UnknownTopicOrPartition("This server does not host this topic-partition.")
    if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.partition_epoch:
        raise NotController("The broker has seen newer metadata than this controller.")
    if change.leader_epoch < partition.leader_epoch:
        raise FencedLeaderEpoch(f"The leader epoch is {partition.leader_epoch}, not {change.leader_epoch}.")
    if node_id != partition.leader:
        raise InvalidRequest(f"Broker {node_id} does not lead the partition; {partition.leader} does.")
    if change.partition_epoch < partition.partition_epoch:
        raise InvalidUpdateVersion(f"The partition epoch is {partition.partition_epoch}, not {change.partition_epoch}.")
    return partition


def _check_isr(partition: PartitionImage, change: IsrChange) -> None:
    nodes = [member.node_id for member in change.isr]
    if len(set(nodes)) != len(nodes) or not set(nodes) <= set(partition.replicas):
        raise InvalidRequest(f"The in-sync set {nodes} is not a subset of the replicas {partition.replicas}.")
    if partition.leader not in nodes:
        raise InvalidRequest(f"The in-sync set {nodes} does not contain the leader {partition.leader}.")
    if change.leader_recovery_state is LeaderRecoveryState.RECOVERING:
        if len(nodes) > 1:
            raise InvalidRequest("A leader that is recovering must be alone in the in-sync set.")
        if partition.leader_recovery_state is LeaderRecoveryState.RECOVERED:
            raise InvalidRequest("A leader that has recovered cannot be recovering again.")


def _check_member(image: MetadataImage, partition: PartitionImage, member: IsrMember) -> None:
    broker = image.brokers.get(member.node_id)
    if broker is None:
        raise IneligibleReplica(f"Broker {member.node_id} is not registered.")
    if broker.in_controlled_shutdown:
        raise IneligibleReplica(f"Broker {member.node_id} is shutting down.")
    if broker.fenced:
        raise IneligibleReplica(f"Broker {member.node_id} is fenced.")
    if member.broker_epoch not in (-1, broker.epoch):
        raise IneligibleReplica(f"Broker {member.node_id} has epoch {broker.epoch}, not {member.broker_epoch}.")
    if not broker.has_online(partition.directory_of(member.node_id)):
        raise IneligibleReplica(f"The log directory of the replica on broker {member.node_id} is offline.")


def _difference(
    image: MetadataImage, partition: PartitionImage, change: IsrChange, rules: ConfigRules
) -> PartitionChange | None:
    # Kafka keeps the set in the order of the assignment, so that equal sets are equal values.
    members = {member.node_id for member in change.isr}
    isr = tuple(node for node in partition.replicas if node in members)
    name = image.topics_by_id[change.topic_id].name
    difference = partition_change(
        change.topic_id,
        partition,
        isr=partition.isr if members == set(partition.isr) else isr,
        is_active=partial(image.is_available, partition),
        committed_by=rules.committed_by(image, name, partition),
    )
    if change.leader_recovery_state is partition.leader_recovery_state:
        return difference
    unchanged = PartitionChange(change.topic_id, change.partition)
    return (difference or unchanged)._replace(leader_recovery_state=change.leader_recovery_state)
