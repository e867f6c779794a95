"""Plans for brokers that register, change their state or leave: their registration, and leaders of their partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import NamedTuple

from strandline.errors import BrokerIdNotRegistered, InconsistentClusterId, InvalidRequest, StaleBrokerEpoch
from strandline.metadata.features import may_replicate
from strandline.metadata.image import BrokerImage, MetadataImage, PartitionImage
from strandline.metadata.plans.elections import KEPT_EVERYTHING, Returned
from strandline.metadata.plans.features import check_features
from strandline.metadata.plans.returning import losses, returned_of
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.plans.succession import Succession, leaderless
from strandline.metadata.records import (
    BrokerChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from strandline.metadata.requests import BrokerHeartbeat, BrokerRegistration, Plan
from strandline.metadata.topic_map import indexed_topics


class AcceptedBroker(NamedTuple):
    """A registered broker's epoch, and what an operator has to be told of its partitions, if anything."""

    epoch: int
    losses: str = ""


class BrokerState(Enum):
    """The states of a registered broker, as in Kafka."""

    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


def state_of(broker: BrokerImage) -> BrokerState:
    """The state that the log records."""
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def checked_broker(image: MetadataImage, node_id: int, broker_epoch: int) -> BrokerImage:
    """The broker, if the caller is its current incarnation. Raises StaleBrokerEpoch or BrokerIdNotRegistered."""
    broker = image.brokers.get(node_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"No broker is registered with the id {node_id}.")
    if broker.epoch != broker_epoch:
        raise StaleBrokerEpoch(f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}.")
    return broker


def next_state(
    image: MetadataImage, broker: BrokerImage, heartbeat: BrokerHeartbeat, *, is_shutdown_seen: bool
) -> BrokerState:
    """The state of the broker after this heartbeat.

    `is_shutdown_seen`: all other brokers have read the record that announced the controlled shutdown.
    """
    match state_of(broker):
        case BrokerState.FENCED:
            if heartbeat.want_shut_down:
                return BrokerState.SHUTDOWN_NOW
            is_caught_up = heartbeat.current_metadata_offset >= broker.epoch
            return BrokerState.UNFENCED if is_caught_up and not heartbeat.want_fence else BrokerState.FENCED
        case BrokerState.UNFENCED:
            if heartbeat.want_fence:
                return BrokerState.SHUTDOWN_NOW if heartbeat.want_shut_down else BrokerState.FENCED
            if not heartbeat.want_shut_down:
                return BrokerState.UNFENCED
            return BrokerState.CONTROLLED_SHUTDOWN if leads_any(image, broker.node_id) else BrokerState.SHUTDOWN_NOW
        case _:
            if leads_any(image, broker.node_id) or not is_shutdown_seen:
                return BrokerState.CONTROLLED_SHUTDOWN
            return BrokerState.SHUTDOWN_NOW


def leads_any(image: MetadataImage, node_id: int) -> bool:
    """True if the broker leads a partition."""
    return indexed_topics(image).leads_any(node_id)


