"""The part of the index cache on disk: which segments have files there, and which of them make room for others."""

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
    """Cached files with a bound on their bytes. Those of the segments that were used least recently go first."""

    def __init__(self, files: IndexFiles, max_bytes: int) -> None:
        self._files = files
        # One thread: what was asked for later happens later, so that a removal never hits what is written after it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="remote-index-cache")
        self._segments: OrderedDict[UUID, CachedSegment] = OrderedDict()
        # Segments with files on their way to the disk, and those of them that go again as soon as they have arrived.
        self._storing: Counter[UUID] = Counter()
        self._doomed: set[UUID] = set()
        self.max_bytes = max_bytes
        self.bytes = 0
        self.damaged = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._segments)

    async def open(self) -> None:
        """Take over what the last run left. Raises OSError."""
        for segment in await self.on_thread(self._files.open):
            self._segments[segment.segment_id] = segment
            self.bytes += segment.size
        self._make_room()

    async def close(self) -> None:
        """Return when everything that was asked for is done. What is on disk stays there."""
        await asyncio.to_thread(self._thread.shutdown, wait=True)

    async def on_thread(self, work: Callable[[], T]) -> T:
        """Do something that takes long in the thread of the cache."""
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
        """What is on disk, parsed; None if it is not there. If it is damaged, it is removed."""
        segment_id = metadata.segment_id.id
        if segment_id not in self._segments:
            return None

        def work() -> T | None:
            data = self._files.load(metadata, kinds)
            return parse(data) if data is not None else None

        try:
            found = await self.on_thread(work)
        except (OSError, RemoteIndexDamaged) as error:
            logger.warning("a cached remote index is fetched again: %s", error)
            self.damaged += 1
            self.drop(segment_id)
            return None
        self.touch(segment_id)
        return found

    async def store(self, metadata: RemoteLogSegmentMetadata, data: Mapping[IndexType, bytes]) -> None:
        """Keep indexes. A disk that cannot is no reason to leave a reader without them."""
        segment_id, name, size = metadata.segment_id.id, cache_name(metadata), None
        self._storing[segment_id] += 1
        try:
            size = await self.on_thread(lambda: self._files.store(metadata, data))
        except (OSError, RemoteIndexDamaged) as error:
            logger.warning("a remote index cannot be kept on disk, which costs a fetch the next time: %s", error)
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
