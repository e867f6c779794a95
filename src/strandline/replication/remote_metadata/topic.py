"""`MetadataTopic` on the partitions of `__remote_log_metadata`: led by this broker, and led by others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from strandline.clock import Clock
from strandline.errors import CorruptMessage, StrandlineError
from strandline.metadata import Images, MetadataDelta, MetadataImage
from strandline.model import REMOTE_LOG_METADATA_TOPIC, BrokerId, Offset, TopicPartition
from strandline.reads import RecordSet
from strandline.remote.topic_based.topic import (
    MetadataTopicTruncated,
    MetadataTopicUnavailable,
    TopicChunk,
    TopicDescription,
)
from strandline.replication.partition import Partition
from strandline.replication.remote_metadata.batches import metadata_batch, read_chunk
from strandline.replication.remote_metadata.leader import READ_BYTES, MetadataLeaderClient
from strandline.replication.replica_manager import ReplicaManager
from strandline.replication.replicated import wait_replicated

_APPEND_MS: Final = 30_000
_END_MS: Final = 10_000


class ImageFeed(Images, Protocol):
    """The newest image, and news of every later one. Implemented by `MetadataLoader`."""

    def subscribe(self, subscriber: Callable[[MetadataDelta, MetadataImage], None]) -> Callable[[], None]:
        """Call `subscriber` for every change from now on, until the function that is returned is called."""


class ReplicatedMetadataTopic:
    """The topic as the metadata of the cluster has it. Creating the topic is up to the caller."""

    def __init__(
        self, replicas: ReplicaManager, images: ImageFeed, *, node_id: BrokerId, listener: str, clock: Clock
    ) -> None:
        self._replicas, self._images, self._node_id, self._clock = replicas, images, node_id, clock
        self._listener = listener
        self._others: dict[int, MetadataLeaderClient] = {}
        self._unsubscribe = images.subscribe(self._follow)

    def _follow(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Requests to a broker that does not lead any more are given up: it may be cut off, and never answer."""
        if REMOTE_LOG_METADATA_TOPIC in delta.changed_topics:
            for number, other in self._others.items():
                if _leader_in(delta.old, number) != _leader_in(image, number):
                    other.give_up()

    def describe(self) -> TopicDescription | None:
        topic = self._images.image.topics.get(REMOTE_LOG_METADATA_TOPIC)
        return None if topic is None else TopicDescription(topic.topic_id, len(topic.partitions))

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        def look(delta: MetadataDelta, _: MetadataImage) -> None:
            if REMOTE_LOG_METADATA_TOPIC in delta.changed_topics:
                changed()

        return self._images.subscribe(look)

    def led_partitions(self) -> Collection[int]:
        topic = self._images.image.topics.get(REMOTE_LOG_METADATA_TOPIC)
        partitions = () if topic is None else topic.partitions
        return [image.partition for image in partitions if image.leader == self._node_id]

    async def append(self, partition: int, value: bytes) -> Offset:
        batch = metadata_batch(value, self._clock.now_ms())
        with _unavailable(partition):
            if not self._leads(partition):
                return await self._other(partition).append(bytes(batch))
            info = await self._leader(partition).append_and_wait(memoryview(batch), timeout_ms=_APPEND_MS)
            return info.last_offset

    async def end_offset(self, partition: int) -> Offset:
        with _unavailable(partition):
            if not self._leads(partition):
                return await self._other(partition).end_offset()
            # A new leader has its high watermark from a checkpoint, and may have committed records above it. Callers
            # take what is below the end for everything there is, and delete segments that it does not name.
            leader = self._leader(partition)
            await wait_replicated(leader, timeout_ms=_END_MS)
            return leader.log.high_watermark

    async def read(self, partition: int, from_offset: Offset, *, wait: float) -> TopicChunk:
        with _unavailable(partition):
            if not self._leads(partition):
                return await self._other(partition).read(from_offset, wait=wait)
            leader = self._leader(partition)
            end = leader.log.log_end_offset
            if from_offset > end:
                raise MetadataTopicTruncated(f"{leader.topic_partition} ends at offset {end}, before {from_offset}.")
            offset = max(from_offset, leader.log.log_start_offset)
            records = self._slice(leader, offset)
            if records is None:
                await self._wait_for_more(leader, offset, wait)
                records = self._slice(self._leader(partition), offset)
            if records is None:
                return TopicChunk((), offset)
            return await asyncio.to_thread(_read, records, offset)

    def _slice(self, leader: Partition, offset: Offset) -> RecordSet | None:
        return leader.log.read(offset, READ_BYTES).records

    async def _wait_for_more(self, leader: Partition, offset: Offset, wait: float) -> None:
        watcher = _Watcher()
        leader.watch(watcher)
        try:
            if leader.log.high_watermark <= offset:
                await self._clock.wait_set(watcher.event, within=wait)
        finally:
            leader.unwatch(watcher)

    async def close(self) -> None:
        self._unsubscribe()
        for other in self._others.values():
            other.close()

    def _leads(self, partition: int) -> bool:
        image = self._images.image.partition(REMOTE_LOG_METADATA_TOPIC, partition)
        return image is not None and image.leader == self._node_id

    def _leader(self, partition: int) -> Partition:
        return self._replicas.get_leader(TopicPartition(REMOTE_LOG_METADATA_TOPIC, partition))

    def _other(self, partition: int) -> MetadataLeaderClient:
        other = self._others.get(partition)
        if other is None:
            other = self._others[partition] = MetadataLeaderClient(
                partition, self._images, node_id=self._node_id, listener=self._listener
            )
        return other


def _leader_in(image: MetadataImage, partition: int) -> BrokerId | None:
    found = image.partition(REMOTE_LOG_METADATA_TOPIC, partition)
    return None if found is None else found.leader


class _Watcher:
    """Sets an event when the partition changes."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def notify(self) -> None:
        self.event.set()


def _read(records: RecordSet, offset: Offset) -> TopicChunk:
    return read_chunk(records.read(), offset)


@contextmanager
def _unavailable(partition: int) -> Iterator[None]:
    """Translate the errors of partitions into those of the port."""
    name = f"{REMOTE_LOG_METADATA_TOPIC}-{partition}"
    try:
        yield
    except CorruptMessage as error:
        raise MetadataTopicUnavailable(f"{name} has bytes that are not a batch: {error}") from error
    except (StrandlineError, OSError) as error:
        raise MetadataTopicUnavailable(f"{name}: {error}") from error
