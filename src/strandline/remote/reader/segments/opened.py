"""Remote segments that are being read, with their indexes and bytes. Opened once, closed when idle."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from strandline.clock import Clock
from strandline.model import Offset
from strandline.remote.indexes import RemoteIndexCache, RemoteIndexes
from strandline.remote.ports import LocalSegmentFiles, RemoteStorageManager
from strandline.remote.reader.segments.files import FileReads
from strandline.remote.reader.segments.memory import ChunkCache
from strandline.remote.reader.segments.source import SegmentBytes
from strandline.remote.values import RemoteLogSegmentMetadata

MOST_OPEN: Final = 256
# The open file of a deleted segment takes disk space: it must not stay open without readers.
IDLE_SECONDS: Final = 60.0


class OpenSegment:
    """A segment that can be read."""

    __slots__ = ("id", "indexes", "metadata", "source", "used_at")

    def __init__(self, metadata: RemoteLogSegmentMetadata, indexes: RemoteIndexes, source: SegmentBytes) -> None:
        self.id = metadata.segment_id.id
        self.metadata = metadata
        self.indexes = indexes
        self.source = source
        self.used_at = 0.0

    def upper_offset(self, end: int) -> Offset:
        """An offset above all records before position `end`; it may be somewhat too high."""
        found = self.indexes.offset_at_or_after(end)
        return self.metadata.end_offset + 1 if found is None else found


class OpenSegments:
    """The open segments, least recently used first. Lives on the event loop.

    Their indexes are in the memory of the index cache and count there; it evicts the least recently used first, too.
    """

    def __init__(
        self,
        storage: RemoteStorageManager,
        indexes: RemoteIndexCache,
        chunks: ChunkCache,
        files: FileReads,
        clock: Clock,
    ) -> None:
        self._files_of = storage if isinstance(storage, LocalSegmentFiles) else None
        self._indexes, self._chunks, self._files, self._clock = indexes, chunks, files, clock
        self._open: OrderedDict[UUID, OpenSegment] = OrderedDict()
        self._opening: dict[UUID, asyncio.Task[OpenSegment]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def get(self, metadata: RemoteLogSegmentMetadata) -> OpenSegment | None:
        """The segment if it is open."""
        segment = self._open.get(metadata.segment_id.id)
        if segment is not None:
            segment.used_at = self._clock.monotonic()
            self._open.move_to_end(segment.id)
            self._indexes.note_use(segment.id)
        return segment

    async def open(self, metadata: RemoteLogSegmentMetadata) -> OpenSegment:
        """Open a segment, or wait until it is opened. Raises RemoteStorageError or KafkaStorageError."""
        segment = self.get(metadata)
        if segment is not None:
            return segment
        key = metadata.segment_id.id
        task = self._opening.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._open_now(metadata), name="remote-open")
            self._opening[key] = task
            task.add_done_callback(lambda done: self._opened(key, done))
        await asyncio.wait((task,))  # cancelling this call does not cancel the task, which others may wait for
        return task.result()

    def _opened(self, key: UUID, task: asyncio.Task[OpenSegment]) -> None:
        del self._opening[key]
        if task.cancelled() or task.exception() is not None:
            return
        segment = task.result()
        segment.used_at = self._clock.monotonic()
        self._open[key] = segment
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)[1].source.close()

    async def _open_now(self, metadata: RemoteLogSegmentMetadata) -> OpenSegment:
        indexes = await self._indexes.indexes(metadata)
        return OpenSegment(metadata, indexes, await self._source(metadata))

    async def _source(self, metadata: RemoteLogSegmentMetadata) -> SegmentBytes:
        path = self._files_of.log_segment_path(metadata) if self._files_of is not None else None
        if path is None:
            return self._chunks.source(metadata)
        return await self._files.open(path, metadata.segment_size_in_bytes)

    def forget(self, segment_ids: Iterable[UUID]) -> None:
        """These segments were deleted or are damaged. Slices that were handed out stay valid."""
        for key in segment_ids:
            segment = self._open.pop(key, None)
            if segment is not None:
                segment.source.close()

    def drop_idle(self) -> None:
        """Close segments that were not read for a while."""
        before = self._clock.monotonic() - IDLE_SECONDS
        self.forget([key for key, segment in self._open.items() if segment.used_at < before])

    async def close(self) -> None:
        """Close all."""
        opening = tuple(self._opening.values())
        for task in opening:
            task.cancel()
        if opening:
            await asyncio.wait(opening)
        self.forget(tuple(self._open))
