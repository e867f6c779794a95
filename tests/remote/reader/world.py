"""Real logs whose segments were copied to a store that fails as a test says, and then left the disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.config.topic import TopicConfig
from strandline.log import UnifiedLog
from strandline.model import TopicIdPartition, TopicPartition
from strandline.objects.opening import open_objects
from strandline.objects.options import ObjectOptions
from strandline.remote.indexes import RemoteIndexCache, open_index_cache
from strandline.remote.reader import RemoteLogReader, RemoteReaderLimits
from strandline.remote.reader.values import FetchQuota
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from strandline.remote.topic_based.partitioner import metadata_partition
from strandline.remote.topic_based.records import serialize
from strandline.remote.values import (
    LogSegmentData,
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from strandline.testing.metadata_topic import MemoryMetadataTopic
from strandline.testing.objects import FaultyStore
from tests.log.harness import NOW, LogHarness, batch

VALUE = 1000
"""Bytes of each record; there is one in a batch."""
BATCH = len(batch(value=bytes(VALUE)))
PER_SEGMENT = 20


@dataclass
class World:
    """Some tiered partitions. What is not in the last segment is in the store only."""

    directory: Path
    store: FaultyStore
    storage: ObjectRemoteStorage
    indexes: RemoteIndexCache
    topic: MemoryMetadataTopic
    metadata: TopicBasedRemoteLogMetadataManager
    clock: SystemClock
    stack: AsyncExitStack
    logs: list[LogHarness] = field(default_factory=list)

    async def add_log(
        self,
        *,
        segments: int = 3,
        value_bytes: int = VALUE,
        per_segment: int = PER_SEGMENT,
        name: str = "orders",
        missing_bytes: int = 0,
    ) -> UnifiedLog:
        """A partition with so many remote segments, and one more local one that has one batch."""
        partition = TopicPartition(name, len(self.logs))
        size = len(batch(value=bytes(value_bytes)))
        config = TopicConfig(
            remote_storage_enable=True,
            internal_segment_bytes=per_segment * size,
            local_retention_bytes=1,
            retention_ms=-1,
            max_message_bytes=10 * size,
        )
        harness = LogHarness(self.directory / "logs", config=config, partition=partition, remote_enabled=True)
        log = harness.create()
        log.assign_topic_id(UUID(int=0xFEED + len(self.logs)))
        self.logs.append(harness)
        for number in range(segments * per_segment + 1):
            harness.append(batch(value=b"%08d" % number + bytes(value_bytes - 8), timestamp=NOW + number))
        await self.tier(harness, missing_bytes=missing_bytes)
        assert log.local_log_start_offset == segments * per_segment
        return log

    async def tier(self, harness: LogHarness, *, missing_bytes: int = 0) -> None:
        """Copy what can be copied, and let it leave the disk.

        With `missing_bytes` remote segments lack their last batches, as if the cleaner had taken those before.
        """
        log = harness.log
        self.metadata.on_partition_leadership_changes([self.id_of(log)], [])
        copied = log.remote.segments_to_copy(0)
        for segment in copied:
            metadata = RemoteLogSegmentMetadata(
                segment_id=RemoteLogSegmentId(self.id_of(log), SystemIds().uuid()),
                start_offset=segment.base_offset,
                end_offset=segment.end_offset,
                max_timestamp_ms=segment.max_timestamp,
                broker_id=1,
                event_timestamp_ms=NOW,
                segment_size_in_bytes=segment.size - missing_bytes,
                segment_leader_epochs=segment.leader_epochs,
                txn_index_empty=segment.txn_index is None,
            )
            await self.storage.copy_log_segment_data(
                metadata,
                LogSegmentData(
                    log_segment=segment.log,
                    offset_index=segment.offset_index,
                    time_index=segment.time_index,
                    transaction_index=segment.txn_index,
                    producer_snapshot_index=segment.producer_snapshot,
                    leader_epoch_index=segment.epoch_history,
                ),
            )
            if missing_bytes:
                os.truncate(self.object_of(metadata), metadata.segment_size_in_bytes)
            finished = RemoteLogSegmentMetadataUpdate(
                segment_id=metadata.segment_id,
                event_timestamp_ms=NOW,
                state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
                broker_id=1,
            )
            self.topic.values[metadata_partition(self.id_of(log), len(self.topic.values))] += [
                serialize(metadata),
                serialize(finished),
            ]
            log.remote.update_highest_offset(segment.end_offset)
        self.topic.wake()
        log.retention.delete_old_segments(harness.clock.now_ms())
        async with asyncio.timeout(20):
            while not self.metadata.is_ready(self.id_of(log)) or len(self.segments(log)) < len(copied):
                await asyncio.to_thread(lambda: None)

    @staticmethod
    def id_of(log: UnifiedLog) -> TopicIdPartition:
        assert log.topic_id is not None
        return TopicIdPartition(log.topic_id, log.topic_partition)

    def segments(self, log: UnifiedLog) -> Sequence[RemoteLogSegmentMetadata]:
        return [
            segment
            for segment in self.metadata.list_remote_log_segments(self.id_of(log))
            if segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
        ]

    def object_of(self, segment: RemoteLogSegmentMetadata, suffix: str = "log") -> Path:
        """The file that holds a segment, or one of its indexes."""
        partition = segment.partition.topic_partition
        (path,) = self.directory.glob(f"remote/{partition}-*/{segment.start_offset:020d}-*.{suffix}")
        return path

    async def reader(
        self, limits: RemoteReaderLimits | None = None, *, has_files: bool = False, quota: FetchQuota | None = None
    ) -> RemoteLogReader:
        """A reader, until the test ends."""
        storage = ObjectRemoteStorage(self.store, directory=self.directory / "remote") if has_files else self.storage
        reader = RemoteLogReader(
            storage, self.metadata, self.indexes, limits=limits or RemoteReaderLimits(), clock=self.clock, quota=quota
        )
        return await self.stack.enter_async_context(reader.running())


@asynccontextmanager
async def open_world(
    directory: Path, url: str | None = None, options: ObjectOptions | None = None
) -> AsyncIterator[World]:
    """No partition yet. The store is a directory, unless a test names another."""
    clock, ids = SystemClock(), SystemIds()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        objects = await enter(
            open_objects(url or f"file://{directory}/remote", options, clock=clock, ids=ids, chance=SystemChance(1))
        )
        store = FaultyStore(objects, clock)
        storage = ObjectRemoteStorage(store)
        indexes = await enter(
            open_index_cache(directory / "index-cache", storage, max_bytes=1 << 20, clock=clock, ids=ids)
        )
        topic = MemoryMetadataTopic(1)
        metadata = TopicBasedRemoteLogMetadataManager(
            topic, directory=directory, limits=MetadataLimits(consume_wait=10.0), clock=clock
        )
        await enter(metadata.running())
        world = World(directory, store, storage, indexes, topic, metadata, clock, stack)
        try:
            yield world
        finally:
            for harness in world.logs:
                harness.log.close()
