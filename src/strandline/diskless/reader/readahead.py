"""Read-ahead for consumers that catch up: the blocks they will ask for next are in memory when they do.

A consumer that is served from objects, and continues where it stopped, is a stream. Once a stream has continued, the
rows ahead of it are loaded, twice as many bytes each time, up to a bound that all streams share. Streams that are due
at the same time are served together, so that partitions that are adjacent in an object cost one request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from strandline.clock import Clock
from strandline.controlplane import BatchReads, BatchRow, FindBatches
from strandline.diskless.reader.loading import BlockLoader, WantedRow
from strandline.diskless.reader.tail import Tail
from strandline.model import INT64_MAX, NO_OFFSET, Offset
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

FIRST_WINDOW: Final = 1024 * 1024
LARGEST_WINDOW: Final = 8 * 1024 * 1024
_MAX_STREAMS: Final = 1024
# A stream without a fetch for this long has ended.
_STREAM_SECONDS: Final = 30.0


class _ConsumerStream:
    """One consumer of one partition, or several at the same offset."""

    __slots__ = ("end", "has_continued", "loaded_to", "reload_at", "seen_at", "start", "tail", "window")

    def __init__(self, tail: Tail) -> None:
        self.tail = tail
        self.start: Offset = NO_OFFSET
        """Start and end of the last answer."""
        self.end: Offset = NO_OFFSET
        self.has_continued = False
        self.window = 0
        """Bytes that were loaded last time."""
        self.loaded_to: Offset = 0
        self.reload_at: Offset = 0
        """When the consumer reaches this offset, more is loaded."""
        self.seen_at = 0.0


class DisklessReadAhead:
    """Loads the blocks that streams will ask for next. Lives on the event loop."""

    def __init__(self, plane: BatchReads, loader: BlockLoader, clock: Clock, *, max_bytes: int) -> None:
        """`max_bytes` bounds the bytes loaded ahead of all streams together; 0 turns read-ahead off."""
        self._plane, self._loader, self._clock = plane, loader, clock
        self._max_bytes = max_bytes
        self._by_tail: dict[Tail, list[_ConsumerStream]] = {}
        self._streams: OrderedDict[_ConsumerStream, None] = OrderedDict()  # in the order of their last fetch
        self._due: dict[_ConsumerStream, Offset] = {}
        self._task: asyncio.Task[None] | None = None
        self.queries = 0

    def served(self, tail: Tail, start: Offset, end: Offset) -> None:
        """A consumer was sent records loaded from objects, from `start` to `end` (not included)."""
        if not self._max_bytes:
            return
        now = self._clock.monotonic()
        self._drop_ended(now)
        stream = self._stream_at(tail, start)
        stream.has_continued = stream.has_continued or stream.end == start
        stream.start, stream.end, stream.seen_at = start, end, now
        self._streams.move_to_end(stream)
        ahead = max(end, stream.loaded_to)
        # What lies below the read boundary has no rows any more: it is read ahead in remote storage.
        is_in_rows = tail.diskless_start_offset <= ahead < tail.high_watermark
        if is_in_rows and stream.has_continued and end >= stream.reload_at:
            self._extend(stream)

    def _stream_at(self, tail: Tail, start: Offset) -> _ConsumerStream:
        """The stream that continues at `start`, or asks for the same offset again: a fetch may read more than once."""
        streams = self._by_tail.setdefault(tail, [])
        for stream in streams:
            if start in (stream.end, stream.start):
                return stream
        stream = _ConsumerStream(tail)
        streams.append(stream)
        self._streams[stream] = None
        return stream

    async def close(self) -> None:
        """Cancel the loading under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    def _drop_ended(self, now: float) -> None:
        streams = self._streams
        while streams:
            oldest = next(iter(streams))
            if len(streams) < _MAX_STREAMS and oldest.seen_at + _STREAM_SECONDS >= now:
                return
            del streams[oldest]
            others = self._by_tail[oldest.tail]
            others.remove(oldest)
            if not others:
                del self._by_tail[oldest.tail]

    def _extend(self, stream: _ConsumerStream) -> None:
        stream.reload_at = INT64_MAX  # not again before this load is done
        share = self._max_bytes // len(self._streams)
        stream.window = min(max(2 * stream.window, FIRST_WINDOW), LARGEST_WINDOW, share)
        self._due[stream] = max(stream.end, stream.loaded_to)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="diskless-read-ahead")

    async def _run(self) -> None:
        while self._due:
            due, self._due = self._due, {}
            requests = [FindBatches(stream.tail.partition, offset, stream.window) for stream, offset in due.items()]
            max_rows = max(self._loader.rows_at_once // len(due), 1)
            self.queries += 1
            try:
                found = await self._plane.find_batches(requests, max_rows=max_rows)
            except SqlError as error:
                logger.debug("nothing is read ahead, consumers will get the error: %s", error)
                for stream in due:
                    stream.reload_at = 0
                continue
            wanted: list[WantedRow] = []
            for stream, answer in zip(due, found, strict=True):
                wanted += self._missing(stream, answer.rows)
            downloads = self._loader.load(wanted)
            if downloads:
                # One wave after the other: this bounds the downloads under way, and lets due streams gather.
                await asyncio.wait(downloads)

    def _missing(self, stream: _ConsumerStream, rows: Sequence[BatchRow]) -> list[WantedRow]:
        """The rows to load. The stream is due again when its consumer is half way through them."""
        if not rows:
            stream.reload_at = 0
            return []
        blocks = stream.tail.blocks
        stream.loaded_to = rows[-1].last_offset + 1
        stream.reload_at = rows[len(rows) // 2].base_offset
        return [WantedRow(row, blocks) for row in rows if blocks.holding(row.base_offset) is None]
