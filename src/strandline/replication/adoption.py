"""Adopting log directories that Apache Kafka wrote: finding their topics and the settings of these.

A new cluster whose log directories already hold partitions adopts them, with their topic ids, under the cluster id of
`meta.properties`. Topic settings come from Kafka's own metadata log. Without that log, default retention could delete
records that a topic is to keep, so adoption is refused.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Final
from uuid import UUID

from strandline.errors import InvalidConfig
from strandline.log.checkpoints import read_epochs, read_properties, read_topic_id
from strandline.log.files import parse_partition_directory
from strandline.metadata import ConfigResource, ConfigResourceType, Controller
from strandline.metadata.records import ConfigRecord, MetadataRecord, PartitionRecord, ProducerIdsRecord, TopicRecord
from strandline.metadata.requests import Plan
from strandline.model import NO_LEADER
from strandline.records.batch import iter_headers
from strandline.records.record import read_records
from strandline.wire.primitives import read_compact_nullable_string, read_compact_string, read_uuid, read_uvarint

logger = logging.getLogger(__name__)

KAFKA_METADATA_TOPIC: Final = "__cluster_metadata"
_TOPIC_RECORD: Final = 2
_CONFIG_RECORD: Final = 4
_REMOVE_TOPIC_RECORD: Final = 9
_PRODUCER_IDS_RECORD: Final = 15
_TOPIC_RESOURCE: Final = 2
_PRODUCER_IDS = Struct(">iqq")


@dataclass(slots=True, kw_only=True)
class FoundTopic:
    """A topic with at least one partition on disk. `partitions` maps its number to the newest leader epoch."""

    name: str
    topic_id: UUID
    partitions: dict[int, int] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class FoundCluster:
    """What Kafka left in the log directories."""

    cluster_id: str
    node_id: int
    topics: list[FoundTopic]
    next_producer_id: int


def find_kafka_cluster(log_dirs: Sequence[str]) -> FoundCluster | None:
    """The partitions of a Kafka cluster, None if there are none. Raises InvalidConfig if they cannot be adopted."""
    topics: dict[str, FoundTopic] = {}
    for directory in log_dirs:
        for topic in _topics_in(Path(directory)):
            known = topics.setdefault(topic.name, topic)
            if known.topic_id != topic.topic_id:
                raise InvalidConfig(
                    f"log.dirs hold two topics named {topic.name}, with the ids {known.topic_id} and {topic.topic_id}: "
                    "move one of them away."
                )
            known.partitions.update(topic.partitions)
    if not topics:
        return None
    properties = _meta_properties(log_dirs)
    settings = _KafkaMetadata()
    settings.read(log_dirs)
    for topic in topics.values():
        topic.configs = settings.configs.get(topic.name, {})
    return FoundCluster(
        cluster_id=properties["cluster.id"],
        node_id=int(properties.get("node.id", properties.get("broker.id", "-1"))),
        topics=sorted(topics.values(), key=lambda topic: topic.name),
        next_producer_id=settings.next_producer_id,
    )


async def adopt(found: FoundCluster, controller: Controller, node_id: int) -> None:
    """Write the found topics to the metadata log, in one step. Raises InvalidConfig if they belong to another node."""
    if found.node_id not in (node_id, -1):
        raise InvalidConfig(
            f"The log directories belong to node {found.node_id}: start with --node-id {found.node_id}."
        )
    partitions = sum(len(topic.partitions) for topic in found.topics)
    await controller.write(lambda _: Plan(tuple(_records(found, node_id)), None))
    logger.info("adopted %d partitions of %d topics from Kafka", partitions, len(found.topics))


def _records(found: FoundCluster, node_id: int) -> Iterator[MetadataRecord]:
    for topic in found.topics:
        missing = set(range(max(topic.partitions) + 1)) - set(topic.partitions)
        if missing:
            raise InvalidConfig(
                f"Partitions {sorted(missing)} of topic {topic.name} are not in log.dirs: only a cluster of one "
                "node can be adopted."
            )
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for number, epoch in sorted(topic.partitions.items()):
            yield PartitionRecord(
                topic_id=topic.topic_id,
                partition=number,
                replicas=(node_id,),
                isr=(node_id,),
                leader=NO_LEADER,
                leader_epoch=epoch,
            )
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
        for key, value in topic.configs.items():
            yield ConfigRecord(resource=resource, key=key, value=value)
    yield ProducerIdsRecord(node_id=node_id, broker_epoch=-1, next_producer_id=found.next_producer_id)


def _topics_in(log_dir: Path) -> Iterator[FoundTopic]:
    if not log_dir.is_dir():
        return
    for entry in sorted(os.scandir(log_dir), key=lambda e: e.name):
        partition = parse_partition_directory(entry.name) if entry.is_dir() else None
        if partition is None or partition.topic == KAFKA_METADATA_TOPIC:
            continue
        topic_id = read_topic_id(entry.path)
        if topic_id is None:
            raise InvalidConfig(f"{entry.path} has no partition.metadata, so its topic id is not known: move it away.")
        epochs = read_epochs(os.path.join(entry.path, "leader-epoch-checkpoint"))
        newest = epochs[-1][0] if epochs else 0
        yield FoundTopic(name=partition.topic, topic_id=topic_id, partitions={partition.partition: newest})


def _meta_properties(log_dirs: Sequence[str]) -> dict[str, str]:
    for directory in log_dirs:
        path = os.path.join(directory, "meta.properties")
        if os.path.exists(path):
            properties = read_properties(path)
            if "cluster.id" in properties:
                return properties
    raise InvalidConfig(f"{', '.join(log_dirs)} hold partitions but no meta.properties with a cluster.id.")


class _KafkaMetadata:
    """Reads topic settings and the producer ids that are used up from Kafka's metadata log."""

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.next_producer_id = 0
        self._names: dict[UUID, str] = {}

    def read(self, log_dirs: Sequence[str]) -> None:
        """Replay the newest snapshot and the log after it."""
        directories = [Path(d, f"{KAFKA_METADATA_TOPIC}-0") for d in log_dirs]
        found = next((directory for directory in directories if directory.is_dir()), None)
        if found is None:
            raise InvalidConfig(
                f"{', '.join(log_dirs)} hold partitions that Kafka wrote, but not its {KAFKA_METADATA_TOPIC}-0, which "
                f"has the settings of the topics. Copy that directory there too (it is in metadata.log.dir)."
            )
        snapshots = sorted(found.glob("*.checkpoint"))
        start = 0
        if snapshots:
            start = int(snapshots[-1].name.partition("-")[0])
            self._replay(snapshots[-1].read_bytes(), 0)
        for segment in sorted(found.glob("*.log")):
            self._replay(segment.read_bytes(), start)

    def _replay(self, data: bytes, from_offset: int) -> None:
        for position, header in iter_headers(data):
            if header.is_control or header.last_offset < from_offset:
                continue
            for record in read_records(data[position : position + header.size]):
                if record.value is not None and record.offset >= from_offset:
                    self._apply(memoryview(record.value))

    def _apply(self, value: memoryview) -> None:
        _, position = read_uvarint(value, 0)  # the version of the frame
        kind, position = read_uvarint(value, position)
        _, position = read_uvarint(value, position)
        if kind == _TOPIC_RECORD:
            name, position = read_compact_string(value, position)
            self._names[read_uuid(value, position)[0]] = name
        elif kind == _REMOVE_TOPIC_RECORD:
            self.configs.pop(self._names.pop(read_uuid(value, position)[0], ""), None)
        elif kind == _CONFIG_RECORD:
            self._apply_config(value, position)
        elif kind == _PRODUCER_IDS_RECORD:
            self.next_producer_id = _PRODUCER_IDS.unpack_from(value, position)[2]

    def _apply_config(self, value: memoryview, position: int) -> None:
        resource_type = value[position]
        resource, position = read_compact_string(value, position + 1)
        name, position = read_compact_string(value, position)
        text, _ = read_compact_nullable_string(value, position)
        if resource_type != _TOPIC_RESOURCE:
            return
        if text is None:
            self.configs.get(resource, {}).pop(name, None)
        else:
            self.configs.setdefault(resource, {})[name] = text
