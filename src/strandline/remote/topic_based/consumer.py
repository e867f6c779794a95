"""Reads one partition of `__remote_log_metadata` into its caches: to the end, then new records as they come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from strandline.clock import Clock
from strandline.errors import CorruptMessage
from strandline.model import REMOTE_LOG_METADATA_TOPIC, Offset, TopicIdPartition
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError
from strandline.remote.topic_based.cache import RemotePartitionMetadataStore, StoreImage
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.records import deserialize
from strandline.remote.topic_based.retrying import TopicRetries
from strandline.remote.topic_based.snapshots import SnapshotFiles
from strandline.remote.topic_based.topic import (
    MetadataTopic,
    MetadataTopicRecord,
    MetadataTopicTruncated,
    TopicChunk,
    TopicDescription,
)

logger = logging.getLogger(__name__)

# Records that are applied before other tasks get their turn.
_RECORDS_PER_TURN: Final = 200
_REFUSALS_KEPT: Final = 1000


class MetadataConsumer:
    """The caches of one metadata partition, and how far it has been read. Lives on the event loop."""

    def __init__(
        self,
        partition: int,
        description: TopicDescription,
        topic: MetadataTopic,
        files: SnapshotFiles,
        *,
        limits: MetadataLimits,
        clock: Clock,
    ) -> None:
        self.partition = partition
        self.store = RemotePartitionMetadataStore()
        self.position: Offset = 0
        """All records before this offset are in the store."""
        self.is_caught_up = False
        """Whether all records that were there at the start have been read."""
        self._description, self._topic, self._files = description, topic, files
        self._limits, self._clock = limits, clock
        self._name = f"{REMOTE_LOG_METADATA_TOPIC}-{partition}"
        self._retries = TopicRetries(self._name, limits, clock)
        self._unsettled: dict[TopicIdPartition, Offset | None] = {}
        self._refused: dict[Offset, ValueError | RemoteResourceNotFound] = {}
        self._changed = asyncio.Event()
        self._saved_position: Offset = 0
        self._saved_at = clock.monotonic()

    # Queries

    @property
    def last_error(self) -> str | None:
        """Why reading fails at the moment; None if it does not."""
        return self._retries.last_error

    def is_ready(self, partition: TopicIdPartition) -> bool:
        """Whether all metadata that a partition had when it was announced has been read."""
        return self.is_caught_up and partition not in self._unsettled

    async def wait_ready(self, partition: TopicIdPartition, *, deadline: float) -> bool:
        """Wait until `is_ready`; False if the deadline comes first."""
        return await self._wait(lambda: self.is_ready(partition), deadline)

    async def wait_read(self, offset: Offset, *, deadline: float) -> bool:
        """Wait until the record at `offset` has been read; False if the deadline comes first.

        Raises the error of the cache if it refused the record.
        """
        if not await self._wait(lambda: self.position > offset, deadline):
            return False
        refusal = self._refused.pop(offset, None)
        if refusal is not None:
            raise refusal
        return True

    async def _wait(self, holds: Callable[[], bool], deadline: float) -> bool:
        while not holds():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            await self._clock.wait_set(self._changed, within=left)
        return True

    # Readiness

    def announce(self, partitions: Collection[TopicIdPartition]) -> None:
        """These partitions are not ready until `settle` has found out how far to read, and that is done."""
        self._unsettled.update(dict.fromkeys(partitions))

    async def settle(self, partitions: Collection[TopicIdPartition]) -> None:
        """Let announced partitions become ready once all records that are in the topic now have been read.

        Their last leader may have written metadata until just now.
        """
        retries = TopicRetries(self._name, self._limits, self._clock)
        while True:
            try:
                end = await self._topic.end_offset(self.partition)
                break
            except RemoteStorageError as error:
                await retries.pause(error)
        for partition in partitions:
            if partition in self._unsettled:
                self._unsettled[partition] = end
        self._moved()

    def _moved(self) -> None:
        if self._unsettled:
            settled = [
                partition
                for partition, target in self._unsettled.items()
                if target is not None and target <= self.position
            ]
            for partition in settled:
                del self._unsettled[partition]
        self._changed.set()
        self._changed = asyncio.Event()

    # Reading

    async def run(self) -> None:
        """Read until cancelled."""
        await self._restore()
        target: Offset | None = None
        while True:
            try:
                if target is None:
                    target = await self._topic.end_offset(self.partition)
                if not self.is_caught_up and self.position >= target:
                    self._catch_up()
                chunk = await self._topic.read(self.partition, self.position, wait=self._limits.read_wait)
            except MetadataTopicTruncated as error:
                logger.error("%s is read from its beginning: %s", self._name, error)
                self._start_over()
                target = None
            except RemoteStorageError as error:
                await self._retries.pause(error)
            else:
                self._retries.succeeded()
                await self._take(chunk)
                await self._save_if_due()

    def _catch_up(self) -> None:
        self.is_caught_up = True
        if self.position:
            partitions, segments = len(self.store.partitions()), self.store.segment_count()
            logger.info("%s: read metadata of %d remote segments of %d partitions", self._name, segments, partitions)
        self._moved()

    def _start_over(self) -> None:
        self.store, self.position = RemotePartitionMetadataStore(), 0
        self.is_caught_up = False
        self._saved_position = 0

    async def _take(self, chunk: TopicChunk) -> None:
        for count, record in enumerate(chunk.records, 1):
            self._apply(record)
            if count % _RECORDS_PER_TURN == 0:
                await self._clock.sleep(0)
        self.position = max(self.position, chunk.next_offset)
        self._moved()

    def _apply(self, record: MetadataTopicRecord) -> None:
        """Apply a record. A record that cannot be read or is illegal is skipped."""
        self.position = record.offset + 1
        if record.problem is not None or record.value is None:
            self._skip(record.offset, record.problem or "It has no value.")
            return
        try:
            message = deserialize(record.value)
        except CorruptMessage as error:
            self._skip(record.offset, str(error))
            return
        try:
            self.store.apply(message)
        except (ValueError, RemoteResourceNotFound) as refusal:
            self._skip(record.offset, str(refusal))
            self._refused[record.offset] = refusal
            if len(self._refused) > _REFUSALS_KEPT:
                del self._refused[next(iter(self._refused))]

    def _skip(self, offset: Offset, problem: str) -> None:
        logger.warning("%s: the record at offset %d is skipped: %s", self._name, offset, problem)

    # Snapshots

    async def _restore(self) -> None:
        restored = await asyncio.to_thread(self._load)
        if restored is not None:
            self.store, self.position = restored
            self._saved_position = self.position

    def _load(self) -> tuple[RemotePartitionMetadataStore, Offset] | None:
        image = self._files.load(self.partition, self._description)
        return None if image is None else (RemotePartitionMetadataStore(image.caches), image.next_offset)

    async def _save_if_due(self) -> None:
        if self._clock.monotonic() - self._saved_at >= self._limits.snapshot_interval:
            await self.save()

    async def save(self) -> None:
        """Write a snapshot, so that these records need not be read again. A failure is only logged."""
        self._saved_at = self._clock.monotonic()
        if not self.is_caught_up or self.position == self._saved_position:
            return
        image = StoreImage(*self._description, self.position, self.store.images())
        try:
            await asyncio.to_thread(self._files.save, self.partition, image)
        except OSError as error:
            logger.warning("the snapshot of %s cannot be written: %s", self._name, error)
        else:
            self._saved_position = image.next_offset
