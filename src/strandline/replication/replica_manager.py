"""The registry of this broker's replicas. It finds partitions and makes them follow the metadata."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from strandline.config import TopicConfig
from strandline.errors import (
    KafkaStorageError,
    NotLeaderOrFollower,
    StrandlineError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from strandline.log import LogManager, UnifiedLog
from strandline.metadata import UNASSIGNED, MetadataDelta, MetadataImage, PartitionImage, TopicImage
from strandline.model import BrokerId, LeaderEpoch, TopicPartition
from strandline.replication.leader import LeaderRole
from strandline.replication.leader_environment import ALONE, LeaderEnvironment
from strandline.replication.partition import Partition
from strandline.replication.writer import LogWriter

logger = logging.getLogger(__name__)

_CREATED_AT_ONCE: Final = 64
_CREATED_PER_TURN: Final = 4


class _Uncreated(NamedTuple):
    """A replica without a log. `is_new` if it was given to this broker since it started: no directory can have it."""

    topic: TopicImage
    image: PartitionImage
    is_new: bool


def every_partition(partition: int) -> bool:
    """Every partition of a topic is local."""
    return True


class LeadershipListener(Protocol):
    """A coordinator, which keeps its state in partitions that this broker leads. Not told of other leaders."""

    def leadership_gained(self, partition: Partition, leader_epoch: LeaderEpoch) -> None:
        """This broker leads the partition from now on."""

    def leadership_lost(self, partition: TopicPartition, leader_epoch: LeaderEpoch) -> None:
        """This broker does not lead the partition any more."""


class ReplicaListener(Protocol):
    """A component that follows the replicas of all topics. Called on the event loop; must not block."""

    def replica_changed(self, partition: Partition) -> None:
        """A replica was added, has another leader or leader epoch, or its topic has other settings."""

    def replica_removed(self, partition: Partition, *, is_deleted: bool) -> None:
        """A replica is not on this broker any more: its topic was deleted, or other brokers have it, or it failed."""


class ReplicaManager:
    """Holds a `Partition` for each replica on this broker."""

    def __init__(
        self,
        node_id: BrokerId,
        logs: LogManager,
        *,
        loop: asyncio.AbstractEventLoop,
        topic_config: Callable[[str], TopicConfig],
        local_partitions: Callable[[TopicImage], Callable[[int], bool]] = lambda topic: every_partition,
        environment: LeaderEnvironment = ALONE,
        make_writer: Callable[[asyncio.AbstractEventLoop, str], LogWriter] = LogWriter,
    ) -> None:
        """`make_writer` makes the writer of a log directory, by the name of that."""
        self.node_id = node_id
        self._logs = logs
        self._loop = loop
        self._topic_config = topic_config
        self._local_partitions = local_partitions  # False for partitions that have no log on any broker
        self._environment = environment
        self._make_writer = make_writer
        self._image: MetadataImage | None = None
        # Keys are TopicPartition; plain (topic, partition) tuples find them too.
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._names_by_id: dict[bytes, str] = {}
        self._with_followers: set[Partition] = set()
        self._offline: dict[tuple[str, int], str] = {}
        self._writers: dict[str, LogWriter] = {}
        self._listeners: dict[str, LeadershipListener] = {}
        self._replica_listeners: list[ReplicaListener] = []
        # Replicas that the metadata gives this broker and that have no log yet, in the order they were given.
        self._uncreated: dict[TopicPartition, _Uncreated] = {}
        self._is_creating = False

    # Finding

    @property
    def by_key(self) -> Mapping[tuple[str, int], Partition]:
        """Every replica on this broker, by topic and partition; always as it is now."""
        return self._partitions

    def find(self, topic: str, partition: int) -> Partition:
        """The replica on this broker. Raises the error of `why_missing`."""
        found = self._partitions.get((topic, partition))
        if found is None:
            raise self.why_missing(topic, partition)
        return found

    def get_leader(self, topic_partition: TopicPartition) -> Partition:
        """The replica, if it leads. Raises UnknownTopicOrPartition, NotLeaderOrFollower or KafkaStorageError."""
        partition = self.find(*topic_partition)
        partition.check_leader()
        return partition

    def topic_name(self, topic_id: bytes) -> str:
        """The name of the topic with these 16 bytes of id. Raises UnknownTopicId."""
        name = self._names_by_id.get(topic_id)
        if name is None:
            raise UnknownTopicId(f"No topic has the id {topic_id.hex()}.")
        return name

    def partitions(self) -> Iterator[Partition]:
        """Every replica on this broker."""
        return iter(tuple(self._partitions.values()))

    def __len__(self) -> int:
        return len(self._partitions)

    def why_missing(self, topic: str, partition: int) -> StrandlineError:
        """The error for a client that asks for a partition without a replica on this broker."""
        reason = self._offline.get((topic, partition))
        if reason is not None:
            return KafkaStorageError(reason)
        known = self._image.topics.get(topic) if self._image is not None else None
        if known is not None and 0 <= partition < len(known.partitions):
            return NotLeaderOrFollower(f"Broker {self.node_id} holds no replica of {topic}-{partition}.")
        return UnknownTopicOrPartition(f"This cluster has no partition {topic}-{partition}.")

    # Following the metadata

    def add_listener(self, topic: str, listener: LeadershipListener) -> None:
        """Notify `listener` of leadership changes of this topic, first of the partitions that this broker leads now."""
        self._listeners[topic] = listener
        for partition in self.partitions():
            if partition.topic_partition.topic == topic and partition.is_leader:
                listener.leadership_gained(partition, partition.leader_epoch)

    def add_replica_listener(self, listener: ReplicaListener) -> Callable[[], None]:
        """Notify `listener` of all replicas, first of the existing ones. Returns a function that ends it."""
        self._replica_listeners.append(listener)
        for partition in self.partitions():
            listener.replica_changed(partition)
        return lambda: self._replica_listeners.remove(listener)

    def _replica_changed(self, partition: Partition) -> None:
        for listener in self._replica_listeners:
            listener.replica_changed(partition)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Make local replicas what the image says they are. Called on the event loop, in order."""
        before = None if self._image is None else delta.old
        self._image = image
        for topic in delta.deleted_topics.values():
            self._delete_topic(topic)
        for topic in delta.changed_topics.values():
            self._names_by_id[topic.topic_id.bytes] = topic.name
        for key, changed in delta.changed_partitions.items():
            topic = delta.changed_topics[key.topic]
            is_new = before is not None and not self._had_replica(before, topic, changed)
            self._follow_one(
                key, topic, changed, is_local=self._local_partitions(topic), is_changed=True, is_new=is_new
            )
        for topic in delta.topics_with_other_settings():
            self._follow(topic, is_changed=topic.name in delta.changed_topics)
        if self._uncreated:
            self._create_some(_CREATED_AT_ONCE)
        if delta.changes_defaults:
            self._refresh_configs(self._partitions.values())
        elif delta.changed_configs:
            self._refresh_configs(self._of_topics(delta.topics_with_other_settings()))
        if delta.changed_brokers:
            # A follower that was about to join, or has yet to delete records, may be gone: no partition shows that.
            self.check_in_sync_sets()

    def _had_replica(self, before: MetadataImage, topic: TopicImage, image: PartitionImage) -> bool:
        known = before.topics_by_id.get(topic.topic_id)
        partition = None if known is None else known.partition(image.partition)
        return partition is not None and self.node_id in partition.replicas

    def follow(self, topic: TopicImage) -> None:
        """Look at the partitions of a topic again: which of them have a log here may have changed."""
        self._follow(topic, is_changed=True)
        self._create_some(_CREATED_AT_ONCE)

    def _follow(self, topic: TopicImage, *, is_changed: bool) -> None:
        """Look at all partitions of a topic. An offline replica is tried again only if the topic itself has changed."""
        is_local = self._local_partitions(topic)
        for image in topic.partitions:
            key = TopicPartition(topic.name, image.partition)
            self._follow_one(key, topic, image, is_local=is_local, is_changed=is_changed)

    def _follow_one(
        self,
        key: TopicPartition,
        topic: TopicImage,
        image: PartitionImage,
        *,
        is_local: Callable[[int], bool],
        is_changed: bool,
        is_new: bool = False,
    ) -> None:
        partition = self._partitions.get(key)
        if self.node_id not in image.replicas:
            self._remove(key, image.leader_epoch)
        elif partition is None:
            if (key not in self._offline or (is_changed and self._logs.get(key) is None)) and is_local(image.partition):
                waiting = self._uncreated.get(key)
                is_new = is_new or (waiting is not None and waiting.is_new)
                self._uncreated[key] = _Uncreated(topic, image, is_new)
        elif is_changed or partition.partition_epoch != image.partition_epoch:
            self._follow_image(partition, image)

    def _follow_image(self, partition: Partition, image: PartitionImage) -> bool:
        """Let a replica follow, and tell listeners. False if they were told nothing."""
        was_leader = partition.is_leader
        has_changed = partition.follow(image)
        if partition.is_leader and not partition.is_only_replica:
            self._with_followers.add(partition)
        else:
            self._with_followers.discard(partition)
        if has_changed:
            self._tell(partition, was_leader=was_leader)
        return has_changed

    def _create_some(self, limit: int) -> None:
        """Create replicas, at most `limit` new logs in this turn of the loop: creating files takes time."""
        made = 0
        while self._uncreated and made < limit:
            key = next(iter(self._uncreated))
            uncreated = self._uncreated.pop(key)
            made += self._logs.get(key) is None
            self._create(key, uncreated)
        if self._uncreated and not self._is_creating:
            self._is_creating = True
            self._loop.call_soon(self._create_more)

    def _create_more(self) -> None:
        self._is_creating = False
        self._create_some(_CREATED_PER_TURN)

    def _create(self, key: TopicPartition, uncreated: _Uncreated) -> None:
        topic, image, _ = uncreated
        config = self._topic_config(topic.name)
        # A diskless topic that has a log had it before: another one would be the end of the records in the first.
        is_new = not config.diskless_enable and self._has_no_log(uncreated)
        try:
            log = self._logs.get_or_create(key, topic.topic_id, config, is_new=is_new)
        except KafkaStorageError as error:
            logger.error("%s has no usable log directory: %s", key, error)
            self._offline[key] = str(error)
            return
        self._offline.pop(key, None)
        partition = Partition(
            key,
            topic.topic_id,
            log,
            node_id=self.node_id,
            writer=self._writer_of(log),
            environment=self._environment,
        )
        self._partitions[key] = partition
        if not self._follow_image(partition, image):
            self._replica_changed(partition)

    def _has_no_log(self, uncreated: _Uncreated) -> bool:
        """True if no log directory that is away can have a log of this replica, as far as the metadata says."""
        directory = uncreated.image.directory_of(self.node_id)
        return uncreated.is_new if directory == UNASSIGNED else directory in self._logs.directory_ids

    def _writer_of(self, log: UnifiedLog) -> LogWriter:
        directory = log.env.directory.path
        writer = self._writers.get(directory)
        if writer is None:
            writer = self._writers[directory] = self._make_writer(self._loop, os.path.basename(directory))
        return writer

    def _tell(self, partition: Partition, *, was_leader: bool) -> None:
        self._replica_changed(partition)
        listener = self._listeners.get(partition.topic_partition.topic)
        if listener is None:
            return
        if partition.is_leader:
            listener.leadership_gained(partition, partition.leader_epoch)
        elif was_leader:
            listener.leadership_lost(partition.topic_partition, partition.leader_epoch)

    def check_in_sync_sets(self) -> None:
        """Time has passed, or other brokers have changed: see `LeaderRole.check_in_sync_set`."""
        for partition in tuple(self._with_followers):
            if isinstance(partition.role, LeaderRole):
                partition.role.check_in_sync_set()

    def _delete_topic(self, topic: TopicImage) -> None:
        self._names_by_id.pop(topic.topic_id.bytes, None)
        for image in topic.partitions:
            self._remove(TopicPartition(topic.name, image.partition), image.leader_epoch, is_deleted=True)

    def _remove(self, key: TopicPartition, leader_epoch: LeaderEpoch, *, is_deleted: bool = False) -> None:
        self._uncreated.pop(key, None)
        partition = self._partitions.pop(key, None)
        if partition is None:
            if self._offline.pop(key, None) is not None:
                self._logs.delete(key)  # only forgotten: what is in the directory is no part of the topic any more
            return
        was_leader = partition.is_leader
        self._with_followers.discard(partition)
        partition.close(UnknownTopicOrPartition(f"{key} was removed from broker {self.node_id}."))
        if was_leader and (listener := self._listeners.get(key.topic)) is not None:
            listener.leadership_lost(key, leader_epoch)
        for replica_listener in self._replica_listeners:
            replica_listener.replica_removed(partition, is_deleted=is_deleted)
        self._logs.delete(key)

    def _of_topics(self, topics: Iterable[TopicImage]) -> Iterator[Partition]:
        for topic in topics:
            for image in topic.partitions:
                partition = self._partitions.get((topic.name, image.partition))
                if partition is not None:
                    yield partition

    def _refresh_configs(self, partitions: Iterable[Partition]) -> None:
        """Topic or broker settings changed: give the logs of these partitions the ones in force now."""
        configs: dict[str, TopicConfig] = {}
        for partition in partitions:
            topic = partition.topic_partition.topic
            config = configs.get(topic)
            if config is None:
                config = configs[topic] = self._topic_config(topic)
            if config != partition.log.config:
                partition.update_config(config)
                self._replica_changed(partition)

    def directory_failed(self, directory: Path) -> None:
        """A log directory failed: its partitions answer with KafkaStorageError, the others go on."""
        for key, partition in list(self._partitions.items()):
            if partition.log.directory.parent != directory:
                continue
            del self._partitions[key]
            self._offline[key] = f"The log directory {directory} of {key[0]}-{key[1]} is offline."
            was_leader = partition.is_leader
            self._with_followers.discard(partition)
            partition.close(KafkaStorageError(f"The log directory {directory} of {key[0]}-{key[1]} failed."))
            if was_leader and (listener := self._listeners.get(key[0])) is not None:
                listener.leadership_lost(partition.topic_partition, partition.leader_epoch)
            for replica_listener in self._replica_listeners:
                replica_listener.replica_removed(partition, is_deleted=False)

    def close(self) -> None:
        """Finish queued writes. Call it before the logs are closed."""
        self._uncreated.clear()
        for writer in self._writers.values():
            writer.close()
        for partition in self.partitions():
            partition.close(NotLeaderOrFollower(f"Broker {self.node_id} is shutting down."))
