"""From one image to the next. Pure: records in, a new image and what changed out."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from strandline.metadata.administered import AdministeredBuilder
from strandline.metadata.bucket_map import BucketEditor, BucketMap
from strandline.metadata.config_map import ConfigEditor, ConfigMap
from strandline.metadata.image import (
    BrokerImage,
    ConfigResource,
    ConfigResourceType,
    MetadataImage,
    Overrides,
    PartitionImage,
    TopicImage,
)
from strandline.metadata.records import (
    BrokerChangeRecord,
    ClientQuotaRecord,
    ClusterRecord,
    ConfigRecord,
    ControllerChangeRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    ReplicaDirectoryRecord,
    ScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from strandline.metadata.topic_map import TopicEditor, indexed_topics
from strandline.model import TopicPartition
from strandline.sql import StoreCorrupt
from strandline.tasks import in_one_go

BUILT_PER_STEP: Final = 250  # partitions and resources with settings, in one turn of the event loop


class InconsistentLog(StoreCorrupt):
    """A record refers to an object that no earlier record created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataDelta:
    """The difference between two images.

    A topic that was deleted and created again under the same name is in both `deleted_topics` (the old one) and
    `changed_topics`. `changed_partitions` holds the new and the changed partitions of `changed_topics`. Code that
    follows quotas, credentials or features compares `administered` of both images: it is the same object if nothing
    changed.
    """

    old: MetadataImage
    new: MetadataImage
    changed_topics: Mapping[str, TopicImage] = field(default_factory=dict)
    deleted_topics: Mapping[uuid.UUID, TopicImage] = field(default_factory=dict)
    changed_partitions: Mapping[TopicPartition, PartitionImage] = field(default_factory=dict)
    changed_brokers: Mapping[int, BrokerImage | None] = field(default_factory=dict)
    changed_configs: Mapping[ConfigResource, Overrides] = field(default_factory=dict)

    def fenced_brokers(self) -> Iterator[int]:
        """The brokers that lead nothing any more: they are fenced now, or not registered. One may have been before."""
        for node_id, broker in self.changed_brokers.items():
            if broker is None or broker.fenced:
                yield node_id

    def topics_to_look_at(self) -> Iterator[TopicImage]:
        """New topics, and topics whose partitions or settings have changed."""
        yield from self.changed_topics.values()
        for topic in self.topics_with_other_settings():
            if topic.name not in self.changed_topics:
                yield topic

    @property
    def changes_defaults(self) -> bool:
        """True if settings of brokers have changed: they hold for all topics."""
        return any(resource.type is ConfigResourceType.BROKER for resource in self.changed_configs)

    def topics_with_other_settings(self) -> Iterator[TopicImage]:
        """Topics whose own settings have changed."""
        for resource in self.changed_configs:
            topic = self.new.topics.get(resource.name) if resource.type is ConfigResourceType.TOPIC else None
            if topic is not None:
                yield topic


