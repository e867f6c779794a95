"""A broker's replicas of an internal topic on real files, without the rest of the broker."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.clock import SystemChance, SystemClock
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.coordinators.runtime import InternalTopic, ReplicatedCoordinatorLog
from strandline.log import LogManager
from strandline.metadata.comparison import delta_between
from strandline.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage
from strandline.model import GROUP_METADATA_TOPIC
from strandline.records.codecs import Codec
from strandline.replication import ReplicaManager

TOPIC_ID = uuid.UUID(int=77)
LEADER_EPOCH = 3
TOPIC = InternalTopic(
    name=GROUP_METADATA_TOPIC,
    partitions=50,
    codec=Codec.NONE,
    load_buffer_bytes=1 << 20,
    base_sequence=0,
)


@contextmanager
def open_coordinator_log(
    directory: Path,
    *,
    partitions: int = 1,
    topic: InternalTopic = TOPIC,
    topic_id: uuid.UUID = TOPIC_ID,
    isr: tuple[int, ...] = (1,),
) -> Iterator[tuple[ReplicatedCoordinatorLog, ReplicaManager]]:
    """The log in a log directory, led by the only broker."""
    logs = LogManager(LogSettings(log_dirs=(str(directory),)), node_id=1, clock=SystemClock(), chance=SystemChance(0))
    config = TopicConfig(cleanup_policy=("compact",))
    logs.load(lambda _: config)
    replicas = ReplicaManager(1, logs, loop=asyncio.get_running_loop(), topic_config=lambda _: config)
    image = _image(topic.name, partitions, topic_id, isr)
    replicas.apply(delta_between(EMPTY_IMAGE, image), image)
    try:
        yield ReplicatedCoordinatorLog(replicas, lambda: image, topic, clock=SystemClock()), replicas
    finally:
        replicas.close()
        logs.shutdown()


def _image(name: str, partitions: int, topic_id: uuid.UUID, isr: tuple[int, ...]) -> MetadataImage:
    topic = TopicImage(
        name,
        topic_id,
        tuple(
            PartitionImage(partition=at, replicas=isr, isr=isr, leader=1, leader_epoch=LEADER_EPOCH, partition_epoch=3)
            for at in range(partitions)
        ),
    )
    return MetadataImage(offset=1, topics={topic.name: topic}, topics_by_id={topic_id: topic})
