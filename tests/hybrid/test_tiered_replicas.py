"""Tiered storage that follows the replicas of a broker, while the description of it has its troubles."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from strandline.clock import SystemChance, SystemIds
from strandline.hybrid.tiered_replicas import TieredReplicas
from strandline.objects.memory import MemoryStore
from strandline.remote.manager import ManagerLimits, RemoteLogManager
from strandline.remote.object_storage import ObjectRemoteStorage
from strandline.remote.ports import RemoteStorageError
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from strandline.remote.values import TopicIdPartition
from strandline.testing.clock import VirtualClock
from strandline.testing.metadata_topic import MemoryMetadataTopic
from tests.metadata.cluster import open_cluster


class Unreachable(TopicBasedRemoteLogMetadataManager):
    """As a plugin that asks a service: it may be away."""

    asked = 0

    def partitions(self) -> Collection[TopicIdPartition]:
        self.asked += 1
        raise RemoteStorageError("the service is away")


async def test_a_description_that_cannot_be_asked_does_not_end_the_broker(tmp_path: Path) -> None:
    clock = VirtualClock()
    metadata = Unreachable(MemoryMetadataTopic(1), directory=tmp_path, limits=MetadataLimits(), clock=clock)
    storage = ObjectRemoteStorage(MemoryStore(clock))
    async with open_cluster() as cluster:
        manager = RemoteLogManager(
            storage,
            metadata,
            broker_id=1,
            limits=ManagerLimits(),
            clock=clock,
            ids=SystemIds(),
            chance=SystemChance(1),
        )
        following = TieredReplicas(
            manager, metadata, cluster.loader, clock=clock, look_again_s=1.0, on_need=lambda: None
        )
        looking = asyncio.create_task(following.run())
        for _ in range(5):
            await clock.advance(1.0)
        assert metadata.asked > 1
        assert not looking.done()
        looking.cancel()
