"""Loads blocks from objects: one request for rows that are close, one call for many small objects, bounded.

A download does not belong to the fetch that asked for it: if the fetch gives up, the download goes on into the cache,
where the next attempt finds it. Downloads for lagging consumers have their own queue, and so have those ahead of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from strandline.clock import Clock
from strandline.controlplane import BatchRow
from strandline.diskless.reader.cache import BlockCache, CacheRegion, PartitionBlocks
from strandline.diskless.reader.limits import DisklessReaderLimits
from strandline.diskless.reader.pieces import LoadedPiece, Piece, RowPlace, WantedRow, cut, pieces_of, place_of
from strandline.diskless.reader.planning import RangedRead, plan_lists, plan_ranges
from strandline.errors import KafkaStorageError, StrandlineError
from strandline.model import Offset
from strandline.objects import ObjectStore, ObjectStoreError
from strandline.objects.store import ObjectRange
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
# and nobody waits for the slowest of them yet.
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
        self._downloads: dict[RowPlace, asyncio.Future[LoadedPiece]] = {}
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
        return [self._downloads[place_of(one.row)] for one in wanted]

    def load_ahead(self, wanted: Sequence[WantedRow]) -> list[asyncio.Future[LoadedPiece]]:
        """Begin to load what no fetch waits for yet, unless it is under way. These downloads have their own bounds: a
        fetch never queues behind them, unless it asks for the same rows. The futures of what begins now."""
        return self._begin_all(wanted, self._ahead_gate)

    def _begin_all(self, wanted: Sequence[WantedRow], gate: _Gate | None) -> list[asyncio.Future[LoadedPiece]]:
        """Begin the downloads that are not under way: at a gate, or at that of the rows' age."""
        tail: dict[RowPlace, WantedRow] = {}
        lagging: dict[RowPlace, WantedRow] = {}
        oldest = self._clock.now_ms() - self._lagging_after_ms
        for one in wanted:
            key = place_of(one.row)
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
                    self._downloads[place_of(row)] = piece.loaded
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
        asyncio.get_running_loop().call_soon(self._finish, download, outcomes)

    async def _download(self, download: _Download, gate: _Gate) -> None:
        outcomes: Sequence[LoadedPiece] | BaseException
        try:
            async with gate.turn:
                outcomes = await self._outcomes(download)
        except asyncio.CancelledError as cancelled:
            outcomes = cancelled
            raise
        except Exception as error:  # noqa: BLE001 - the futures carry it
            outcomes = error
        finally:
            gate.leave()
            self._finish(download, outcomes)

    async def _outcomes(self, download: _Download) -> Sequence[LoadedPiece]:
        ranges, pieces, _ = download
        self.requests += len(ranges)
        answers = await self._objects.get_ranges([ObjectRange(one.object_key, one.start, one.length) for one in ranges])
        size = sum(len(answer) for answer in answers if not isinstance(answer, ObjectStoreError))
        self.bytes_read += size
        if size < _LARGE:
            return cut(ranges, answers, pieces)
        return await asyncio.to_thread(cut, ranges, answers, pieces)

    def _finish(self, download: _Download, outcomes: Sequence[LoadedPiece] | BaseException) -> None:
        for number, piece in enumerate(download.pieces):
            self._under_way.pop((piece.blocks, piece.rows[0].base_offset), None)
            for row in piece.rows:
                self._downloads.pop(place_of(row), None)
            if piece.loaded.done():
                continue
            if isinstance(outcomes, asyncio.CancelledError):
                piece.loaded.cancel()
            elif isinstance(outcomes, BaseException):
                piece.loaded.set_exception(outcomes)
            else:
                self._take_in(piece, outcomes[number], download.region)

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


def _time_of(row: BatchRow) -> int:
    return row.log_append_time_ms if row.timestamp_type is TimestampType.LOG_APPEND_TIME else row.max_timestamp


def _log_unexpected(future: asyncio.Future[LoadedPiece]) -> None:
    """Log errors that are no StrandlineError. Also marks any error as seen, for downloads without a waiting fetch."""
    if not future.cancelled() and (error := future.exception()) is not None and not isinstance(error, StrandlineError):
        logger.error("a download of a block failed", exc_info=error)
