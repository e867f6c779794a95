"""The `RemoteLogMetadataManager` that keeps remote log metadata in the topic `__remote_log_metadata`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from strandline.clock import Clock
from strandline.crash import crash_point
from strandline.model import REMOTE_LOG_METADATA_TOPIC, LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.remote.plugins import MetadataPluginContext
from strandline.remote.ports import RemoteStorageError
from strandline.remote.topic_based.cache import RemoteLogMetadataCache
from strandline.remote.topic_based.consumer import MetadataConsumer
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.partitioner import metadata_partition
from strandline.remote.topic_based.records import RemoteLogMetadata, partition_of, serialize
from strandline.remote.topic_based.snapshots import SnapshotFiles
from strandline.remote.topic_based.topic import MetadataTopic, TopicDescription
from strandline.remote.values import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
    RemoteSummary,
)


@dataclass(frozen=True, slots=True)
class MetadataPartitionStatus:
    """How far one metadata partition has been read."""

    partition: int
    position: Offset
    is_caught_up: bool
    segments: int
    last_error: str | None


class TopicBasedRemoteLogMetadataManager:
    """Writes to the metadata topic, and answers from what it has read of it.

    A write returns when it has been read back, so that every later query sees it; if a write of another broker came
    first and made it illegal, it raises. This broker reads the metadata partitions of its own partitions, and those
    that it leads, which may hold metadata of deleted topics. It goes on reading a metadata partition once it has begun:
    the metadata of a deleted topic is needed until its last segment is deleted.
    """

    def __init__(self, topic: MetadataTopic, *, directory: Path, limits: MetadataLimits, clock: Clock) -> None:
        self._topic, self._limits, self._clock = topic, limits, clock
        self._files = SnapshotFiles(directory)
        self._description: TopicDescription | None = None
        self._wanted: set[TopicIdPartition] = set()
        self._consumers: dict[int, MetadataConsumer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None

    @classmethod
    async def open(cls, config: Mapping[str, str], context: MetadataPluginContext) -> Self:
        """With the settings with the prefix `rlmm.config.`. Raises InvalidConfig. Works inside `running`."""
        limits = MetadataLimits.from_config(config)
        return cls(context.metadata_topic, directory=context.log_dirs[0], limits=limits, clock=context.clock)

    # Lifecycle

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Read the topic while the block lasts; write snapshots at its end."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            unsubscribe = self._topic.subscribe(self._follow)
            try:
                self._follow()
                yield self
            finally:
                unsubscribe()
                self._group = None
                await self._stop_reading()

    async def close(self) -> None:
        """Write snapshots. Leaving `running` has done that already."""
        for consumer in self._consumers.values():
            await consumer.save()

    async def _stop_reading(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.close()

    def _follow(self) -> None:
        """Start reading metadata partitions that are needed and not being read yet."""
        description = self._topic.describe()
        if description is None or self._group is None:
            return
        if self._description is not None and description.topic_id != self._description.topic_id:
            self._forget_topic()
        if self._description is None:
            self._description = description
            self._announce(self._wanted)
        for number in self._topic.led_partitions():
            self._consumer(number)

    def _forget_topic(self) -> None:
        """The topic was deleted and created again: drop everything that was read."""
        for task in self._tasks:
            task.cancel()
        self._consumers.clear()
        self._description = None

    def _consumer(self, number: int) -> MetadataConsumer:
        consumer = self._consumers.get(number)
        if consumer is None:
            assert self._description is not None
            consumer = self._consumers[number] = MetadataConsumer(
                number, self._description, self._topic, self._files, limits=self._limits, clock=self._clock
            )
            self._start(consumer.run(), f"remote-log-metadata-{number}")
        return consumer

    def _announce(self, partitions: Iterable[TopicIdPartition]) -> None:
        if self._description is None or self._group is None:
            return
        by_consumer: dict[int, list[TopicIdPartition]] = {}
        for partition in partitions:
            by_consumer.setdefault(metadata_partition(partition, self._description.partitions), []).append(partition)
        for number, announced in by_consumer.items():
            consumer = self._consumer(number)
            consumer.announce(announced)
            self._start(consumer.settle(announced), f"remote-log-metadata-{number}-settling")

    # Writes

    async def add_remote_log_segment_metadata(self, metadata: RemoteLogSegmentMetadata) -> None:
        await self._write(metadata)

    async def update_remote_log_segment_metadata(self, update: RemoteLogSegmentMetadataUpdate) -> None:
        await self._write(update)

    async def put_remote_partition_delete_metadata(self, metadata: RemotePartitionDeleteMetadata) -> None:
        await self._write(metadata)

    async def _write(self, message: RemoteLogMetadata) -> None:
        deadline = self._clock.monotonic() + self._limits.consume_wait
        partition = partition_of(message)
        consumer = await self._ready_consumer(partition, deadline)
        consumer.store.check(message)
        offset = await self._topic.append(consumer.partition, serialize(message))
        crash_point("remote.metadata.after_append")
        if not await consumer.wait_read(offset, deadline=deadline):
            raise RemoteStorageError(
                f"Offset {offset} of {REMOTE_LOG_METADATA_TOPIC}-{consumer.partition} was written for {partition} but "
                f"not read back within {self._limits.consume_wait:g} s (remote.log.metadata.consume.wait.ms)."
            )

    async def _ready_consumer(self, partition: TopicIdPartition, deadline: float) -> MetadataConsumer:
        if partition not in self._wanted:
            self.on_partition_leadership_changes([partition], [])
        consumer = self._consumer_of(partition)
        if consumer is None or not await consumer.wait_ready(partition, deadline=deadline):
            raise self._not_ready(partition)
        return consumer

    # Queries

    def remote_log_segment_metadata(
        self, partition: TopicIdPartition, epoch: LeaderEpoch, offset: Offset
    ) -> RemoteLogSegmentMetadata | None:
        return self._cache(partition).remote_log_segment_metadata(epoch, offset)

    def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: LeaderEpoch, offset: Offset
    ) -> RemoteLogSegmentMetadata | None:
        return self._cache(partition).next_segment_with_txn_index(epoch, offset)

    def highest_offset_for_epoch(self, partition: TopicIdPartition, epoch: LeaderEpoch) -> Offset | None:
        return self._cache(partition).highest_offset_for_epoch(epoch)

    def leader_epochs_from(self, partition: TopicIdPartition, offset: Offset) -> Sequence[tuple[LeaderEpoch, Offset]]:
        return self._cache(partition).leader_epochs_from(offset)

    def list_remote_log_segments(
        self, partition: TopicIdPartition, epoch: LeaderEpoch | None = None
    ) -> Sequence[RemoteLogSegmentMetadata]:
        return self._cache(partition).list_remote_log_segments(epoch)

    def iter_remote_log_segments(
        self, partition: TopicIdPartition, epoch: LeaderEpoch | None = None
    ) -> Iterator[RemoteLogSegmentMetadata]:
        return self._cache(partition).iter_remote_log_segments(epoch)

    def find_remote_log_segment(self, partition: TopicIdPartition, segment_id: UUID) -> RemoteLogSegmentMetadata | None:
        return self._cache(partition).find_segment(segment_id)

    def overlapping_remote_log_segments(
        self, partition: TopicIdPartition, first: Offset, last: Offset
    ) -> Sequence[RemoteLogSegmentMetadata]:
        return self._cache(partition).overlapping(first, last)

    def remote_log_segments_from_offset(
        self, partition: TopicIdPartition, offset: Offset
    ) -> Iterator[RemoteLogSegmentMetadata]:
        return self._cache(partition).iter_from_offset(offset)

    def remote_log_segments_from_time(
        self, partition: TopicIdPartition, timestamp: TimestampMs
    ) -> Iterator[RemoteLogSegmentMetadata]:
        return self._cache(partition).iter_from_time(timestamp)

    def last_remote_log_segment_up_to(
        self, partition: TopicIdPartition, offset: Offset
    ) -> RemoteLogSegmentMetadata | None:
        return self._cache(partition).last_up_to(offset)

    def remote_log_summary(self, partition: TopicIdPartition) -> RemoteSummary:
        return self._cache(partition).summary()

    def remote_log_size(self, partition: TopicIdPartition, epoch: LeaderEpoch) -> int:
        return self._cache(partition).remote_log_size(epoch)

    def is_ready(self, partition: TopicIdPartition) -> bool:
        consumer = self._consumer_of(partition)
        return consumer is not None and consumer.is_ready(partition)

    def partition_delete_state(self, partition: TopicIdPartition) -> RemotePartitionDeleteState | None:
        deletion = self._cache(partition).deletion
        return None if deletion is None else deletion.state

    def partitions(self) -> Collection[TopicIdPartition]:
        return [partition for consumer in self._consumers.values() for partition in consumer.store.partitions()]

    def status(self) -> Sequence[MetadataPartitionStatus]:
        """How far each metadata partition that this broker reads has been read."""
        return [
            MetadataPartitionStatus(
                number, consumer.position, consumer.is_caught_up, consumer.store.segment_count(), consumer.last_error
            )
            for number, consumer in sorted(self._consumers.items())
        ]

    def _cache(self, partition: TopicIdPartition) -> RemoteLogMetadataCache:
        consumer = self._consumer_of(partition)
        if consumer is None or not consumer.is_ready(partition):
            raise self._not_ready(partition)
        return consumer.store.cache(partition)

    def _consumer_of(self, partition: TopicIdPartition) -> MetadataConsumer | None:
        if self._description is None:
            return None
        return self._consumers.get(metadata_partition(partition, self._description.partitions))

    def _not_ready(self, partition: TopicIdPartition) -> RemoteStorageError:
        consumer = self._consumer_of(partition)
        if self._description is None:
            reason = f"The topic {REMOTE_LOG_METADATA_TOPIC} does not exist yet."
        elif consumer is None:
            reason = "This broker has no replica of the partition."
        else:
            reason = consumer.last_error or f"{REMOTE_LOG_METADATA_TOPIC}-{consumer.partition} is still being read."
        return RemoteStorageError(f"The remote log metadata of {partition} is not ready. {reason}")

    # Leaders and followers

    def on_partition_leadership_changes(
        self, leaders: Collection[TopicIdPartition], followers: Collection[TopicIdPartition]
    ) -> None:
        changed = [*leaders, *followers]
        self._wanted.update(changed)
        self._follow()
        self._announce(changed)

    def on_stop_partitions(self, partitions: Collection[TopicIdPartition]) -> None:
        self._wanted.difference_update(partitions)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        assert self._group is not None
        task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
