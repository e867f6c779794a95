"""Adopting log directories that Apache Kafka wrote: finding their topics and the settings of these.

A new cluster whose log directories already hold partitions adopts them, with their topic ids, under the cluster id of
`meta.properties`. Topic settings come from Kafka's own metadata log. Without that log, default retention could delete
records that a topic is to keep, so adoption is refused. So it is if that log names replicas on other nodes: the logs
here may then lack records that Kafka has acknowledged.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from strandline.errors import InvalidConfig
from strandline.log.checkpoints import read_epochs, read_properties, read_topic_id
from strandline.log.files import parse_partition_directory
from strandline.metadata import ConfigResource, ConfigResourceType, Controller, Plan
from strandline.metadata.records import ConfigRecord, MetadataRecord, PartitionRecord, ProducerIdsRecord, TopicRecord
from strandline.model import NO_LEADER, TopicPartition
from strandline.replication.kafka_metadata import KAFKA_METADATA_TOPIC, KafkaMetadata, KafkaReplicas

logger = logging.getLogger(__name__)


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
    node_id = int(properties.get("node.id", properties.get("broker.id", "-1")))
    settings = KafkaMetadata()
    settings.read(log_dirs)
    _check_replicas(settings.replicas, node_id)
    for topic in topics.values():
        topic.configs = settings.configs.get(topic.name, {})
    return FoundCluster(
        cluster_id=properties["cluster.id"],
        node_id=node_id,
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


def _check_replicas(partitions: Mapping[TopicPartition, KafkaReplicas], node_id: int) -> None:
    """Refuse partitions that other nodes have replicas of: which replica has every record is not known here."""
    shared = sorted(p for p, known in partitions.items() if len(known.replicas) != 1 or known.replicas[0] != node_id)
    if not shared:
        return
    first = partitions[shared[0]]
    in_sync = ", ".join(map(str, first.isr)) or "none"
    more = f", and {len(shared) - 1} more partitions are not on this node alone" if len(shared) > 1 else ""
    raise InvalidConfig(
        f"Partition {shared[0].partition} of topic {shared[0].topic} has replicas on the nodes "
        f"{', '.join(map(str, first.replicas))} of its Kafka cluster (in sync: {in_sync}){more}. Only a cluster whose "
        f"partitions are all on one node can be adopted: node {node_id} may lack records that Kafka has acknowledged. "
        f"Start Kafka again, move every partition to node {node_id} alone with kafka-reassign-partitions.sh, wait "
        "until --verify says that it is complete, stop Kafka and start this broker again; or start it with empty "
        "log.dirs and copy the topics with MirrorMaker 2."
    )


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
