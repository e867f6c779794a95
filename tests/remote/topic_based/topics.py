"""`__remote_log_metadata` on real files, led by this broker or by another one, without the rest of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from strandline.clock import SystemChance, SystemClock
from strandline.config import Settings
from strandline.config.log import LogSettings
from strandline.log import LogManager
from strandline.metadata.comparison import delta_between
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.image import EMPTY_IMAGE, BrokerImage, Listener, MetadataImage, PartitionImage, TopicImage
from strandline.model import NO_LEADER, REMOTE_LOG_METADATA_TOPIC
from strandline.replication import ReplicaManager
from strandline.replication.remote_metadata import ReplicatedMetadataTopic
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker import BrokerProcess

TOPIC_ID = UUID(int=0x4E)
NODE = 1
OTHER_NODE = 99


@dataclass
class FixedImages:
    """An image that changes when a test says so."""

    image: MetadataImage

    def subscribe(self, subscriber: Callable[[MetadataDelta, MetadataImage], None]) -> Callable[[], None]:
        return lambda: None

    def lose_leaders(self) -> None:
        topic = self.image.topics[REMOTE_LOG_METADATA_TOPIC]
        partitions = tuple(partition._replace(leader=NO_LEADER) for partition in topic.partitions)
        self.image = replace(self.image, topics={topic.name: replace(topic, partitions=partitions)})


@contextmanager
def open_topic(
    directory: Path, *, partitions: int = 3, topic_id: UUID = TOPIC_ID
) -> Iterator[tuple[ReplicatedMetadataTopic, ReplicaManager]]:
    """The topic in a log directory, led by the only broker."""
    logs = LogManager(
        LogSettings(log_dirs=(str(directory),)), node_id=NODE, clock=SystemClock(), chance=SystemChance(0)
    )
    config = Settings().topic_config({"retention.ms": "-1"})
    logs.load(lambda _: config)
    replicas = ReplicaManager(NODE, logs, loop=asyncio.get_running_loop(), topic_config=lambda _: config)
    image = _image(topic_id, partitions, leader=NODE)
    replicas.apply(delta_between(EMPTY_IMAGE, image), image)
    try:
        yield (
            ReplicatedMetadataTopic(
                replicas, FixedImages(image), node_id=NODE, listener="PLAINTEXT", clock=SystemClock()
            ),
            replicas,
        )
    finally:
        replicas.close()
        logs.shutdown()


def topic_led_by(broker: BrokerProcess) -> tuple[ReplicatedMetadataTopic, FixedImages]:
    """The topic as a broker sees it that has no replica of it: all partitions are led by `broker`."""
    host, port = broker.bootstrap.split(":")
    with Client.connect(host, int(port)) as client:
        wanted = CreatableTopic(name=REMOTE_LOG_METADATA_TOPIC, num_partitions=3, replication_factor=1)
        client.request(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[wanted], timeout_ms=20_000))
        names = [MetadataRequestTopic(name=REMOTE_LOG_METADATA_TOPIC)]
        known = client.request(ApiKey.METADATA, MetadataRequest(topics=names, allow_auto_topic_creation=False))
        cluster = client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
    (topic,) = known.topics
    assert topic.error_code == 0
    leader = topic.partitions[0].leader_id
    registered = BrokerImage(
        node_id=leader,
        epoch=1,
        incarnation_id=UUID(int=1),
        listeners=(Listener("PLAINTEXT", host, int(port)),),
        fenced=False,
    )
    image = replace(
        _image(topic.topic_id, 3, leader=leader), cluster_id=cluster.cluster_id, brokers={leader: registered}
    )
    images = FixedImages(image)
    # Nothing is looked up in the replicas of a broker that leads none.
    logs = LogManager(LogSettings(log_dirs=()), node_id=OTHER_NODE, clock=SystemClock(), chance=SystemChance(0))
    replicas = ReplicaManager(
        OTHER_NODE, logs, loop=asyncio.get_running_loop(), topic_config=lambda _: Settings().topic_config({})
    )
    return (
        ReplicatedMetadataTopic(replicas, images, node_id=OTHER_NODE, listener="PLAINTEXT", clock=SystemClock()),
        images,
    )


def _image(topic_id: UUID, partitions: int, *, leader: int) -> MetadataImage:
    topic = TopicImage(
        REMOTE_LOG_METADATA_TOPIC,
        topic_id,
        tuple(PartitionImage(at, (leader,), (leader,), leader, 3, 3) for at in range(partitions)),
    )
    return MetadataImage(offset=1, topics={topic.name: topic}, topics_by_id={topic_id: topic})
