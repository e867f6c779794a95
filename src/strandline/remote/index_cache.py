"""Indexes of remote segments, near at hand: in memory those in use, on disk many more, both bounded.

Every index is fetched once, however many ask for it at the same time, and the fetch goes on when those who asked have
gone. Indexes are values: what was handed out stays good when its files are removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

from strandline.clock import Clock, Ids
from strandline.log.transaction_index import AbortedTxn
from strandline.remote.index_files import CachedSegment, IndexFiles, cache_name
from strandline.remote.indexes import RemoteIndexDamaged, RemoteIndexes, check_index, parse_transaction_index
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError, RemoteStorageManager
from strandline.remote.values import IndexType, RemoteLogSegmentId, RemoteLogSegmentMetadata

T = TypeVar("T")

logger = logging.getLogger(__name__)

DEFAULT_MEMORY: Final = 64 * 1024 * 1024
_FETCHES_AT_ONCE: Final = 16
# What an aborted transaction takes in memory, about.
_ABORTED_SIZE: Final = 240


class _Part(Enum):
    """What is asked for, fetched and kept together. Readers of uncommitted records never need the second."""

    POSITIONS = (IndexType.OFFSET, IndexType.TIMESTAMP)
    ABORTED = (IndexType.TRANSACTION,)


_Key: TypeAlias = tuple[UUID, _Part]
_Value: TypeAlias = RemoteIndexes | tuple[AbortedTxn, ...]


@dataclass(slots=True)
class _Flight:
    """A value on its way."""

    task: asyncio.Task[Any]
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCacheStatus:
    """What the cache holds, and how well it does."""

    segments: int
    bytes: int
    """On disk."""
    max_bytes: int
    memory_bytes: int
    memory_hits: int
    disk_hits: int
    fetches: int
    """Questions that only the remote storage could answer."""
    errors: int
    """Those of them that failed."""
    damaged: int
    """Files on disk that were not what had been written there."""
    evictions: int
    """Segments whose files made room for others."""
    pending: int


class RemoteIndexCache:
    """Made by `open_index_cache`."""

    def __init__(
        self, files: IndexFiles, storage: RemoteStorageManager, *, max_bytes: int, max_memory_bytes: int
    ) -> None:
        self._files, self._storage = files, storage
        self._max_bytes, self._max_memory_bytes = max_bytes, max_memory_bytes
        # One thread: what was asked for later happens later, so that a removal never hits what is written after it.
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="remote-index-cache")
        self._fetching = asyncio.Semaphore(_FETCHES_AT_ONCE)
        self._on_disk: OrderedDict[UUID, CachedSegment] = OrderedDict()
        self._disk_bytes = 0
        # Segments with files on their way to the disk, and those of them that go again as soon as they have arrived.
        self._storing: Counter[UUID] = Counter()
        self._doomed: set[UUID] = set()
        self._memory: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()
        self._memory_bytes = 0
        self._flights: dict[_Key, _Flight] = {}
        self._memory_hits = self._disk_hits = self._fetches = self._errors = self._damaged = self._evictions = 0

    async def open(self) -> None:
        """Take over what the last run left. Raises OSError."""
        for segment in await self._on_thread(self._files.open):
            self._on_disk[segment.segment_id] = segment
            self._disk_bytes += segment.size
        self._make_room()

    async def close(self) -> None:
        """End what is under way. What is on disk stays there."""
        flights = [flight.task for flight in self._flights.values()]
        for task in flights:
            task.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
        await asyncio.to_thread(self._disk.shutdown, wait=True)

    async def indexes(self, metadata: RemoteLogSegmentMetadata) -> RemoteIndexes:
        """Where the records of a segment are.

        Raises RemoteResourceNotFound, RemoteIndexDamaged if the remote index is, or another RemoteStorageError.
        """
        found = await self._get(metadata, _Part.POSITIONS)
        assert isinstance(found, RemoteIndexes)
        return found

    async def aborted_transactions(self, metadata: RemoteLogSegmentMetadata) -> Sequence[AbortedTxn]:
        """The transactions that were aborted in a segment, in the order of their markers. Raises the same."""
        if metadata.txn_index_empty:
            return ()
        found = await self._get(metadata, _Part.ABORTED)
        assert isinstance(found, tuple)
        return found

    def forget(self, segment_ids: Iterable[RemoteLogSegmentId]) -> None:
        """Drop the indexes of segments that are deleted. Who has them may go on using them."""
        for segment_id in segment_ids:
            for part in _Part:
                self._drop_from_memory((segment_id.id, part))
                if (flight := self._flights.get((segment_id.id, part))) is not None:
                    flight.is_forgotten = True
            self._drop_from_disk(segment_id.id)

    def status(self) -> IndexCacheStatus:
        """The numbers as they are now."""
        return IndexCacheStatus(
            segments=len(self._on_disk),
            bytes=self._disk_bytes,
            max_bytes=self._max_bytes,
            memory_bytes=self._memory_bytes,
            memory_hits=self._memory_hits,
            disk_hits=self._disk_hits,
            fetches=self._fetches,
            errors=self._errors,
            damaged=self._damaged,
            evictions=self._evictions,
            pending=len(self._flights),
        )

    async def _get(self, metadata: RemoteLogSegmentMetadata, part: _Part) -> _Value:
        key = (metadata.segment_id.id, part)
        held = self._memory.get(key)
        if held is not None:
            self._memory_hits += 1
            self._memory.move_to_end(key)
            if key[0] in self._on_disk:
                self._on_disk.move_to_end(key[0])
            return held[0]
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.ensure_future(self._bring(metadata, part)))
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
            self._drop_from_disk(key[0])
            return
        value = task.result()
        size = value.memory_bytes if isinstance(value, RemoteIndexes) else len(value) * _ABORTED_SIZE
        self._memory[key] = (value, size)
        self._memory_bytes += size
        while self._memory_bytes > self._max_memory_bytes:
            self._drop_from_memory(next(iter(self._memory)))

    async def _bring(self, metadata: RemoteLogSegmentMetadata, part: _Part) -> _Value:
        kept = await self._load(metadata, part)
        if kept is not None:
            self._disk_hits += 1
            return kept
        self._fetches += 1
        try:
            async with self._fetching:
                data = await self._fetch(metadata, part)
            value = await self._on_thread(lambda: _checked(metadata, part, data))
        except RemoteStorageError:
            self._errors += 1
            raise
        await self._store(metadata, data)
        return value

    async def _load(self, metadata: RemoteLogSegmentMetadata, part: _Part) -> _Value | None:
        """What is on disk. If it is damaged, it is removed."""
        if metadata.segment_id.id not in self._on_disk:
            return None

        def load() -> _Value | None:
            data = self._files.load(metadata, part.value)
            return _parsed(metadata, part, data) if data is not None else None

        try:
            found = await self._on_thread(load)
        except (OSError, RemoteIndexDamaged) as error:
            logger.warning("a cached remote index is fetched again: %s", error)
            self._damaged += 1
            self._drop_from_disk(metadata.segment_id.id)
            return None
        if found is not None and metadata.segment_id.id in self._on_disk:
            self._on_disk.move_to_end(metadata.segment_id.id)
        return found

    async def _fetch(self, metadata: RemoteLogSegmentMetadata, part: _Part) -> Mapping[IndexType, bytes]:
        if part is _Part.ABORTED:
            return {IndexType.TRANSACTION: await self._fetch_aborted(metadata)}
        offsets, times = await asyncio.gather(
            self._storage.fetch_index(metadata, IndexType.OFFSET),
            self._storage.fetch_index(metadata, IndexType.TIMESTAMP),
        )
        return {IndexType.OFFSET: offsets, IndexType.TIMESTAMP: times}

    async def _fetch_aborted(self, metadata: RemoteLogSegmentMetadata) -> bytes:
        """The transaction index; empty if the segment has none, which is worth remembering too."""
        try:
            return await self._storage.fetch_index(metadata, IndexType.TRANSACTION)
        except RemoteResourceNotFound:
            # A segment that is being deleted loses its log first. As long as that is there, nothing was aborted. When
            # it is gone, who has read records before must not take aborted ones for committed: this raises.
            await self._storage.fetch_log_segment(metadata, 0, 1)
            return b""

    async def _store(self, metadata: RemoteLogSegmentMetadata, data: Mapping[IndexType, bytes]) -> None:
        """Keep indexes on disk. A disk that cannot is no reason to leave a reader without them."""
        key, size = metadata.segment_id.id, None
        self._storing[key] += 1
        try:
            size = await self._on_thread(lambda: self._files.store(metadata, data))
        except (OSError, RemoteIndexDamaged) as error:
            logger.warning("a remote index cannot be kept on disk, which costs a fetch the next time: %s", error)
        finally:
            self._storing[key] -= 1
        is_doomed = key in self._doomed
        if not self._storing[key]:
            del self._storing[key]
            self._doomed.discard(key)
        if size is None or is_doomed:
            self._drop_from_disk(key, cache_name(metadata))
            return
        before = self._on_disk.pop(key, None)
        self._disk_bytes += size - (before.size if before is not None else 0)
        self._on_disk[key] = CachedSegment(key, cache_name(metadata), size)
        self._make_room()

    def _make_room(self) -> None:
        while self._disk_bytes > self._max_bytes and self._on_disk:
            self._evictions += 1
            self._drop_from_disk(next(iter(self._on_disk)))

    def _drop_from_memory(self, key: _Key) -> None:
        held = self._memory.pop(key, None)
        self._memory_bytes -= held[1] if held is not None else 0

    def _drop_from_disk(self, segment_id: UUID, name: str | None = None) -> None:
        segment = self._on_disk.pop(segment_id, None)
        if segment is not None:
            self._disk_bytes -= segment.size
            name = segment.name
        if self._storing[segment_id]:
            self._doomed.add(segment_id)
        elif name is not None:
            self._disk.submit(self._remove, name)

    def _remove(self, name: str) -> None:
        try:
            self._files.remove(name)
        except OSError as error:
            logger.warning("a cached remote index cannot be removed: %s", error)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, work)


def _parsed(metadata: RemoteLogSegmentMetadata, part: _Part, data: Mapping[IndexType, bytes]) -> _Value:
    if part is _Part.ABORTED:
        return parse_transaction_index(metadata, data[IndexType.TRANSACTION])
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
    cache = RemoteIndexCache(
        IndexFiles(directory, clock=clock, ids=ids), storage, max_bytes=max_bytes, max_memory_bytes=max_memory_bytes
    )
    try:
        await cache.open()
        yield cache
    finally:
        await cache.close()