class MembershipPlanner:
    """Plans changes of partitions that follow from a broker's change of state."""

    def __init__(self, rules: ConfigRules) -> None:
        self._succession = Succession(rules)

    def register(self, image: MetadataImage, broker: BrokerRegistration) -> Plan[AcceptedBroker]:
        """A broker starts, fenced. Raises InconsistentClusterId or UnsupportedVersion.

        A new incarnation loses the leadership of the old one: other replicas take over, or its partitions stay
        without a leader until it is unfenced; either way their leader epochs rise. A repeated registration changes
        nothing.

        One that may have lost records (see `returned_of`) is no longer eligible to lead where it was not in sync.
        """
        if broker.cluster_id and broker.cluster_id != image.cluster_id:
            raise InconsistentClusterId(
                f"Expected cluster ID {image.cluster_id}, but got cluster ID {broker.cluster_id}"
            )
        check_features(image, broker.node_id, broker.features)
        known = image.brokers.get(broker.node_id)
        is_same = known is not None and known.incarnation_id == broker.incarnation_id
        same = (broker.listeners, broker.rack, broker.features)
        if known is not None and is_same and (known.listeners, known.rack, known.features) == same:
            return Plan((), AcceptedBroker(known.epoch))
        record = RegisterBrokerRecord(
            node_id=broker.node_id,
            incarnation_id=broker.incarnation_id,
            listeners=broker.listeners,
            rack=broker.rack,
            features=broker.features,
            fenced=known.fenced if known is not None and is_same else True,
            in_controlled_shutdown=known.in_controlled_shutdown if known is not None and is_same else False,
            log_dirs=broker.log_dirs if may_replicate(image) else (),
        )
        if is_same:
            return Plan((record,), AcceptedBroker(image.offset + 1))
        changes = self._without(image, broker.node_id, returned_of(known, broker))
        return Plan((record, *changes), AcceptedBroker(image.offset + 1, losses(image, broker.node_id, changes)))

    def change_state(self, image: MetadataImage, broker: BrokerImage, state: BrokerState) -> list[MetadataRecord]:
        """The records that bring a broker into `state`; none if it is in it."""
        match state:
            case BrokerState.UNFENCED if not broker.is_active:
                change = _change(broker, fenced=False, in_controlled_shutdown=False)
                return [change, *self._with(image, broker.node_id)]
            case BrokerState.CONTROLLED_SHUTDOWN if not broker.in_controlled_shutdown:
                change = _change(broker, in_controlled_shutdown=True)
                return [change, *self._without(image, broker.node_id)]
            case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW if not broker.fenced:
                change = _change(broker, fenced=True)
                return [change, *self._without(image, broker.node_id)]
            case _:
                return []

    def unregister(self, image: MetadataImage, broker: BrokerImage) -> list[MetadataRecord]:
        """A broker leaves for good. Raises InvalidRequest while it runs, where Kafka forgets it all the same.

        Its partitions would lose their leader, and its process could only stop.
        """
        if not broker.fenced:
            raise InvalidRequest(
                f"Broker {broker.node_id} is running, and only one that was stopped can be unregistered: its classic "
                "partitions would have no leader. Stop it first, and try again when its session has ended."
            )
        gone = UnregisterBrokerRecord(node_id=broker.node_id, broker_epoch=broker.epoch)
        return [*self._without(image, broker.node_id), gone]

    def elect_uncleanly(self, image: MetadataImage, names: Iterable[str]) -> list[MetadataRecord]:
        """Elect leaders for partitions without one, those of these topics that allow a leader that is not in sync."""
        return [*self._succession.elect_uncleanly(image, indexed_topics(image).named(names))]

    def _with(self, image: MetadataImage, node_id: int) -> list[PartitionChangeRecord]:
        """The broker may lead again: partitions without a leader hold an election."""
        topics, broker = indexed_topics(image), image.brokers[node_id]

        def is_available(partition: PartitionImage, node: int) -> bool:
            if node == node_id:
                return broker.has_online(partition.directory_of(node))
            return image.is_available(partition, node)

        return self._succession.changes(image, leaderless(topics.named(topics.leaderless)), is_available)

    def _without(
        self,
        image: MetadataImage,
        node_id: int,
        returned: Callable[[PartitionImage], Returned] = lambda partition: KEPT_EVERYTHING,
    ) -> list[PartitionChangeRecord]:
        """The broker may no longer lead or be in sync; it stays eligible where fewer than enough are in sync."""
        held = (
            (topic, partition, tuple(node for node in partition.isr if node != node_id))
            for topic in indexed_topics(image).held_by(node_id)
            for partition in topic.partitions
            if node_id in partition.isr
            or partition.leader == node_id
            or returned(partition).incomplete in partition.elr
            or returned(partition).empty in partition.last_known_elr
        )
        return self._succession.changes(
            image, held, lambda partition, node: node != node_id and image.is_available(partition, node), returned
        )


def _change(
    broker: BrokerImage, *, fenced: bool | None = None, in_controlled_shutdown: bool | None = None
) -> BrokerChangeRecord:
    """A record that holds only the fields that change."""
    return BrokerChangeRecord(
        node_id=broker.node_id,
        broker_epoch=broker.epoch,
        fenced=None if fenced == broker.fenced else fenced,
        in_controlled_shutdown=None
        if in_controlled_shutdown == broker.in_controlled_shutdown
        else in_controlled_shutdown,
    )
