"""A broker's replicas of `__consumer_offsets` on real files, without the rest of the broker."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.clock import SystemChance, SystemClock
from strandline.config.groups import GroupSettings
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.coordinators.groups.replicated_log import ReplicatedGroupLog
from strandline.log import LogManager
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage
from strandline.model import GROUP_METADATA_TOPIC
from strandline.replication import ReplicaManager

TOPIC_ID = uuid.UUID(int=77)


@contextmanager
def open_group_log(
    directory: Path, *, partitions: int = 1, settings: GroupSettings | None = None, topic_id: uuid.UUID = TOPIC_ID
) -> Iterator[tuple[ReplicatedGroupLog, ReplicaManager]]:
    """The group log in a log directory, led by the only broker."""
    logs = LogManager(LogSettings(log_dirs=(str(directory),)), node_id=1, clock=SystemClock(), chance=SystemChance(0))
    config = TopicConfig(cleanup_policy=("compact",))
    logs.load(lambda _: config)
    replicas = ReplicaManager(1, logs, loop=asyncio.get_running_loop(), topic_config=lambda _: config)
    image = _image(partitions, topic_id)
    replicas.apply(MetadataDelta(old=EMPTY_IMAGE, new=image, changed_topics=image.topics), image)
    try:
        yield ReplicatedGroupLog(replicas, lambda: image, settings or GroupSettings()), replicas
    finally:
        replicas.close()
        logs.shutdown()


def _image(partitions: int, topic_id: uuid.UUID) -> MetadataImage:
    topic = TopicImage(
        GROUP_METADATA_TOPIC,
        topic_id,
        tuple(
            PartitionImage(partition=at, replicas=(1,), isr=(1,), leader=1, leader_epoch=3, partition_epoch=3)
            for at in range(partitions)
        ),
    )
    return MetadataImage(offset=1, topics={topic.name: topic}, topics_by_id={topic_id: topic})
