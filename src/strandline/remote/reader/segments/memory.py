"""Remote segments in memory: concurrent requests share a read, and ranges stay cached until the room is needed.

A read does not belong to a request: when the request is cancelled, the read completes into the cache, where the next
attempt finds it.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from strandline.clock import Clock
from strandline.records import Buffer
from strandline.records.slices import MemorySlices
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError, RemoteStorageManager
from strandline.remote.reader.limits import ReadGate
from strandline.remote.reader.values import FetchQuota
from strandline.remote.values import RemoteLogSegmentMetadata
from strandline.tasks import TaskSet

logger = logging.getLogger(__name__)

# One read of the storage: large enough that its latency matters little, small enough that several run in parallel.
LARGEST_READ: Final = 4 * 1024 * 1024
SMALLEST_READ: Final = 128 * 1024


class Span:
    """A range of a segment, in memory or being loaded."""

    __slots__ = ("data", "end", "loaded", "pins", "start")

    def __init__(self, start: int, end: int, loaded: asyncio.Future[None]) -> None:
        self.start = start
        self.end = end
        self.loaded = loaded
        self.data: memoryview | None = None
        self.pins = 0
        """Reads that need it: while there are any, it is not evicted."""


class SpansLoading:
    """A `Loading` of spans."""

    __slots__ = ("_spans",)

    def __init__(self, spans: list[Span]) -> None:
        self._spans = spans
        for span in spans:
            span.pins += 1

    async def wait(self) -> None:
        missing = [span.loaded for span in self._spans if not span.loaded.done()]
        if missing:
            await asyncio.wait(missing)
        for span in self._spans:
            span.loaded.result()

    def release(self) -> None:
        for span in self._spans:
            span.pins -= 1
        self._spans = []


class ChunkCache:
    """Cached ranges of all segments, least recently used first. Lives on the event loop."""

    def __init__(
        self, storage: RemoteStorageManager, gate: ReadGate, quota: FetchQuota | None, clock: Clock, *, max_bytes: int
    ) -> None:
        self._storage, self._gate, self._quota, self._clock = storage, gate, quota, clock
        self.limit = max_bytes
        self.used = 0
        self.loading = 0
        """Bytes that are being loaded."""
        self.requests = 0
        self.bytes_read = 0
        self.read_seconds = 0.0
        self._spans: OrderedDict[Span, ChunkSource] = OrderedDict()
        self._tasks = TaskSet()

    def source(self, metadata: RemoteLogSegmentMetadata) -> ChunkSource:
        """The bytes of a segment, none of which are loaded yet."""
        return ChunkSource(self, metadata)

    @property
    def has_spare(self) -> bool:
        """Whether there is room for read-ahead."""
        is_throttled = self._quota is not None and self._quota.throttle_seconds() > 0
        return self._gate.has_spare and self.loading < self.limit // 2 and not is_throttled

    def begin(self, source: ChunkSource, start: int, end: int) -> Span:
        """Start reading a range. Raises KafkaStorageError if too many reads wait already."""
        self._gate.enter()
        loop = asyncio.get_running_loop()
        span = Span(start, end, loop.create_future())
        span.loaded.add_done_callback(_look_at_failure)
        self.loading += end - start
        self._tasks.start(self._load(source, span), name="remote-read")
        return span

    async def _load(self, source: ChunkSource, span: Span) -> None:
        started = self._clock.monotonic()
        try:
            async with self._gate.turn():
                data = await self._fetch(source.metadata, span)
        except asyncio.CancelledError:
            source.remove(span)
            span.loaded.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - raised to those that wait for the bytes
            source.remove(span)
            span.loaded.set_exception(error)
        else:
            span.data = data
            span.loaded.set_result(None)
            self._keep(source, span)
        finally:
            self.loading -= span.end - span.start
            self.read_seconds += self._clock.monotonic() - started

    async def _fetch(self, metadata: RemoteLogSegmentMetadata, span: Span) -> memoryview:
        length = span.end - span.start
        self.requests += 1
        data = await self._storage.fetch_log_segment(metadata, span.start, length)
        self.bytes_read += len(data)
        if self._quota is not None:
            self._quota.record(len(data))
        if len(data) != length:
            raise RemoteResourceNotFound(
                f"The storage returned {len(data)} bytes from position {span.start} on instead of {length}."
            )
        return memoryview(data)

    def _keep(self, source: ChunkSource, span: Span) -> None:
        if source.is_closed:
            return
        self._spans[span] = source
        self.used += span.end - span.start
        self.trim()

    def trim(self) -> None:
        """Evict the least recently used spans that no read needs, until the rest fits."""
        if self.used <= self.limit:
            return
        for span in [span for span in self._spans if not span.pins]:
            self.drop(span)
            if self.used <= self.limit:
                return

    def touch(self, span: Span) -> None:
        """A span was used."""
        if span in self._spans:
            self._spans.move_to_end(span)

    def drop(self, span: Span) -> None:
        """Evict a span."""
        source = self._spans.pop(span, None)
        if source is not None:
            self.used -= span.end - span.start
            source.remove(span)

    async def close(self) -> None:
        """Cancel all reads."""
        await self._tasks.close()


class ChunkSource:
    """A `SegmentBytes` in memory: ranges that do not overlap, in the order of their positions."""

    __slots__ = ("_cache", "_spans", "_starts", "is_closed", "metadata", "size")

    takes_memory = True

    def __init__(self, cache: ChunkCache, metadata: RemoteLogSegmentMetadata) -> None:
        self._cache = cache
        self._starts: list[int] = []
        self._spans: list[Span] = []
        self.metadata = metadata
        self.size = metadata.segment_size_in_bytes
        self.is_closed = False

    def _from(self, position: int, end: int) -> Iterator[Span]:
        """Spans that hold bytes of the range, in order. There may be gaps."""
        index = max(bisect_right(self._starts, position) - 1, 0)
        while index < len(self._spans) and self._spans[index].start < end:
            if self._spans[index].end > position:
                yield self._spans[index]
            index += 1

    def _views(self, position: int, length: int) -> list[memoryview]:
        """The loaded bytes up to the first gap."""
        end = min(position + length, self.size)
        views = []
        for span in self._from(position, end):
            if span.start > position or span.data is None:
                break
            self._cache.touch(span)
            views.append(span.data[position - span.start : end - span.start])
            position = span.end
        return views

    def at_hand(self, position: int, length: int) -> int:
        return sum(map(len, self._views(position, length)))

    def peek(self, position: int, length: int) -> Buffer | None:
        length = min(length, self.size - position)
        views = self._views(position, length)
        if sum(map(len, views)) < length:
            return None
        return views[0] if len(views) == 1 else b"".join(views)

    async def read(self, position: int, length: int) -> Buffer:
        loading = self.load(position, length)
        try:
            await loading.wait()
            data = self.peek(position, length)
        finally:
            loading.release()
        if data is None:
            raise RemoteStorageError(f"The segment was closed while {length} bytes at position {position} were read.")
        return data

    def slice(self, position: int, length: int) -> MemorySlices:
        views = self._views(position, length)
        return MemorySlices(views, sum(map(len, views)))

    def load(self, position: int, length: int) -> SpansLoading:
        loading = SpansLoading(self._begin(position, min(position + max(length, SMALLEST_READ), self.size)))
        self._cache.trim()
        return loading

    def load_ahead(self, position: int, length: int) -> int:
        end = min(position + length, self.size)
        while position < end and self._cache.has_spare:
            upto = min(position + LARGEST_READ, end)
            self._begin(position, upto)
            position = upto
        return position

    def _begin(self, position: int, end: int) -> list[Span]:
        """All spans of a range; missing ones start loading."""
        needed = []
        for span in [*self._from(position, end)]:
            needed += self._fill(position, span.start)
            needed.append(span)
            position = span.end
        return needed + self._fill(position, end)

    def _fill(self, start: int, end: int) -> list[Span]:
        fresh = []
        while start < end:
            upto = min(start + LARGEST_READ, end)
            span = self._cache.begin(self, start, upto)
            index = bisect_right(self._starts, start)
            self._starts.insert(index, start)
            self._spans.insert(index, span)
            fresh.append(span)
            start = upto
        return fresh

    def remove(self, span: Span) -> None:
        """Remove a span that was evicted, or failed to load."""
        index = bisect_right(self._starts, span.start) - 1
        if index >= 0 and self._spans[index] is span:
            del self._starts[index], self._spans[index]

    def close(self) -> None:
        self.is_closed = True
        for span in tuple(self._spans):
            self._cache.drop(span)


def _look_at_failure(loaded: asyncio.Future[None]) -> None:
    """Errors of read-ahead have no caller: log those that do not come from the storage, they are bugs."""
    error = None if loaded.cancelled() else loaded.exception()
    if error is not None and not isinstance(error, RemoteStorageError):
        logger.error("a read of remote storage failed unexpectedly", exc_info=error)
