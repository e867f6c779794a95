"""The metadata of the cluster at one offset of its log. Immutable: a new image shares what did not change."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeAlias

from strandline.metadata.administered import NOTHING_ADMINISTERED, Administered
from strandline.model import NO_LEADER

EMPTY_OFFSET: Final = -1
NO_CONTROLLER: Final = -1

UNASSIGNED: Final = uuid.UUID(int=1)
"""The log directory of a replica that its broker has not named. Kafka's number."""
RESERVED_DIRECTORY_IDS: Final = 100
"""Smaller numbers are not ids of log directories."""
_shared: Final = lru_cache(maxsize=4096)(lambda *directories: directories)  # thousands of partitions share a few lists


class ConfigResourceType(IntEnum):
    """The kind of resource that has settings. Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class LeaderRecoveryState(IntEnum):
    """Whether a leader was elected from outside the in-sync set and has not recovered yet."""

    RECOVERED = 0
    RECOVERING = 1


class ConfigResource(NamedTuple):
    """A topic by name, a broker by id, all brokers (type BROKER, empty name), a subscription to metrics by name."""

    type: ConfigResourceType
    name: str


Overrides: TypeAlias = Mapping[str, str]
NO_OVERRIDES: Final[Overrides] = {}


class Listener(NamedTuple):
    """Where clients reach a broker."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class FeatureSupport(NamedTuple):
    """The levels of a feature that a broker can work with."""

    name: str
    min: int
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerImage:
    """A registered broker. `epoch` is the offset of its registration record.

    `log_dirs` are the ids of its log directories when it registered; none if the cluster's level of metadata did not
    allow to record them. `failed_log_dirs` are those that have failed since: they come back with another registration.
    """

    node_id: int
    epoch: int
    incarnation_id: uuid.UUID
    listeners: tuple[Listener, ...]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    features: tuple[FeatureSupport, ...] = ()
    log_dirs: tuple[uuid.UUID, ...] = ()
    failed_log_dirs: tuple[uuid.UUID, ...] = ()

    def has_online(self, directory: uuid.UUID) -> bool:
        """True if it has this log directory, as far as is known. A replica that is in none has nothing to miss."""
        if directory == UNASSIGNED:
            return True
        return directory not in self.failed_log_dirs and (not self.log_dirs or directory in self.log_dirs)

    @property
    def is_active(self) -> bool:
        """True if it may lead partitions and be in sync."""
        return not self.fenced and not self.in_controlled_shutdown

    def listener(self, name: str) -> Listener | None:
        """The listener of that name."""
        return next((listener for listener in self.listeners if listener.name == name), None)


