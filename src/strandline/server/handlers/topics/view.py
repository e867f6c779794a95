"""Topics as clients see them through one listener: leaders they can reach, and replicas that are offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strandline.metadata import BrokerImage, Listener, MetadataImage, PartitionImage, TopicImage
from strandline.model import NO_LEADER
from strandline.server.handlers.common import ServedTopics, is_internal
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic


def broker_endpoints(image: MetadataImage, listener: str) -> list[tuple[BrokerImage, Listener]]:
    """The alive brokers that have this listener, and where it is."""
    return _with_listener(image.alive_brokers(), listener)


def bootstrap_endpoints(image: MetadataImage, listener: str) -> list[tuple[BrokerImage, Listener]]:
    """The brokers that clients are told of: the alive ones, or all that are registered if none is alive.

    The last broker of a cluster answers while it stops. librdkafka forgets the brokers that an answer leaves out, also
    the last one, and then has no broker left to ask.
    """
    return broker_endpoints(image, listener) or _with_listener(image.brokers.values(), listener)


def _with_listener(brokers: Iterable[BrokerImage], listener: str) -> list[tuple[BrokerImage, Listener]]:
    found = ((broker, broker.listener(listener)) for broker in brokers)
    return [(broker, endpoint) for broker, endpoint in found if endpoint is not None]


class PartitionView(NamedTuple):
    """A partition through a listener. `leader` is -1, and `error` says why, if there is none to reach."""

    error: ErrorCode
    leader: int
    offline: tuple[int, ...]


def view_partition(
    partition: PartitionImage, brokers: Mapping[int, BrokerImage], reachable: frozenset[int]
) -> PartitionView:
    """`reachable` are the alive brokers with the client's listener."""
    offline = tuple(node for node in partition.replicas if node not in reachable or _is_away(partition, node, brokers))
    if partition.leader in reachable:
        return PartitionView(ErrorCode.NONE, partition.leader, offline)
    leader = brokers.get(partition.leader)
    is_alive = leader is not None and not leader.fenced
    return PartitionView(
        ErrorCode.LISTENER_NOT_FOUND if is_alive else ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, offline
    )


def _is_away(partition: PartitionImage, node_id: int, brokers: Mapping[int, BrokerImage]) -> bool:
    """True if the log directory of a replica has failed on a broker that goes on."""
    broker = brokers.get(node_id) if partition.directories else None
    return broker is not None and not broker.has_online(partition.directory_of(node_id))


class TopicViews:
    """Described topics, kept until the topic, a broker or the answer of `ServedTopics` changes.

    Callers may not change what they get.
    """

    def __init__(self, served: ServedTopics) -> None:
        self._served = served
        self._brokers: Mapping[int, BrokerImage] = {}
        self._version = 0
        self._reachable: dict[str, frozenset[int]] = {}
        self._kept: dict[tuple[str, bool], dict[str, tuple[TopicImage, MetadataResponseTopic]]] = {}

    def describe(
        self, image: MetadataImage, topic: TopicImage, listener: str, *, only_alive_replicas: bool
    ) -> MetadataResponseTopic:
        """The topic in the form of a Metadata response. Version 0 lists alive replicas only."""
        version = self._served.view_version
        if image.brokers is not self._brokers or version != self._version:
            self._brokers, self._version = image.brokers, version
            self._reachable.clear()
            self._kept.clear()
        kept = self._kept.setdefault((listener, only_alive_replicas), {})
        found = kept.get(topic.name)
        if found is not None and found[0] is topic:
            return found[1]
        if len(kept) > 2 * len(image.topics):
            kept.clear()  # topics that were deleted meanwhile
        described = self._described(topic, self.reachable(image, listener), only_alive_replicas=only_alive_replicas)
        kept[topic.name] = (topic, described)
        return described

    def reachable(self, image: MetadataImage, listener: str) -> frozenset[int]:
        """The ids of the alive brokers that have this listener."""
        found = self._reachable.get(listener)
        if found is None or image.brokers is not self._brokers:
            found = frozenset(broker.node_id for broker, _ in broker_endpoints(image, listener))
            if image.brokers is self._brokers:
                self._reachable[listener] = found
        return found

    def _described(
        self, topic: TopicImage, reachable: frozenset[int], *, only_alive_replicas: bool
    ) -> MetadataResponseTopic:
        partitions = []
        for partition in self._served.as_served(topic, reachable).partitions:
            view = view_partition(partition, self._brokers, reachable)
            replicas, isr, error = list(partition.replicas), list(partition.isr), view.error
            if only_alive_replicas:
                replicas = [node for node in replicas if node in reachable]
                isr = [node for node in isr if node in reachable]
                if error is ErrorCode.NONE and view.offline:
                    error = ErrorCode.REPLICA_NOT_AVAILABLE
            partitions.append(
                MetadataResponsePartition(
                    error_code=error,
                    partition_index=partition.partition,
                    leader_id=view.leader,
                    leader_epoch=partition.leader_epoch,
                    replica_nodes=replicas,
                    isr_nodes=isr,
                    offline_replicas=list(view.offline),
                )
            )
        return MetadataResponseTopic(
            name=topic.name, topic_id=topic.topic_id, is_internal=is_internal(topic.name), partitions=partitions
        )
