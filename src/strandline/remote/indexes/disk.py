"""The index cache on disk: which segments have files there, and which are evicted."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from uuid import UUID

from strandline.remote.indexes.files import CachedSegment, IndexFiles, cache_name
from strandline.remote.indexes.segment import RemoteIndexDamaged
from strandline.remote.values import IndexType, RemoteLogSegmentMetadata

T = TypeVar("T")

logger = logging.getLogger(__name__)


class IndexDisk:
    """Cached files with a bound on their bytes. Evicts the least recently used segments."""

    def __init__(self, files: IndexFiles, max_bytes: int) -> None:
        self._files = files
        # One thread keeps the order of calls: a removal never hits files that are written after it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="remote-index-cache")
        self._segments: OrderedDict[UUID, CachedSegment] = OrderedDict()
        # Segments whose files are being written, and those of them to be removed once they are written.
        self._storing: Counter[UUID] = Counter()
        self._doomed: set[UUID] = set()
        self.max_bytes = max_bytes
        self.bytes = 0
        self.damaged = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._segments)

    async def open(self) -> None:
        """Take over the files of the last run. Raises OSError."""
        for segment in await self.on_thread(self._files.open):
            self._segments[segment.segment_id] = segment
            self.bytes += segment.size
        self._make_room()

    async def close(self) -> None:
        """Return when all pending work on files is done. Files stay on disk."""
        await asyncio.to_thread(self._thread.shutdown, wait=True)

    async def on_thread(self, work: Callable[[], T]) -> T:
        """Do blocking work in the thread of the cache."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def touch(self, segment_id: UUID) -> None:
        """Note that a segment is in use."""
        if segment_id in self._segments:
            self._segments.move_to_end(segment_id)

    async def load(
        self,
        metadata: RemoteLogSegmentMetadata,
        kinds: Collection[IndexType],
        parse: Callable[[Mapping[IndexType, bytes]], T],
    ) -> T | None:
        """Indexes from disk, parsed; None if they are not there. Damaged files are removed."""
        segment_id = metadata.segment_id.id
        if segment_id not in self._segments:
            return None

        def work() -> T | None:
            data = self._files.load(metadata, kinds)
            return parse(data) if data is not None else None

        try:
            found = await self.on_thread(work)
        except (OSError, RemoteIndexDamaged) as error:
            logger.warning("a cached remote index is damaged and will be fetched again: %s", error)
            self.damaged += 1
            self.drop(segment_id)
            return None
        self.touch(segment_id)
        return found

    async def store(self, metadata: RemoteLogSegmentMetadata, data: Mapping[IndexType, bytes]) -> None:
        """Write indexes. A failure is only logged: the reader has the fetched indexes."""
        segment_id, name, size = metadata.segment_id.id, cache_name(metadata), None
        self._storing[segment_id] += 1
        try:
            size = await self.on_thread(lambda: self._files.store(metadata, data))
        except (OSError, RemoteIndexDamaged) as error:
            logger.warning("a remote index cannot be written to disk and will be fetched again when needed: %s", error)
        finally:
            self._storing[segment_id] -= 1
        is_doomed = segment_id in self._doomed
        if not self._storing[segment_id]:
            del self._storing[segment_id]
            self._doomed.discard(segment_id)
        if size is None or is_doomed:
            self._drop(segment_id, name)
            return
        before = self._segments.pop(segment_id, None)
        self.bytes += size - (before.size if before is not None else 0)
        self._segments[segment_id] = CachedSegment(segment_id, name, size)
        self._make_room()

    def drop(self, segment_id: UUID) -> None:
        """Remove the files of a segment, if there are any."""
        self._drop(segment_id, None)

    def _drop(self, segment_id: UUID, name: str | None) -> None:
        segment = self._segments.pop(segment_id, None)
        if segment is not None:
            self.bytes -= segment.size
            name = segment.name
        if self._storing[segment_id]:
            self._doomed.add(segment_id)
        elif name is not None:
            self._thread.submit(self._remove, name)

    def _make_room(self) -> None:
        while self.bytes > self.max_bytes and self._segments:
            self.evictions += 1
            self.drop(next(iter(self._segments)))

    def _remove(self, name: str) -> None:
        try:
            self._files.remove(name)
        except OSError as error:
            logger.warning("a cached remote index cannot be removed: %s", error)
