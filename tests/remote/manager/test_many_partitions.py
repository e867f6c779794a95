"""Thousands of tiered partitions on which nothing happens cost next to nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

from strandline.clock import SystemChance, SystemIds
from strandline.log import LogDirectory, LogEnvironment, UnifiedLog, create_log
from strandline.model import LeaderEpoch, TopicIdPartition, TopicPartition
from strandline.objects.memory import MemoryStore
from strandline.remote.manager import LeaderPartition, ManagerLimits, RemoteLogManager
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from strandline.remote.values import RemoteLogSegmentMetadata
from strandline.testing.clock import VirtualClock
from strandline.testing.metadata_topic import MemoryMetadataTopic
from tests.log.harness import NOW, batch
from tests.remote.manager.world import settings

PARTITIONS = 150


class CountingManager(TopicBasedRemoteLogMetadataManager):
    """Counts the questions that cost more than a look into a dictionary."""

    def count(self) -> Counter[str]:
        counts: Counter[str] = self.__dict__.setdefault("counts", Counter())
        return counts

    def list_remote_log_segments(
        self, partition: TopicIdPartition, epoch: LeaderEpoch | None = None
    ) -> Sequence[RemoteLogSegmentMetadata]:
        self.count()["list"] += 1
        return super().list_remote_log_segments(partition, epoch)

    def iter_remote_log_segments(
        self, partition: TopicIdPartition, epoch: LeaderEpoch | None = None
    ) -> Iterator[RemoteLogSegmentMetadata]:
        self.count()["list"] += 1
        return super().iter_remote_log_segments(partition, epoch)


def make_logs(root: Path, clock: VirtualClock) -> list[LeaderPartition]:
    root.mkdir()
    env = LogEnvironment(directory=LogDirectory(str(root)), clock=clock, chance=SystemChance(1), remote_enabled=True)
    config = settings(retention_ms=7 * 24 * 3_600_000)
    leaders = []
    for number in range(PARTITIONS):
        log: UnifiedLog = create_log(TopicPartition("many", number), config, env, topic_id=None)
        for _ in range(5):
            log.append(batch(), leader_epoch=0)
        log.update_high_watermark(log.log_end_offset)
        partition = TopicIdPartition(UUID(int=7), log.topic_partition)
        leaders.append(LeaderPartition(partition=partition, log=log, leader_epoch=0))
    return leaders


async def test_idle_partitions_are_planned_once_and_then_left_alone(tmp_path: Path) -> None:
    clock = VirtualClock(NOW)
    leaders = make_logs(tmp_path / "data", clock)
    metadata = CountingManager(
        MemoryMetadataTopic(3, clock=clock), directory=tmp_path, limits=MetadataLimits(), clock=clock
    )
    manager = RemoteLogManager(
        ObjectRemoteStorage(MemoryStore(clock)),
        metadata,
        broker_id=1,
        limits=ManagerLimits(copier_thread_pool_size=5),
        clock=clock,
        ids=SystemIds(),
        chance=SystemChance(1),
    )
    async with metadata.running(), manager.running():
        metadata.on_partition_leadership_changes([leader.partition for leader in leaders], [])
        for leader in leaders:
            manager.lead(leader)
        for _ in range(200):
            await clock.advance(1)
            if manager.status().topics["many"].copy_bytes == PARTITIONS * 4 * len(batch()):
                break
        status = manager.status()
        assert status.topics["many"].copy_lag_segments == 0
        assert status.topics["many"].metadata_count == 2 * PARTITIONS
        await clock.advance(120)
        metadata.count().clear()
        await clock.advance(300)
        assert metadata.count()["list"] == 0
        # Others may write there too: everything is looked at thoroughly every ten minutes.
        await clock.advance(600)
        assert PARTITIONS <= metadata.count()["list"] <= 2 * PARTITIONS
        assert manager.status().copier_idle_percent > 90