class ImageBuilder:
    """Applies records on top of an image. Copies only what the records touch."""

    __slots__ = (
        "_administered",
        "_brokers",
        "_changed_brokers",
        "_cluster_id",
        "_configs",
        "_controller_epoch",
        "_controller_id",
        "_deleted",
        "_names",
        "_next_producer_id",
        "_offset",
        "_old",
        "_partitions",
    )

    def __init__(self, image: MetadataImage) -> None:
        self._old = image
        self._offset = image.offset
        self._cluster_id = image.cluster_id
        self._controller_id, self._controller_epoch = image.controller_id, image.controller_epoch
        self._next_producer_id = image.next_producer_id
        self._administered = AdministeredBuilder(image.administered)
        self._brokers: dict[int, BrokerImage] = dict(image.brokers)
        self._changed_brokers: set[int] = set()
        self._configs: dict[ConfigResource, dict[str, str]] = {}
        self._names: dict[uuid.UUID, str] = {}  # topics that the records create or change
        self._partitions: dict[uuid.UUID, dict[int, PartitionImage]] = {}  # their new and changed partitions
        self._deleted: dict[uuid.UUID, TopicImage] = {}

    def apply(self, offset: int, record: MetadataRecord) -> None:
        """Apply the next record of the log."""
        self._offset = offset
        match record:
            case PartitionChangeRecord():
                self._change_partitions(record)
            case PartitionRecord():
                self._add_partition(record)
            case ReplicaDirectoryRecord():
                self._change_directories(record)
            case TopicRecord():
                self._names[record.topic_id] = record.name
                self._partitions[record.topic_id] = {}
            case RemoveTopicRecord():
                self._remove_topic(record)
            case ConfigRecord():
                self._change_config(record)
            case ClientQuotaRecord():
                self._administered.set_quota(record.entity, record.key, record.value)
            case ScramCredentialRecord():
                self._administered.set_credential(record.owner, record.credential)
            case FeatureLevelRecord():
                self._administered.set_feature_level(record.name, record.level)
            case _:
                self._apply_to_cluster(offset, record)

    def _apply_to_cluster(self, offset: int, record: MetadataRecord) -> None:
        match record:
            case RegisterBrokerRecord():
                self._set_broker(_registered(record, offset))
            case BrokerChangeRecord():
                self._change_broker(record)
            case UnregisterBrokerRecord():
                self._brokers.pop(record.node_id, None)
                self._changed_brokers.add(record.node_id)
            case ControllerChangeRecord():
                self._controller_id, self._controller_epoch = record.controller_id, record.epoch
            case ProducerIdsRecord():
                self._next_producer_id = record.next_producer_id
            case ClusterRecord():
                self._cluster_id = record.cluster_id

    def _set_broker(self, broker: BrokerImage) -> None:
        self._brokers[broker.node_id] = broker
        self._changed_brokers.add(broker.node_id)

    def _change_broker(self, record: BrokerChangeRecord) -> None:
        broker = self._brokers.get(record.node_id)
        if broker is None or broker.epoch != record.broker_epoch:
            raise InconsistentLog(f"{record} does not fit {broker}.")
        fenced = broker.fenced if record.fenced is None else record.fenced
        shutdown, failed = record.in_controlled_shutdown, record.failed_log_dirs
        self._set_broker(
            replace(
                broker,
                fenced=fenced,
                in_controlled_shutdown=broker.in_controlled_shutdown if shutdown is None else shutdown,
                failed_log_dirs=broker.failed_log_dirs if failed is None else failed,
            )
        )

    def _touch(self, topic_id: uuid.UUID) -> dict[int, PartitionImage]:
        changes = self._partitions.get(topic_id)
        if changes is None:
            topic = self._old.topics_by_id.get(topic_id)
            if topic is None or topic_id in self._deleted:
                raise InconsistentLog(f"No topic has the id {topic_id}.")
            self._names[topic_id] = topic.name
            changes = self._partitions[topic_id] = {}
        return changes

    def _add_partition(self, record: PartitionRecord) -> None:
        self._touch(record.topic_id)[record.partition] = PartitionImage(
            record.partition,
            record.replicas,
            record.isr,
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            record.leader_recovery_state,
        )

    def _change_partitions(self, record: PartitionChangeRecord) -> None:
        change = (
            record.isr,
            record.leader,
            record.leader_recovery_state,
            record.replicas,
            record.elr,
            record.last_known_elr,
        )
        for changes, current in self._current(record.partitions):
            changes[current.partition] = current.changed(*change)

    def _change_directories(self, record: ReplicaDirectoryRecord) -> None:
        for changes, current in self._current(record.partitions):
            if record.node_id not in current.replicas:
                raise InconsistentLog(f"{record.node_id} has no replica of partition {current}.")
            changes[current.partition] = current.in_directory(record.node_id, record.directory)

    def _current(
        self, partitions: Iterable[tuple[uuid.UUID, Iterable[int]]]
    ) -> Iterator[tuple[dict[int, PartitionImage], PartitionImage]]:
        """Each of these partitions as it is by now, and where its change belongs."""
        for topic_id, numbers in partitions:
            changes = self._touch(topic_id)
            topic = self._old.topics_by_id.get(topic_id)
            for number in numbers:
                current = changes.get(number)
                if current is None and topic is not None:
                    current = topic.partition(number)
                if current is None:
                    raise InconsistentLog(f"Topic {topic_id} has no partition {number}.")
                yield changes, current

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        self._touch(record.topic_id)
        del self._partitions[record.topic_id]
        name = self._names.pop(record.topic_id)
        old = self._old.topics_by_id.get(record.topic_id)
        if old is not None:
            self._deleted[record.topic_id] = old
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        if resource in self._configs or resource in self._old.configs:
            self._configs[resource] = {}

    def _change_config(self, record: ConfigRecord) -> None:
        overrides = self._configs.get(record.resource)
        if overrides is None:
            overrides = self._configs[record.resource] = dict(self._old.overrides(record.resource))
        if record.value is None:
            overrides.pop(record.key, None)
        else:
            overrides[record.key] = record.value

    def build(self) -> MetadataDelta:
        """The image after all records so far, and the difference to the one at the start."""
        return in_one_go(self.build_in_steps())

    def build_in_steps(self) -> Generator[None, None, MetadataDelta]:
        """As `build`. Yields after some of what changed. The builder is of no use afterwards."""
        topics, topics_by_id, changed_topics = yield from self._build_topics()
        new = replace(
            self._old,
            offset=self._offset,
            cluster_id=self._cluster_id,
            controller_id=self._controller_id,
            controller_epoch=self._controller_epoch,
            brokers=self._brokers if self._changed_brokers else self._old.brokers,
            topics=topics,
            topics_by_id=topics_by_id,
            configs=(yield from self._build_configs()),
            next_producer_id=self._next_producer_id,
            administered=self._administered.build(),
        )
        return MetadataDelta(
            old=self._old,
            new=new,
            changed_topics=changed_topics,
            deleted_topics=self._deleted,
            changed_partitions=(yield from self._changed_partitions()),
            changed_brokers={node_id: self._brokers.get(node_id) for node_id in sorted(self._changed_brokers)},
            changed_configs=self._configs,
        )

    def _build_topics(
        self,
    ) -> Generator[
        None, None, tuple[Mapping[str, TopicImage], Mapping[uuid.UUID, TopicImage], Mapping[str, TopicImage]]
    ]:
        if not self._partitions and not self._deleted:
            return self._old.topics, self._old.topics_by_id, {}
        pace = _BuildingPace()
        topics = TopicEditor(indexed_topics(self._old))
        by_id: BucketEditor[uuid.UUID, TopicImage] = BucketEditor(BucketMap.of(self._old.topics_by_id))
        for topic_id, topic in self._deleted.items():
            topics.discard(topic.name)
            by_id.discard(topic_id)
            if pace.has_done(len(topic.partitions)):
                yield
        changed = {}
        for topic_id, changes in self._partitions.items():
            topic = _merged(self._names[topic_id], topic_id, by_id.get(topic_id), changes)
            topics.put(topic, changes)
            by_id.put(topic_id, topic)
            changed[topic.name] = topic
            if pace.has_done(len(changes)):
                yield
        return topics.build(), by_id.build(), changed

    def _changed_partitions(self) -> Generator[None, None, Mapping[TopicPartition, PartitionImage]]:
        pace = _BuildingPace()
        changed: dict[TopicPartition, PartitionImage] = {}
        for topic_id, changes in self._partitions.items():
            name = self._names[topic_id]
            for number, partition in sorted(changes.items()):
                changed[TopicPartition(name, number)] = partition
            if pace.has_done(len(changes)):
                yield
        return changed

    def _build_configs(self) -> Generator[None, None, Mapping[ConfigResource, Overrides]]:
        if not self._configs:
            return self._old.configs
        pace = _BuildingPace()
        editor = ConfigEditor(ConfigMap.of(self._old.configs))
        for resource, overrides in self._configs.items():
            editor.put(resource, overrides)
            if pace.has_done(1):
                yield
        return editor.build()


