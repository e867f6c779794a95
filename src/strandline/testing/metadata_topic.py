"""A `MetadataTopic` in memory, which fails when a test wants it to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from uuid import UUID

from strandline.clock import Clock, SystemClock
from strandline.model import Offset
from strandline.remote.topic_based.topic import (
    MetadataTopicRecord,
    MetadataTopicTruncated,
    MetadataTopicUnavailable,
    TopicChunk,
    TopicDescription,
)

_CHUNK = 1000


class MemoryMetadataTopic:
    """Partitions as lists of values; None in a list is a record that cannot be read."""

    def __init__(
        self,
        partitions: int = 3,
        *,
        led: Collection[int] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.values: list[list[bytes | None]] = [[] for _ in range(partitions)]
        self.exists = True
        self.reads = 0
        self.fail_reads: str | None = None
        self.fail_appends: str | None = None
        self.hold_reads = False
        """Reads find nothing, as if the records were delayed."""
        self._topic_id = UUID(int=0x4D)
        self._led = range(partitions) if led is None else led
        self._clock = clock or SystemClock()
        self._more = asyncio.Event()
        self._subscribers: list[Callable[[], None]] = []

    def describe(self) -> TopicDescription | None:
        return TopicDescription(self._topic_id, len(self.values)) if self.exists else None

    def led_partitions(self) -> Collection[int]:
        return self._led

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        self._subscribers.append(changed)
        return lambda: self._subscribers.remove(changed)

    def appear(self, topic_id: UUID | None = None) -> None:
        """The topic is created, perhaps again with another id."""
        self.exists = True
        if topic_id is not None:
            self._topic_id = topic_id
            self.values = [[] for _ in self.values]
        for changed in tuple(self._subscribers):
            changed()

    def wake(self) -> None:
        """Let waiting reads look again, after a test has changed something."""
        self._more.set()
        self._more = asyncio.Event()

    async def append(self, partition: int, value: bytes) -> Offset:
        await self._clock.sleep(0)
        if self.fail_appends is not None:
            raise MetadataTopicUnavailable(self.fail_appends)
        self.values[partition].append(value)
        self.wake()
        return len(self.values[partition]) - 1

    async def read(self, partition: int, from_offset: Offset, *, wait: float) -> TopicChunk:
        await self._clock.sleep(0)
        values = self.values[partition]
        self._check(len(values), from_offset)
        if from_offset == len(values) or self.hold_reads:
            await self._clock.wait_set(self._more, within=wait)
            self._check(len(values), from_offset)
        if self.hold_reads:
            return TopicChunk((), from_offset)
        self.reads += 1
        records = [
            MetadataTopicRecord(offset, value, "It is damaged." if value is None else None)
            for offset, value in enumerate(values[from_offset : from_offset + _CHUNK], from_offset)
        ]
        return TopicChunk(records, from_offset + len(records))

    def _check(self, end: Offset, from_offset: Offset) -> None:
        if self.fail_reads is not None:
            raise MetadataTopicUnavailable(self.fail_reads)
        if from_offset > end:
            raise MetadataTopicTruncated(f"The partition ends at offset {end}, before {from_offset}.")

    async def end_offset(self, partition: int) -> Offset:
        await self._clock.sleep(0)
        if self.fail_reads is not None:
            raise MetadataTopicUnavailable(self.fail_reads)
        return len(self.values[partition])

    async def close(self) -> None:
        return None
