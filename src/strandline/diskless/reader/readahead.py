"""Read-ahead for consumers that catch up: the blocks they will ask for next are in memory when they do.

A consumer that is served from objects, and continues where it stopped, is a stream. Once a stream has continued, the
rows ahead of it are found and loaded, up to a window that grows while it reads on, and that all streams share. The next
rows are looked for while those before are still loading. One query asks for all streams that have room in their
windows, and each object is read once for all partitions in it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Final

from strandline.clock import Clock
from strandline.controlplane import BatchReads, BatchRow, FindBatches, FoundBatches
from strandline.diskless.reader.loading import BlockLoader
from strandline.diskless.reader.pieces import LoadedPiece, WantedRow
from strandline.diskless.reader.tail import Tail
from strandline.model import INT64_MAX, NO_OFFSET, Offset
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

FIRST_WINDOW: Final = 1024 * 1024
LARGEST_WINDOW: Final = 8 * 1024 * 1024
# What a row costs in memory besides its bytes, at most: small rows must not fill the cache.
ROW_COST: Final = 1024
# One query about more rows would hold up others for too long: these take about 12 ms of a thread and 8 ms of the loop.
_ROWS_AT_ONCE: Final = 2048
# A query looks at all streams, and a fetch at all of its partition. What bounds their memory is their windows.
_MAX_STREAMS: Final = 16_384
_MAX_STREAMS_OF_LOG: Final = 64
# A query takes some milliseconds.
_FOUND_WITHIN: Final = 1.0
# A stream without a fetch for this long has ended.
_STREAM_SECONDS: Final = 30.0


class _ConsumerStream:
    """One consumer of one partition, or several at the same offset."""

    __slots__ = (
        "_parts",
        "ahead",
        "end",
        "has_continued",
        "is_asked",
        "loaded_to",
        "seen_at",
        "start",
        "tail",
        "window",
    )

    def __init__(self, tail: Tail) -> None:
        self.tail = tail
        self.start: Offset = NO_OFFSET
        """Start and end of the last answer."""
        self.end: Offset = NO_OFFSET
        self.has_continued = False
        self.window = 0
        """Memory that the rows ahead may take."""
        self.ahead = 0
        """Memory that they take."""
        self.loaded_to: Offset = 0
        self.is_asked = False
        """Whether a query for it is under way."""
        self._parts: deque[tuple[Offset, int]] = deque()
        """What each query has brought: where it ends, and its memory."""
        self.seen_at = 0.0

    def served(self, start: Offset, end: Offset) -> None:
        """The consumer has got what is between the two offsets."""
        self.has_continued = self.has_continued or self.end == start
        self.start, self.end = start, end
        parts = self._parts
        while parts and parts[0][0] <= end:
            self.ahead -= parts.popleft()[1]
        self.loaded_to = max(self.loaded_to, end)

    def fitting(self, rows: Sequence[BatchRow], spare: int) -> tuple[BatchRow, ...]:
        """The rows that fit into the window. Rows that the consumer has read by itself meanwhile are left out.

        The last row may be larger than the window, by the memory that all streams together have to `spare`.
        """
        room = self.window - self.ahead
        fitting: list[BatchRow] = []
        for row in rows:
            if row.last_offset >= self.loaded_to:
                cost = row.byte_size + ROW_COST
                if room <= 0 or cost > room + spare:
                    break
                fitting.append(row)
                room -= cost
        return tuple(fitting)

    def found(self, rows: Sequence[BatchRow]) -> None:
        """These rows are loaded next."""
        size = sum(row.byte_size for row in rows) + ROW_COST * len(rows)
        self._parts.append((rows[-1].last_offset + 1, size))
        self.ahead += size
        self.loaded_to = rows[-1].last_offset + 1

    @property
    def wants_more(self) -> bool:
        """Whether rows can be found ahead. What lies below the read boundary has none: it is in remote storage. A log
        that was deleted, or replaced because the database has lost commits, keeps no blocks."""
        tail = self.tail
        return (
            self.has_continued
            and not self.is_asked
            and not tail.blocks.is_forgotten
            and tail.diskless_start_offset <= self.loaded_to < tail.high_watermark
        )


class DisklessReadAhead:
    """Loads the blocks that streams will ask for next. Lives on the event loop."""

    def __init__(
        self,
        batches: BatchReads,
        loader: BlockLoader,
        clock: Clock,
        *,
        max_bytes: int,
        found: Callable[[Sequence[BatchRow]], None],
    ) -> None:
        """`max_bytes` bounds the memory ahead of all streams together; 0 turns it off. `found` is told of all rows."""
        self._batches, self._loader, self._clock = batches, loader, clock
        self._max_bytes, self._found = max_bytes, found
        self._by_tail: dict[Tail, list[_ConsumerStream]] = {}
        self._streams: OrderedDict[_ConsumerStream, None] = OrderedDict()  # in the order of their last fetch
        self._is_due = False
        self._asked = asyncio.Event()
        """Set when the next query has been answered and its rows are loading, or when there is none."""
        self._loading: set[asyncio.Future[LoadedPiece]] = set()
        self._task: asyncio.Task[None] | None = None
        self.queries = 0

    def served(self, tail: Tail, start: Offset, end: Offset) -> None:
        """A consumer was sent records loaded from objects, from `start` to `end` (not included)."""
        if not self._max_bytes:
            return
        now = self._clock.monotonic()
        self._drop_ended(now)
        stream = self._stream_at(tail, start)
        stream.served(start, end)
        stream.seen_at = now
        self._streams.move_to_end(stream)
        if stream.wants_more and stream.ahead <= stream.window // 2:
            share = self._max_bytes // len(self._streams)
            stream.window = min(max(2 * stream.window, FIRST_WINDOW), LARGEST_WINDOW, share)
            self._is_due = True
            if self._task is None or self._task.done():
                self._task = asyncio.get_running_loop().create_task(self._run(), name="diskless-read-ahead")

    def _stream_at(self, tail: Tail, start: Offset) -> _ConsumerStream:
        """The stream that continues at `start`, or asks for the same offset again: a fetch may read more than once."""
        streams = self._by_tail.setdefault(tail, [])
        for stream in streams:
            if start in (stream.end, stream.start):
                return stream
        if len(streams) >= _MAX_STREAMS_OF_LOG:
            self._drop(min(streams, key=lambda one: one.seen_at))
        stream = _ConsumerStream(tail)
        streams.append(stream)
        self._streams[stream] = None
        return stream

    async def wait_found(self, wanted: Iterable[tuple[Tail, Offset]]) -> None:
        """If rows from some offsets on are being looked for, or are about to be, wait until they are loading.

        Not for long, however many they are: if the database does not answer, that must not take twice its deadline.
        """
        until = self._clock.monotonic() + _FOUND_WITHIN
        for tail, offset in wanted:
            if self._is_looked_for(tail, offset) and not await self._clock.wait_set(
                self._asked, within=until - self._clock.monotonic()
            ):
                return

    def _is_looked_for(self, tail: Tail, offset: Offset) -> bool:
        return any(
            stream.loaded_to == offset and (stream.is_asked or (self._is_about_to_ask and stream.wants_more))
            for stream in self._by_tail.get(tail, ())
        )

    @property
    def _is_about_to_ask(self) -> bool:
        """Whether a query is about to be made: not while loads that may hang take all the room for more."""
        return self._is_due and self._loader.room_ahead >= _ROWS_AT_ONCE

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
            self._drop(oldest)
            if not self._by_tail[oldest.tail]:
                del self._by_tail[oldest.tail]

    def _drop(self, stream: _ConsumerStream) -> None:
        del self._streams[stream]
        self._by_tail[stream.tail].remove(stream)

    async def _run(self) -> None:
        while self._is_due:
            try:
                self._loading = {future for future in self._loading if not future.done()}
                while self._loader.room_ahead < _ROWS_AT_ONCE and self._loading:
                    _, self._loading = await asyncio.wait(self._loading, return_when=asyncio.FIRST_COMPLETED)
                self._is_due = False
                # Also those that are not due yet: then they are due together the next time, and share objects.
                streams = [one for one in self._streams if one.wants_more and one.ahead < one.window * 3 // 4]
                if streams:
                    await self._extend(streams[:_ROWS_AT_ONCE])
            finally:
                asked, self._asked = self._asked, asyncio.Event()
                asked.set()

    async def _extend(self, streams: Sequence[_ConsumerStream]) -> None:
        """Find rows ahead of some streams, and begin to load them."""
        most = max(one.window - one.ahead for one in streams) // ROW_COST + 1
        max_rows = max(min(_ROWS_AT_ONCE // len(streams), most), 1)
        requests = [FindBatches(one.tail.partition, one.loaded_to, one.window - one.ahead) for one in streams]
        for stream in streams:
            stream.is_asked = True
        self.queries += 1
        try:
            answers = await self._batches.find_batches(requests, max_rows=max_rows)
        except SqlError as error:
            logger.debug("nothing is read ahead, consumers will get the error: %s", error)
            return
        finally:
            for stream in streams:
                stream.is_asked = False
        wanted: list[WantedRow] = []
        spare = max(self._max_bytes - sum(one.ahead for one in self._streams), 0) // len(streams)
        fitting = [
            (answer._replace(rows=stream.fitting(answer.rows, spare)), stream.ahead < stream.window // 4)
            for stream, answer in zip(streams, answers, strict=True)
        ]
        for stream, rows in zip(streams, until_one_file(fitting), strict=True):
            blocks = stream.tail.blocks
            if rows and rows[0].base_offset <= stream.loaded_to and not blocks.is_forgotten:
                self._found(rows)
                stream.found(rows)
                wanted += [WantedRow(row, blocks) for row in rows if blocks.holding(row.base_offset) is None]
                if stream.ahead <= stream.window // 2:
                    self._is_due = True  # the query has not filled the window
        self._loading.update(self._loader.load_ahead(wanted))


def until_one_file(answers: Sequence[tuple[FoundBatches, bool]]) -> list[Sequence[BatchRow]]:
    """The rows of each answer, up to the same file, so that the next query begins in the files after it.

    That file is the first one in which an answer ends that does not reach the end of its log. An answer that begins
    much later would lose most of its rows by that. It keeps them if its stream is in a hurry; otherwise it waits until
    the others have reached its files, and then shares their objects.
    """
    last_file = min(
        (
            found.rows[-1].file_id
            for found, _ in answers
            if found.rows and found.rows[-1].last_offset + 1 < found.high_watermark
        ),
        default=INT64_MAX,
    )
    kept: list[Sequence[BatchRow]] = []
    for found, is_urgent in answers:
        earlier = tuple(takewhile(lambda row: row.file_id <= last_file, found.rows))
        kept.append(found.rows if is_urgent and 2 * len(earlier) < len(found.rows) else earlier)
    return kept
