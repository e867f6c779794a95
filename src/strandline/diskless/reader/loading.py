"""Loads blocks from objects: one request for rows that are close, one call for many small objects, bounded.

A download does not belong to the fetch that asked for it: if the fetch gives up, the download goes on into the cache,
where the next attempt finds it. Downloads for lagging consumers have their own queue, and so have those ahead of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from strandline.clock import Clock
from strandline.controlplane import BatchRow
from strandline.diskless.reader.cache import BlockCache, CacheRegion, PartitionBlocks
from strandline.diskless.reader.limits import DisklessReaderLimits
from strandline.diskless.reader.pieces import LoadedPiece, Piece, WantedRow, cut, pieces_of
from strandline.diskless.reader.planning import RangedRead, plan_lists, plan_ranges
from strandline.errors import KafkaStorageError, StrandlineError
from strandline.model import Offset
from strandline.objects import ObjectStore, ObjectStoreError
from strandline.objects.store import Buffer, ObjectRange, range_or_error
from strandline.records import TimestampType
from strandline.tasks import TaskSet

logger = logging.getLogger(__name__)

# From this size on, a thread copies and checks the bytes.
_LARGE: Final = 256 * 1024
# Small objects are read by one call up to this size, and the rows of a partition among them become one block.
_LIST_BYTES: Final = 256 * 1024
# A block of several rows is at most this part of its region of the cache.
_PIECE_SHARE: Final = 64
# Requests that may wait for each one that runs; more are refused, and consumers try again.
_WAITING_PER_RUNNING: Final = 100
# The same for those that no fetch waits for yet.
_WAITING_AHEAD: Final = 8192
# Ranges that are read ahead by one call where each is a request of its own: together they cost less of the processor,
# and no fetch waits for the slowest of them yet.
_RANGES_AHEAD: Final = 8
# Few, because each row may be in an object of its own.
_ROWS_AT_ONCE: Final = 256
# More where one call reads many objects.
_LISTS_AT_ONCE: Final = 4
# The log has one line about an unreadable object in this many seconds, for this many objects.
_WARNING_SECONDS: Final = 60.0
_WARNINGS: Final = 1000


class _Gate:
    """Bounds the requests that run at once, and those that wait."""

    def __init__(self, parallel: int, waiting: int) -> None:
        self.turn = asyncio.Semaphore(parallel)
        self._limit = parallel + waiting
        self._inside = 0

    @property
    def room(self) -> int:
        """How many more requests may enter."""
        return self._limit - self._inside

    def enter(self) -> bool:
        """False if too many requests run or wait."""
        if self.room <= 0:
            return False
        self._inside += 1
        return True

    def leave(self) -> None:
        self._inside -= 1


_Range: TypeAlias = RangedRead[PartitionBlocks]
# A row of what is known of a partition. Where the database has lost commits, that is replaced: what is under way for it
# may bring other rows with it, which are lost, or bytes that have other offsets by now.
_RowOf: TypeAlias = tuple[PartitionBlocks, str, int, Offset]


class _Download(NamedTuple):
    """Ranges that are read by one call, and the pieces that are cut from them."""

    ranges: Sequence[_Range]
    pieces: Sequence[Piece]
    region: CacheRegion


class BlockLoader:
    """Brings blocks from the object store into the cache. Lives on the event loop."""

    def __init__(self, objects: ObjectStore, cache: BlockCache, clock: Clock, limits: DisklessReaderLimits) -> None:
        self._objects, self._cache, self._clock = objects, cache, clock
        self._lagging_after_ms = limits.lagging_after_ms
        self._at_once = max(objects.ranges_at_once, 1)
        self._tail_gate = _Gate(limits.parallel_reads, _WAITING_PER_RUNNING * limits.parallel_reads)
        lagging = limits.parallel_lagging_reads
        self._lagging_gate = _Gate(lagging, _WAITING_PER_RUNNING * lagging) if lagging else self._tail_gate
        self._ahead_at_once = max(self._at_once, _RANGES_AHEAD)
        self._ahead_gate = _Gate(limits.calls_ahead(self._at_once), _WAITING_AHEAD)
        self._warned_at: dict[str, float] = {}
        self._downloads: dict[_RowOf, asyncio.Future[LoadedPiece]] = {}
        self._under_way: dict[tuple[PartitionBlocks, Offset], asyncio.Future[LoadedPiece]] = {}
        self._tasks = TaskSet()
        self.requests = 0
        """Objects, or parts of them, that were read so far."""
        self.bytes_read = 0

    def load(self, wanted: Sequence[WantedRow]) -> list[asyncio.Future[LoadedPiece]]:
        """A future for each row: of the download under way, or of one that begins now.

        What became of the row, `LoadedPiece.of` tells. Futures are shared: do not cancel them.
        """
        self._begin_all(wanted, None)
        return [self._downloads[_key_of(*one)] for one in wanted]

    def load_ahead(self, wanted: Sequence[WantedRow]) -> list[asyncio.Future[LoadedPiece]]:
        """Begin to load what no fetch waits for yet, unless it is under way. These downloads have their own bounds: a
        fetch never queues behind them, unless it asks for the same rows. The futures of what begins now."""
        return self._begin_all(wanted, self._ahead_gate)

    def _begin_all(self, wanted: Sequence[WantedRow], gate: _Gate | None) -> list[asyncio.Future[LoadedPiece]]:
        """Begin the downloads that are not under way: at a gate, or at that of the rows' age."""
        tail: dict[_RowOf, WantedRow] = {}
        lagging: dict[_RowOf, WantedRow] = {}
        oldest = self._clock.now_ms() - self._lagging_after_ms
        for one in wanted:
            key = _key_of(*one)
            if key not in self._downloads:
                (tail if _time_of(one.row) >= oldest else lagging)[key] = one
        begun: list[asyncio.Future[LoadedPiece]] = []
        for rows, usual, region in (
            (tail, self._tail_gate, self._cache.hot),
            (lagging, self._lagging_gate, self._cache.cold),
        ):
            if rows:
                begun += self._plan([*rows.values()], gate or usual, region)
        return begun

    def under_way(self, blocks: PartitionBlocks, offset: Offset) -> asyncio.Future[LoadedPiece] | None:
        """The download of the rows that begin at an offset, if there is one."""
        return self._under_way.get((blocks, offset))

    @property
    def rows_at_once(self) -> int:
        """How many rows a caller should ask for: fewer while many downloads wait, so that all callers get a turn."""
        most = _ROWS_AT_ONCE * min(self._at_once, _LISTS_AT_ONCE)
        return max(min(most, self._tail_gate.room // 2, self._lagging_gate.room // 2), 1)

    @property
    def room_ahead(self) -> int:
        """How many rows may be loaded ahead now, each of which may be a request of its own."""
        return self._ahead_gate.room

    async def close(self) -> None:
        """End all downloads."""
        await self._tasks.close()
        for future in self._downloads.values():
            future.cancel()  # of tasks that were cancelled before they began
        self._downloads.clear()
        self._under_way.clear()

    def _plan(self, wanted: Sequence[WantedRow], gate: _Gate, region: CacheRegion) -> list[asyncio.Future[LoadedPiece]]:
        begun: list[asyncio.Future[LoadedPiece]] = []
        most = self._ahead_at_once if gate is self._ahead_gate else self._at_once
        largest = min(_LIST_BYTES, region.limit // _PIECE_SHARE)
        for ranges in plan_lists(plan_ranges(wanted), most=most, max_bytes=_LIST_BYTES):
            pieces = pieces_of(ranges, max_bytes=largest)
            for piece in pieces:
                begun.append(piece.loaded)
                piece.loaded.add_done_callback(_log_unexpected)
                self._under_way[piece.blocks, piece.rows[0].base_offset] = piece.loaded
                for row in piece.rows:
                    self._downloads[_key_of(row, piece.blocks)] = piece.loaded
            self._begin(_Download(ranges, pieces, region), gate)
        return begun

    def _begin(self, download: _Download, gate: _Gate) -> None:
        if gate.enter():
            self._tasks.start(self._download(download, gate), name="diskless-download")
            return
        refused = KafkaStorageError(
            "Too many reads of the object store are waiting; inkless.fetch.data.thread.pool.size and "
            "inkless.fetch.lagging.consumer.thread.pool.size say how many run at once."
        )
        # Not now: the caller still looks for the futures of its rows.
        outcomes = [LoadedPiece.failed(piece.rows, refused) for piece in download.pieces]
        asyncio.get_running_loop().call_soon(self._finish, download.pieces, outcomes, download.region)

    async def _download(self, download: _Download, gate: _Gate) -> None:
        try:
            async with gate.turn:
                answers = await self._answers(download.ranges)
                late = _late(download.ranges, answers)
                sound = [piece for piece in download.pieces if late.isdisjoint(piece.ranges)]
                self._finish(sound, await self._cut(download, answers, sound), download.region)
            if late:
                await self._read_apart(download, answers, late, gate)
        except Exception as error:  # noqa: BLE001 - the futures carry it
            self._fail(download.pieces, error)
        finally:
            gate.leave()
            self._fail(download.pieces, None)

    async def _answers(self, ranges: Sequence[_Range]) -> list[Buffer | ObjectStoreError]:
        self.requests += len(ranges)
        answers = [*await self._objects.get_ranges([_range_of(one) for one in ranges])]
        self.bytes_read += _size_of(answers)
        return answers

    async def _cut(
        self, download: _Download, answers: Sequence[Buffer | ObjectStoreError], pieces: Sequence[Piece]
    ) -> Sequence[LoadedPiece]:
        if _size_of(answers) < _LARGE:
            return cut(download.ranges, answers, pieces)
        return await asyncio.to_thread(cut, download.ranges, answers, pieces)

    async def _read_apart(
        self, download: _Download, answers: list[Buffer | ObjectStoreError], late: set[int], gate: _Gate
    ) -> None:
        """Read ranges of a list again, each by itself: what hangs holds up only the pieces that have rows in it."""
        again = {
            number: asyncio.ensure_future(self._read_one(download.ranges[number], answers, number, gate))
            for number in late
        }
        waiting = [piece for piece in download.pieces if not piece.loaded.done()]
        try:
            await asyncio.gather(*(self._finish_apart(download, answers, piece, again) for piece in waiting))
        finally:
            for reading in again.values():
                reading.cancel()
            await asyncio.gather(*again.values(), return_exceptions=True)

    async def _read_one(
        self, ranged: _Range, answers: list[Buffer | ObjectStoreError], number: int, gate: _Gate
    ) -> None:
        async with gate.turn:
            self.requests += 1
            answers[number] = answer = await range_or_error(self._objects, _range_of(ranged))
            self.bytes_read += _size_of([answer])

    async def _finish_apart(
        self,
        download: _Download,
        answers: Sequence[Buffer | ObjectStoreError],
        piece: Piece,
        again: Mapping[int, asyncio.Future[None]],
    ) -> None:
        await asyncio.gather(*(asyncio.shield(again[number]) for number in {*piece.ranges} & again.keys()))
        self._finish([piece], await self._cut(download, answers, [piece]), download.region)

    def _finish(self, pieces: Sequence[Piece], outcomes: Sequence[LoadedPiece], region: CacheRegion) -> None:
        for piece, loaded in zip(pieces, outcomes, strict=True):
            if self._forget(piece):
                self._take_in(piece, loaded, region)

    def _fail(self, pieces: Sequence[Piece], error: Exception | None) -> None:
        """End the pieces that have not ended: with an error, or because all downloads end."""
        for piece in pieces:
            if not self._forget(piece):
                continue
            if error is None:
                piece.loaded.cancel()
            else:
                piece.loaded.set_exception(error)

    def _forget(self, piece: Piece) -> bool:
        """A piece is under way no more. False if it was not."""
        if piece.loaded.done():
            return False
        self._under_way.pop((piece.blocks, piece.rows[0].base_offset), None)
        for row in piece.rows:
            self._downloads.pop(_key_of(row, piece.blocks), None)
        return True

    def _take_in(self, piece: Piece, loaded: LoadedPiece, region: CacheRegion) -> None:
        for block in loaded.blocks:
            self._cache.add(piece.blocks, block, region)
        for row in piece.rows if loaded.has_failures else ():
            outcome = loaded.of(row)
            if isinstance(outcome, Exception):
                self._warn(row, outcome)
        piece.loaded.set_result(loaded)

    def _warn(self, row: BatchRow, error: BaseException) -> None:
        """One line for the operator: consumers see only an error code, and retry again and again."""
        now = self._clock.monotonic()
        if now - self._warned_at.get(row.object_key, -_WARNING_SECONDS) < _WARNING_SECONDS:
            return
        if len(self._warned_at) >= _WARNINGS:
            self._warned_at.clear()
        self._warned_at[row.object_key] = now
        logger.warning("diskless records cannot be read: %s", error)


def _key_of(row: BatchRow, blocks: PartitionBlocks) -> _RowOf:
    return blocks, row.object_key, row.byte_offset, row.base_offset


def _range_of(ranged: _Range) -> ObjectRange:
    return ObjectRange(ranged.object_key, ranged.start, ranged.length)


def _size_of(answers: Sequence[Buffer | ObjectStoreError]) -> int:
    return sum(len(answer) for answer in answers if not isinstance(answer, ObjectStoreError))


def _late(ranges: Sequence[_Range], answers: Sequence[Buffer | ObjectStoreError]) -> set[int]:
    """The ranges of a list that may be answered better the next time. One by itself was tried often enough."""
    if len(ranges) == 1:
        return set()
    return {
        number
        for number, (ranged, one) in enumerate(zip(ranges, answers, strict=True))
        if (one.retriable if isinstance(one, ObjectStoreError) else len(one) < ranged.length)
    }


def _time_of(row: BatchRow) -> int:
    return row.log_append_time_ms if row.timestamp_type is TimestampType.LOG_APPEND_TIME else row.max_timestamp


def _log_unexpected(future: asyncio.Future[LoadedPiece]) -> None:
    """Log errors that are no StrandlineError. Also marks any error as seen, for downloads without a waiting fetch."""
    if not future.cancelled() and (error := future.exception()) is not None and not isinstance(error, StrandlineError):
        logger.error("a download of a block failed", exc_info=error)
