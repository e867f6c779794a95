"""Tiered storage that follows the replicas of a broker, while remote log metadata fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from strandline.clock import SystemChance, SystemIds
from strandline.errors import RequestTimedOut
from strandline.hybrid.remote.replicas import TieredReplicas
from strandline.hybrid.suffix_sizes import SuffixSizes
from strandline.metadata.image import PartitionImage
from strandline.model import TopicIdPartition
from strandline.objects.memory import MemoryStore
from strandline.remote.manager import ManagerLimits, RemoteLogManager
from strandline.remote.ports import RemoteStorageError
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from strandline.remote.values import RemoteLogSegmentState
from strandline.replication import LogWriter, Partition
from strandline.testing.clock import VirtualClock
from strandline.testing.metadata_topic import MemoryMetadataTopic
from strandline.testing.objects import ALWAYS
from tests.log.harness import PARTITION
from tests.metadata.cluster import open_cluster
from tests.remote.manager.world import BROKER, SIZE, TIERED, TOPIC_ID, World, open_world, settings

OFF = {"remote_storage_enable": False, "remote_log_delete_on_disable": True}
UNSET = {"remote_storage_enable": False, "remote_log_delete_on_disable": False}


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


@dataclass
class Followed:
    """A world whose partition is a replica of this broker, and led by it."""

    world: World
    replicas: TieredReplicas
    partition: Partition
    suffix_sizes: SuffixSizes

    def configure(self, **changes: object) -> None:
        self.world.harness.config = settings(**changes)
        self.world.log.update_config(self.world.harness.config)
        self.replicas.replica_changed(self.partition)


@asynccontextmanager
async def followed(world: World) -> AsyncIterator[Followed]:
    """What follows the replicas of a broker that has just started."""
    writer = LogWriter(asyncio.get_running_loop(), "test")
    partition = Partition(PARTITION, TOPIC_ID, world.log, node_id=BROKER, writer=writer)
    partition.follow(PartitionImage(0, (BROKER,), (BROKER,), BROKER, 0, 0))
    sizes = SuffixSizes()
    async with open_cluster() as cluster, world.running(lead=False) as manager:
        replicas = TieredReplicas(
            manager,
            world.metadata,
            cluster.loader,
            clock=world.clock,
            look_again_s=1.0,
            on_need=lambda: None,
            suffix_bytes=sizes,
        )
        replicas.replica_changed(partition)
        try:
            yield Followed(world, replicas, partition, sizes)
        finally:
            writer.close()


async def test_a_topic_that_is_not_tiered_any_more_is_looked_after_until_nothing_of_it_is_remote(
    tmp_path: Path,
) -> None:
    async with open_world(tmp_path, MemoryStore(VirtualClock())) as world:
        world.create_log()
        world.append(7)
        async with followed(world) as made:
            await world.until_copied()
            world.store.fail("delete", times=ALWAYS)
            made.configure(**OFF)
            await world.until(lambda: world.manager.is_withdrawing(TIERED))
            made.configure(**UNSET)
            await world.pass_time(2)
            world.store.heal()
            await world.until(lambda: not world.segments())
            assert await world.keys() == set()
            await world.until(lambda: not world.manager.is_withdrawing(TIERED))
            made.configure(**UNSET, retention_bytes=SIZE)
            assert await world.manager.partition_status(TIERED) is None


async def test_what_a_restart_has_cut_short_is_taken_up_although_the_topic_is_not_tiered(tmp_path: Path) -> None:
    async with open_world(tmp_path, MemoryStore(VirtualClock())) as world:
        world.create_log()
        world.append(7)
        async with followed(world) as made:
            await world.until_copied()
            world.store.fail("delete", times=ALWAYS)
            made.configure(**OFF)
            await world.until(lambda: len(world.segments(RemoteLogSegmentState.DELETE_SEGMENT_STARTED)) == 3)
        world.harness.config = settings(**UNSET)
        world.harness.reopen()
        world.store.heal()
        async with followed(world) as made:
            await world.until_ready()
            assert await world.manager.partition_status(TIERED) is None
            made.replicas._take_up_withdrawals()
            await world.until_ready()
            await world.until(lambda: not world.segments())
            assert await world.keys() == set()


async def test_the_switch_to_diskless_withdraws_nothing_and_the_work_on_remote_segments_goes_on(
    tmp_path: Path,
) -> None:
    async with open_world(tmp_path, MemoryStore(VirtualClock())) as world:
        world.create_log()
        world.append(5)
        world.store.fail("put_file", times=1)
        async with followed(world) as made:
            made.configure(diskless_enable=True)
            made.partition.restrict().seal(RequestTimedOut("The topic is being switched to diskless."))
            world.log.roll()
            await world.until(lambda: world.ranges() == [(0, 1), (2, 3), (4, 4)])
            await world.until_copied()
            assert not world.manager.is_withdrawing(TIERED)
            await world.check_nothing_leaked()  # the copy that failed is gone

            made.configure(diskless_enable=True, retention_bytes=5 * SIZE)
            await world.pass_time(3)
            assert world.log.log_start_offset == 0
            made.suffix_sizes.set(TIERED, 2 * SIZE)
            await world.until(lambda: world.ranges() == [(2, 3), (4, 4)])
            made.suffix_sizes.set(TIERED, 100 * SIZE)
            await world.until(lambda: not world.segments())
            assert (world.log.log_start_offset, world.log.log_end_offset) == (5, 5)
            made.suffix_sizes.forget(TIERED)
            assert made.suffix_sizes(TIERED) == 0
            await world.check_nothing_leaked()
