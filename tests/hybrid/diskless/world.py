"""Diskless topics over a real control plane and a real directory, without the rest of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from strandline.assembly.base import Base
from strandline.assembly.diskless_tier import open_diskless_tier
from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.config import Settings
from strandline.config.topic import TopicConfig
from strandline.controlplane import SqlControlPlane
from strandline.errors import StrandlineError, UnknownTopicOrPartition
from strandline.health import Health
from strandline.hybrid.diskless.leftovers import Leftovers
from strandline.hybrid.diskless.store_check import objects_identity
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.kinds import PartitionKinds
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.remote.topics import TieredTopics
from strandline.metadata import NewPartitions, NewTopic, TopicImage
from strandline.model import TopicIdPartition
from tests.metadata.cluster import Cluster, open_cluster

NODE = 1


@dataclass
class World:
    """One broker's diskless topics."""

    cluster: Cluster
    plane: SqlControlPlane
    directory: Path
    properties: Mapping[str, str]
    is_told_of_store: bool = True
    """Whether the broker's settings say where the objects are."""
    times_opened: int = 0
    refuses_to_open: list[Exception] = field(default_factory=list)
    """Raised by the next attempts to open the tier, one after the other."""
    is_store_hanging: bool = False
    """Whether opening the tier never ends."""
    health: Health = field(default_factory=lambda: Health("diskless", "the object store", "", SystemClock()))
    failures: list[str] = field(default_factory=list)
    local_logs: set[TopicIdPartition] = field(default_factory=set)
    """Partitions that the broker has a log of on its disks."""

    def topic_config(self, topic: str) -> TopicConfig:
        return Settings().topic_config(self.cluster.image.topic_overrides(topic))

    async def create(self, name: str, partitions: int = 1, *, is_diskless: bool = True, **configs: str) -> TopicImage:
        overrides = {key.replace("_", "."): value for key, value in configs.items()}
        if is_diskless:
            overrides["diskless.enable"] = "true"
        wish = NewTopic(name=name, num_partitions=partitions, replication_factor=1, configs=overrides)
        (topic,) = await self.cluster.controller.create_topics([wish])
        assert isinstance(topic, TopicImage), topic
        return topic

    async def grow(self, name: str, partitions: int) -> None:
        (topic,) = await self.cluster.controller.create_partitions([NewPartitions(name=name, count=partitions)])
        assert isinstance(topic, TopicImage), topic

    async def delete(self, name: str) -> None:
        (topic,) = await self.cluster.controller.delete_topics([name])
        assert isinstance(topic, TopicImage), topic

    @asynccontextmanager
    async def diskless(self, *, node_id: int = NODE, is_enabled: bool = True) -> AsyncIterator[DisklessTopics]:
        """The topics, as a broker has them from its start to its end."""
        loader, clock = self.cluster.loader, SystemClock()
        topics = DisklessTopics(
            node_id,
            loader,
            lambda: self._open(topics),
            logs=self.plane.reads,
            creation=self.plane.lifecycle,
            leftovers=Leftovers(self.plane.lifecycle, self.plane.files, loader),
            kinds=PartitionKinds(topic_config=self.topic_config, has_local_log=self.local_logs.__contains__),
            partitions=Partitions(TieredTopics(), topic_name=_no_name, why_missing=_missing),
            topic_config=self.topic_config,
            store_health=self.health,
            clock=clock,
            is_enabled=is_enabled,
        )
        stop = loader.subscribe(topics.apply)
        try:
            async with topics.running(on_failure=self.failures.append):
                await topics.wait_opened(within=0 if self.is_store_hanging else 30)
                yield topics
        finally:
            stop()

    @asynccontextmanager
    async def _open(self, topics: DisklessTopics) -> AsyncIterator[DisklessTier]:
        self.times_opened += 1
        if self.refuses_to_open:
            raise self.refuses_to_open.pop(0)
        if self.is_store_hanging:
            await asyncio.Event().wait()
        place = "strandline.objects.url" if self.is_told_of_store else "strandline.data.dir"
        where = f"file://{self.directory}" if self.is_told_of_store else str(self.directory.parent)
        settings = Settings.from_properties({place: where, **self.properties})
        base = Base(static=settings, clock=SystemClock(), ids=SystemIds(), chance=SystemChance(0))
        async with open_diskless_tier(
            base,
            self.cluster.sql,
            self.plane,
            self.cluster.loader,
            settings,
            topics=topics.topics,
            topic_config=self.topic_config,
            health=self.health,
            identity=objects_identity(settings, self.cluster.loader, self.plane.stores, SystemIds()),
        ) as tier:
            yield tier


@asynccontextmanager
async def open_world(directory: Path, **properties: str) -> AsyncIterator[World]:
    """A cluster of one broker, and nothing diskless yet."""
    async with open_cluster() as cluster:
        yield World(
            cluster,
            SqlControlPlane(cluster.sql),
            directory / "objects",
            {name.replace("_", "."): value for name, value in properties.items()},
        )


def _no_name(topic_id: bytes) -> str:
    raise UnknownTopicOrPartition(f"No replica has the topic id {topic_id.hex()}.")


def _missing(topic: str, partition: int) -> StrandlineError:
    return UnknownTopicOrPartition(f"{topic}-{partition} is not served.")