class PartitionImage(NamedTuple):
    """One partition: its replicas, the in-sync set, the leader and its epoch.

    `elr`, the eligible leader replicas (KIP-966), had every committed record when the in-sync set fell below
    min.insync.replicas; since then none was committed. They may lead if no in-sync replica can. `last_known_elr` has
    the last leader while there is none.

    `directories` are the log directories of the `replicas`, in their order, UNASSIGNED where one is not known; empty if
    none is. Brokers with several directories name them, once they have the log. They are no part of what the partition
    epoch counts: whether one that failed leads or is in sync is.
    """

    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    directories: tuple[uuid.UUID, ...] = ()

    def directory_of(self, node_id: int) -> uuid.UUID:
        """The log directory of the replica on this broker; UNASSIGNED if it is not known, or there is no replica."""
        if not self.directories or node_id not in self.replicas:
            return UNASSIGNED
        return self.directories[self.replicas.index(node_id)]

    def in_directory(self, node_id: int, directory: uuid.UUID) -> PartitionImage:
        """The partition with the replica on this broker in another log directory."""
        known = {node: self.directory_of(node) for node in self.replicas} | {node_id: directory}
        return self._replace(directories=_shared(*[known[node] for node in self.replicas]))

    @property
    def has_leader(self) -> bool:
        """True if some broker leads it."""
        return self.leader != NO_LEADER

    @property
    def preferred_leader(self) -> int:
        """The first assigned replica."""
        return self.replicas[0]

    def changed(
        self,
        isr: tuple[int, ...] | None = None,
        leader: int | None = None,
        recovery_state: LeaderRecoveryState | None = None,
        replicas: tuple[int, ...] | None = None,
        elr: tuple[int, ...] | None = None,
        last_known_elr: tuple[int, ...] | None = None,
    ) -> PartitionImage:
        """The partition after a change (None: unchanged). Giving a leader starts a new leader epoch."""
        return PartitionImage(
            self.partition,
            self.replicas if replicas is None else replicas,
            self.isr if isr is None else isr,
            self.leader if leader is None else leader,
            self.leader_epoch if leader is None else self.leader_epoch + 1,
            self.partition_epoch + 1,
            self.leader_recovery_state if recovery_state is None else recovery_state,
            self.elr if elr is None else elr,
            self.last_known_elr if last_known_elr is None else last_known_elr,
            self.directories if replicas is None else self._directories_of(replicas),
        )

    def _directories_of(self, replicas: tuple[int, ...]) -> tuple[uuid.UUID, ...]:
        found = tuple([self.directory_of(node) for node in replicas]) if self.directories else ()
        return _shared(*found) if any(one != UNASSIGNED for one in found) else ()


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic and its partitions, by number."""

    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionImage, ...]

    def partition(self, number: int) -> PartitionImage | None:
        """The partition of that number."""
        return self.partitions[number] if 0 <= number < len(self.partitions) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    """Everything the metadata log says up to and including `offset`."""

    offset: int = EMPTY_OFFSET
    cluster_id: str = ""
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = 0
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[uuid.UUID, TopicImage] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Overrides] = field(default_factory=dict)
    next_producer_id: int = 0
    administered: Administered = NOTHING_ADMINISTERED

    def partition(self, topic: str, number: int) -> PartitionImage | None:
        """The partition, or None if there is no such topic or number."""
        found = self.topics.get(topic)
        return None if found is None else found.partition(number)

    def all_partitions(self) -> Iterator[tuple[TopicImage, PartitionImage]]:
        """Every partition of the cluster, topic by topic."""
        for topic in self.topics.values():
            for partition in topic.partitions:
                yield topic, partition

    def is_active(self, node_id: int) -> bool:
        """True if the broker is registered, not fenced and not shutting down."""
        broker = self.brokers.get(node_id)
        return broker is not None and broker.is_active

    def is_available(self, partition: PartitionImage, node_id: int) -> bool:
        """True if the broker is active, and its replica of the partition in a log directory that is online."""
        broker = self.brokers.get(node_id)
        return broker is not None and broker.is_active and broker.has_online(partition.directory_of(node_id))

    def alive_brokers(self) -> tuple[BrokerImage, ...]:
        """The brokers that clients may be sent to, by id."""
        return tuple(self.brokers[node_id] for node_id in sorted(self.brokers) if not self.brokers[node_id].fenced)

    def overrides(self, resource: ConfigResource) -> Overrides:
        """The settings of this resource itself."""
        return self.configs.get(resource, NO_OVERRIDES)

    def topic_overrides(self, name: str) -> Overrides:
        """The settings of this topic that differ from the brokers'."""
        return self.overrides(ConfigResource(ConfigResourceType.TOPIC, name))

    def broker_overrides(self, node_id: int) -> Overrides:
        """The dynamic settings of this one broker."""
        return self.overrides(ConfigResource(ConfigResourceType.BROKER, str(node_id)))

    def cluster_default_overrides(self) -> Overrides:
        """The dynamic settings of all brokers."""
        return self.overrides(ConfigResource(ConfigResourceType.BROKER, ""))


EMPTY_IMAGE: Final = MetadataImage()


class Images(Protocol):
    """Holds the newest image: the loader."""

    @property
    def image(self) -> MetadataImage:
        """The newest image."""
