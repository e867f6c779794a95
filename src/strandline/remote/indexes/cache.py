"""The cache of remote indexes: those in use in memory, many more on disk, both bounded.

Concurrent requests for an index share one fetch, which goes on when all of them are cancelled. Indexes are values: a
reader may go on using one after its files are removed. Such indexes take memory beyond the bound, so readers hold
few of them and tell which they use (`note_use`); the cache keeps those.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import UUID

from strandline.clock import Clock, Ids
from strandline.remote.indexes.disk import IndexDisk
from strandline.remote.indexes.files import IndexFiles
from strandline.remote.indexes.memory import IndexMemory
from strandline.remote.indexes.segment import RemoteIndexes, SegmentAbortedTransactions, check_index
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError, RemoteStorageManager
from strandline.remote.values import IndexType, RemoteLogSegmentId, RemoteLogSegmentMetadata

# Two thirds are for positions: those of the 256 segments that the reader keeps open fit, whatever their size.
DEFAULT_MEMORY: Final = 96 * 1024 * 1024
_FETCHES_AT_ONCE: Final = 16


class _Part(Enum):
    """Indexes that are requested, fetched and kept together. Reads with read_uncommitted never need the second part."""

    POSITIONS = (IndexType.OFFSET, IndexType.TIMESTAMP)
    ABORTED = (IndexType.TRANSACTION,)


_Key: TypeAlias = tuple[UUID, _Part]
_Value: TypeAlias = RemoteIndexes | SegmentAbortedTransactions
_NOTHING_ABORTED: Final = SegmentAbortedTransactions()


@dataclass(slots=True)
class _IndexFetch:
    """An index that is being loaded or fetched."""

    task: asyncio.Task[Any]
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCacheStatus:
    """What the cache holds, its hits and its misses."""

    segments: int
    bytes: int
    """On disk."""
    max_bytes: int
    memory_bytes: int
    max_memory_bytes: int
    memory_hits: int
    disk_hits: int
    fetches: int
    """Misses: requests that went to remote storage."""
    errors: int
    """Fetches that failed."""
    damaged: int
    """Files on disk that did not match their checksums."""
    evictions: int
    """Segments whose files were removed to make room."""
    pending: int


class RemoteIndexCache:
    """Opened by `open_index_cache`."""

    def __init__(self, disk: IndexDisk, storage: RemoteStorageManager, *, max_memory_bytes: int) -> None:
        self._disk, self._storage = disk, storage
        self._fetching = asyncio.Semaphore(_FETCHES_AT_ONCE)
        self._aborted: IndexMemory[SegmentAbortedTransactions] = IndexMemory(max_memory_bytes // 3)
        self._positions: IndexMemory[RemoteIndexes] = IndexMemory(max_memory_bytes - self._aborted.max_bytes)
        self._flights: dict[_Key, _IndexFetch] = {}
        self._memory_hits = self._disk_hits = self._fetches = self._errors = 0

    async def close(self) -> None:
        """Cancel fetches. Files on disk stay."""
        flights = [flight.task for flight in self._flights.values()]
        for task in flights:
            task.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
        await self._disk.close()

    async def indexes(self, metadata: RemoteLogSegmentMetadata) -> RemoteIndexes:
        """The offset and time index of a segment.

        Raises RemoteResourceNotFound, RemoteIndexDamaged for a damaged remote index, or another RemoteStorageError.
        """
        found = await self._get(metadata, _Part.POSITIONS)
        assert isinstance(found, RemoteIndexes)
        return found

    async def aborted_transactions(self, metadata: RemoteLogSegmentMetadata) -> SegmentAbortedTransactions:
        """The transactions that were aborted in a segment, in the order of their markers. Raises as `indexes`."""
        if metadata.txn_index_empty:
            return _NOTHING_ABORTED
        found = await self._get(metadata, _Part.ABORTED)
        assert isinstance(found, SegmentAbortedTransactions)
        return found

    def aborted_transactions_now(self, metadata: RemoteLogSegmentMetadata) -> SegmentAbortedTransactions | None:
        """The same if the index is in memory; None if not."""
        return _NOTHING_ABORTED if metadata.txn_index_empty else self._aborted.get(metadata.segment_id.id)

    def note_use(self, segment_id: UUID) -> None:
        """A reader uses indexes again that it was given before: keep them."""
        self._positions.get(segment_id)
        self._disk.touch(segment_id)

    def forget(self, segment_ids: Iterable[RemoteLogSegmentId]) -> None:
        """Drop the indexes of deleted segments. Readers that hold them may go on using them."""
        for segment_id in segment_ids:
            for part in _Part:
                self._memory_of(part).drop(segment_id.id)
                if (flight := self._flights.get((segment_id.id, part))) is not None:
                    flight.is_forgotten = True
            self._disk.drop(segment_id.id)

    def status(self) -> IndexCacheStatus:
        """The numbers as they are now."""
        return IndexCacheStatus(
            segments=len(self._disk),
            bytes=self._disk.bytes,
            max_bytes=self._disk.max_bytes,
            memory_bytes=self._positions.bytes + self._aborted.bytes,
            max_memory_bytes=self._positions.max_bytes + self._aborted.max_bytes,
            memory_hits=self._memory_hits,
            disk_hits=self._disk_hits,
            fetches=self._fetches,
            errors=self._errors,
            damaged=self._disk.damaged,
            evictions=self._disk.evictions,
            pending=len(self._flights),
        )

    async def _get(self, metadata: RemoteLogSegmentMetadata, part: _Part) -> _Value:
        key = (metadata.segment_id.id, part)
        held = self._memory_of(part).get(key[0])
        if held is not None:
            self._memory_hits += 1
            self._disk.touch(key[0])
            return held
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _IndexFetch(asyncio.ensure_future(self._bring(metadata, part)))
            flight.task.add_done_callback(lambda task: self._landed(key, task))
        try:
            value: _Value = await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            if flight.task.cancelled():
                raise RemoteStorageError("The cache of remote indexes is closed.") from None
            raise
        return value

    def _landed(self, key: _Key, task: asyncio.Task[_Value]) -> None:
        flight = self._flights.pop(key)
        if task.cancelled() or task.exception() is not None:
            return
        if flight.is_forgotten:
            self._disk.drop(key[0])
            return
        value = task.result()
        if isinstance(value, RemoteIndexes):
            self._positions.put(key[0], value)
        else:
            self._aborted.put(key[0], value)

    def _memory_of(self, part: _Part) -> IndexMemory[RemoteIndexes] | IndexMemory[SegmentAbortedTransactions]:
        return self._positions if part is _Part.POSITIONS else self._aborted

    async def _bring(self, metadata: RemoteLogSegmentMetadata, part: _Part) -> _Value:
        kept = await self._disk.load(metadata, part.value, lambda data: _parsed(metadata, part, data))
        if kept is not None:
            self._disk_hits += 1
            return kept
        self._fetches += 1
        try:
            async with self._fetching:
                data = await self._fetch(metadata, part)
            value = await self._disk.on_thread(lambda: _checked(metadata, part, data))
        except RemoteStorageError:
            self._errors += 1
            raise
        await self._disk.store(metadata, data)
        return value

    async def _fetch(self, metadata: RemoteLogSegmentMetadata, part: _Part) -> Mapping[IndexType, bytes]:
        if part is _Part.ABORTED:
            return {IndexType.TRANSACTION: await self._fetch_aborted(metadata)}
        offsets, times = await asyncio.gather(
            self._storage.fetch_index(metadata, IndexType.OFFSET),
            self._storage.fetch_index(metadata, IndexType.TIMESTAMP),
        )
        return {IndexType.OFFSET: offsets, IndexType.TIMESTAMP: times}

    async def _fetch_aborted(self, metadata: RemoteLogSegmentMetadata) -> bytes:
        """The transaction index; empty if the segment has none, which is cached too."""
        try:
            return await self._storage.fetch_index(metadata, IndexType.TRANSACTION)
        except RemoteResourceNotFound:
            # A segment that is being deleted loses its log first. If the log is there, the segment has no transaction
            # index and nothing was aborted. If it is gone, this raises: a reader that has read records of the segment
            # before must not take aborted ones for committed.
            await self._storage.fetch_log_segment(metadata, 0, 1)
            return b""


def _parsed(metadata: RemoteLogSegmentMetadata, part: _Part, data: Mapping[IndexType, bytes]) -> _Value:
    if part is _Part.ABORTED:
        return SegmentAbortedTransactions(data[IndexType.TRANSACTION])
    return RemoteIndexes(metadata.start_offset, data[IndexType.OFFSET], data[IndexType.TIMESTAMP])


def _checked(metadata: RemoteLogSegmentMetadata, part: _Part, data: Mapping[IndexType, bytes]) -> _Value:
    for kind, content in data.items():
        check_index(metadata, kind, content)
    return _parsed(metadata, part, data)


@asynccontextmanager
async def open_index_cache(
    directory: Path,
    storage: RemoteStorageManager,
    *,
    max_bytes: int,
    max_memory_bytes: int = DEFAULT_MEMORY,
    clock: Clock,
    ids: Ids,
) -> AsyncIterator[RemoteIndexCache]:
    """The index cache in `directory` (`remote-log-index-cache`), closed at the end of the block. Raises OSError."""
    disk = IndexDisk(IndexFiles(directory, clock=clock, ids=ids), max_bytes)
    cache = RemoteIndexCache(disk, storage, max_memory_bytes=max_memory_bytes)
    try:
        await disk.open()
        yield cache
    finally:
        await cache.close()
