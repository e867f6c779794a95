"""`__remote_log_metadata` on real files, led by this broker or by another one, without the rest of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from strandline.clock import SystemChance, SystemClock
from strandline.config import Settings
from strandline.config.log import LogSettings
from strandline.log import LogManager
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage
from strandline.model import REMOTE_LOG_METADATA_TOPIC
from strandline.replication import ReplicaManager
from strandline.replication.remote_metadata_topic import ReplicatedMetadataTopic

TOPIC_ID = UUID(int=0x4E)
NODE = 1


@dataclass
class FixedImages:
    """An image that changes when a test says so."""

    image: MetadataImage

    def subscribe(self, subscriber: Callable[[MetadataDelta, MetadataImage], None]) -> Callable[[], None]:
        return lambda: None


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
    topic = TopicImage(
        REMOTE_LOG_METADATA_TOPIC,
        topic_id,
        tuple(
            PartitionImage(partition=at, replicas=(NODE,), isr=(NODE,), leader=NODE, leader_epoch=3, partition_epoch=3)
            for at in range(partitions)
        ),
    )
    image = MetadataImage(offset=1, topics={topic.name: topic}, topics_by_id={topic_id: topic})
    replicas.apply(MetadataDelta(old=EMPTY_IMAGE, new=image, changed_topics=image.topics), image)
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