class _BuildingPace:
    """Says when enough was done for one turn of the event loop."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = 0

    def has_done(self, count: int) -> bool:
        """True if so many more are enough."""
        self._done += 1 + count
        if self._done < BUILT_PER_STEP:
            return False
        self._done = 0
        return True


def _registered(record: RegisterBrokerRecord, offset: int) -> BrokerImage:
    return BrokerImage(
        node_id=record.node_id,
        epoch=offset,
        incarnation_id=record.incarnation_id,
        listeners=record.listeners,
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        features=record.features,
        log_dirs=record.log_dirs,
    )


def _merged(
    name: str, topic_id: uuid.UUID, old: TopicImage | None, changes: Mapping[int, PartitionImage]
) -> TopicImage:
    partitions = [] if old is None else list(old.partitions)
    for number in sorted(changes):
        if number > len(partitions):
            raise InconsistentLog(f"The partitions of {name} are not numbered from 0 without gaps: {sorted(changes)}.")
        partitions[number : number + 1] = (changes[number],)
    return TopicImage(name, topic_id, tuple(partitions))


def apply_records(image: MetadataImage, records: Iterable[tuple[int, MetadataRecord]]) -> MetadataDelta:
    """The image after these (offset, record) pairs, as the difference to `image`."""
    builder = ImageBuilder(image)
    for offset, record in records:
        builder.apply(offset, record)
    return builder.build()
