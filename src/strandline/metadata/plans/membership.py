"""Plans for brokers that register, change their state or leave: their registration, and leaders of their partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from strandline.errors import BrokerIdNotRegistered, InconsistentClusterId, InvalidRequest, StaleBrokerEpoch
from strandline.metadata.features import may_replicate
from strandline.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.plans.elections import (
    KEPT_EVERYTHING,
    ElectionType,
    PartitionChange,
    Returned,
    grouped,
    partition_change,
)
from strandline.metadata.plans.features import check_features
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.records import (
    BrokerChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from strandline.metadata.requests import BrokerHeartbeat, BrokerRegistration, Plan
from strandline.metadata.topic_map import indexed_topics
from strandline.model import NO_LEADER, TopicPartition

_MOST_NAMED: Final = 10


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
        self._rules = rules

    def register(self, image: MetadataImage, broker: BrokerRegistration) -> Plan[AcceptedBroker]:
        """A broker starts, fenced. Raises InconsistentClusterId or UnsupportedVersion.

        A new incarnation loses the leadership of the old one: other replicas take over, or its partitions stay
        without a leader until it is unfenced; either way their leader epochs rise. A repeated registration changes
        nothing.

        One that may have lost records (see `_returned`) is no longer eligible to lead where it was not in sync.
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
        returned = _returned(known, broker)
        changes = self._without(image, broker.node_id, returned)
        return Plan((record, *changes), AcceptedBroker(image.offset + 1, _losses(image, changes, returned)))

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
        allowed = (
            topic
            for topic in indexed_topics(image).named(names)
            if self._rules.allows_unclean_election(image, topic.name)
        )
        return [*self._changes(image, _leaderless(allowed), image.is_active)]

    def _with(self, image: MetadataImage, node_id: int) -> list[PartitionChangeRecord]:
        """The broker may lead again: partitions without a leader hold an election."""
        topics = indexed_topics(image)
        leaderless = _leaderless(topics.named(topics.leaderless))
        return self._changes(image, leaderless, lambda node: node == node_id or image.is_active(node))

    def _without(
        self, image: MetadataImage, node_id: int, returned: Returned = KEPT_EVERYTHING
    ) -> list[PartitionChangeRecord]:
        """The broker may no longer lead or be in sync; it stays eligible where fewer than enough are in sync."""
        held = (
            (topic, partition, tuple(node for node in partition.isr if node != node_id))
            for topic in indexed_topics(image).held_by(node_id)
            for partition in topic.partitions
            if node_id in partition.isr
            or partition.leader == node_id
            or returned.incomplete in partition.elr
            or returned.empty in partition.last_known_elr
        )
        return self._changes(image, held, lambda node: node != node_id and image.is_active(node), returned)

    def _changes(
        self,
        image: MetadataImage,
        targets: Iterable[tuple[TopicImage, PartitionImage, tuple[int, ...]]],
        is_active: Callable[[int], bool],
        returned: Returned = KEPT_EVERYTHING,
    ) -> list[PartitionChangeRecord]:
        return grouped(self._elections(image, targets, is_active, returned))

    def _elections(
        self,
        image: MetadataImage,
        targets: Iterable[tuple[TopicImage, PartitionImage, tuple[int, ...]]],
        is_active: Callable[[int], bool],
        returned: Returned,
    ) -> Iterator[PartitionChange]:
        unclean: dict[str, ElectionType] = {}
        for topic, partition, isr in targets:
            election = unclean.get(topic.name)
            if election is None:
                allowed = self._rules.allows_unclean_election(image, topic.name)
                election = unclean[topic.name] = ElectionType.UNCLEAN if allowed else ElectionType.ONLINE
            change = partition_change(
                topic.topic_id,
                partition,
                isr=isr,
                is_active=is_active,
                election=election,
                committed_by=self._rules.committed_by(image, topic.name, partition),
                returned=returned,
            )
            if change is not None:
                yield change


def _leaderless(topics: Iterable[TopicImage]) -> Iterator[tuple[TopicImage, PartitionImage, tuple[int, ...]]]:
    for topic in topics:
        for partition in topic.partitions:
            if not partition.has_leader:
                yield topic, partition, partition.isr


def _returned(known: BrokerImage | None, broker: BrokerRegistration) -> Returned:
    """What the new incarnation may have lost of what an earlier one had.

    It has everything if it says which epoch it had, and that was the last one. Otherwise its machine may have lost what
    was not yet on the disk. If a directory is not among those that it has, the records in it are gone; so they are if
    it cannot say that it was here before, and the cluster has forgotten.
    """
    if known is None:
        is_empty, is_complete = broker.previous_broker_epoch < 0, False
    else:
        is_empty = not set(known.log_dirs) <= set(broker.log_dirs)
        is_complete = broker.previous_broker_epoch == known.epoch and not is_empty
    return Returned(
        incomplete=NO_LEADER if is_complete else broker.node_id, empty=broker.node_id if is_empty else NO_LEADER
    )


def _losses(image: MetadataImage, changes: Iterable[PartitionChangeRecord], returned: Returned) -> str:
    """A sentence for operators if partitions have lost the last replica that may have led them; or nothing."""
    lost = []
    for change in changes:
        for topic_id, numbers in change.partitions if returned.incomplete != NO_LEADER else ():
            topic = image.topics_by_id[topic_id]
            for number in numbers:
                after = topic.partitions[number].changed(
                    change.isr, change.leader, elr=change.elr, last_known_elr=change.last_known_elr
                )
                if not after.has_leader and not (after.isr or after.elr or after.last_known_elr):
                    lost.append(TopicPartition(topic.name, number))
    if not lost:
        return ""
    named = ", ".join(map(str, lost[:_MOST_NAMED])) + (", ..." if len(lost) > _MOST_NAMED else "")
    return (
        f"Broker {returned.incomplete} has started without the log that it had. It was the last replica with all "
        f"committed records of partitions that have no leader now ({len(lost)} in all): {named}. Bring it back with "
        "its log directories, or give up what is lost (kafka-leader-election --election-type UNCLEAN)."
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
