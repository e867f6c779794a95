"""Loads blocks from objects: one request for rows that are close, one download for each row, bounded.

A download does not belong to the fetch that asked for it: if the fetch gives up, the download goes on into the cache,
where the next attempt finds it. Downloads for lagging consumers have their own queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from strandline.clock import Clock
from strandline.controlplane import BatchRow
from strandline.diskless.reader.blocks import Block
from strandline.diskless.reader.cache import BlockCache, CacheRegion, PartitionBlocks
from strandline.diskless.reader.limits import DisklessReaderLimits
from strandline.diskless.reader.planning import RangedRead, plan_ranges
from strandline.diskless.values import WalObjectGone
from strandline.errors import CorruptMessage, KafkaStorageError, StrandlineError
from strandline.objects import ObjectNotFound, ObjectStore, ObjectStoreError
from strandline.objects.store import Buffer
from strandline.records import TimestampType
from strandline.tasks import TaskSet

logger = logging.getLogger(__name__)

# From this size on, a thread copies and checks the bytes.
_LARGE: Final = 256 * 1024
# Requests that may wait for each one that runs; more are refused, and consumers try again.
_WAITING_PER_RUNNING: Final = 100
# Few, because each row may be in an object of its own.
_ROWS_AT_ONCE: Final = 256
# The log has one line about an unreadable object in this many seconds, for this many objects.
_WARNING_SECONDS: Final = 60.0
_WARNINGS: Final = 1000


class WantedRow(NamedTuple):
    """A row to load, and the blocks of its partition."""

    row: BatchRow
    blocks: PartitionBlocks


class _RowDownload(NamedTuple):
    """The download of one row, and the blocks of its partition."""

    block: asyncio.Future[Block]
    blocks: PartitionBlocks


class _Gate:
    """Bounds the requests that run at once, and those that wait."""

    def __init__(self, parallel: int) -> None:
        self.turn = asyncio.Semaphore(parallel)
        self._limit = parallel * (1 + _WAITING_PER_RUNNING)
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


class BlockLoader:
    """Brings blocks from the object store into the cache. Lives on the event loop."""

    def __init__(self, objects: ObjectStore, cache: BlockCache, clock: Clock, limits: DisklessReaderLimits) -> None:
        self._objects, self._cache, self._clock = objects, cache, clock
        self._lagging_after_ms = limits.lagging_after_ms
        self._tail_gate = _Gate(limits.parallel_reads)
        lagging = limits.parallel_lagging_reads
        self._lagging_gate = _Gate(lagging) if lagging else self._tail_gate
        self._warned_at: dict[str, float] = {}
        self._downloads: dict[tuple[str, int], asyncio.Future[Block]] = {}
        self._tasks = TaskSet()
        self.requests = 0
        """Requests made to the object store so far."""
        self.bytes_read = 0

    def load(self, wanted: Sequence[WantedRow]) -> list[asyncio.Future[Block]]:
        """A future for each row: of the download under way, or of one that begins now.

        A future fails with KafkaStorageError or CorruptMessage. Futures are shared: do not cancel them.
        """
        futures: list[asyncio.Future[Block]] = []
        tail: list[tuple[BatchRow, _RowDownload]] = []
        lagging: list[tuple[BatchRow, _RowDownload]] = []
        oldest = self._clock.now_ms() - self._lagging_after_ms
        for row, blocks in wanted:
            key = (row.object_key, row.byte_offset)
            future = self._downloads.get(key)
            if future is None:
                future = self._downloads[key] = asyncio.get_running_loop().create_future()
                future.add_done_callback(_log_unexpected)
                (tail if _time_of(row) >= oldest else lagging).append((row, _RowDownload(future, blocks)))
            futures.append(future)
        for downloads, gate, region in (
            (tail, self._tail_gate, self._cache.hot),
            (lagging, self._lagging_gate, self._cache.cold),
        ):
            for ranged in plan_ranges(downloads):
                self._begin(ranged, gate, region)
        return futures

    @property
    def rows_at_once(self) -> int:
        """How many rows a caller should ask for: fewer while many downloads wait, so that all callers get a turn."""
        return max(min(_ROWS_AT_ONCE, self._tail_gate.room // 2, self._lagging_gate.room // 2), 1)

    async def close(self) -> None:
        """End all downloads."""
        await self._tasks.close()
        for future in self._downloads.values():
            future.cancel()  # of tasks that were cancelled before they began
        self._downloads.clear()

    def _begin(self, ranged: RangedRead[_RowDownload], gate: _Gate, region: CacheRegion) -> None:
        if not gate.enter():
            refused = KafkaStorageError(
                "Too many reads of the object store are waiting; inkless.fetch.data.thread.pool.size and "
                "inkless.fetch.lagging.consumer.thread.pool.size say how many run at once."
            )
            self._finish(ranged, [refused] * len(ranged.rows), region)
            return
        self._tasks.start(self._download(ranged, gate, region), name="diskless-download")

    async def _download(self, ranged: RangedRead[_RowDownload], gate: _Gate, region: CacheRegion) -> None:
        outcomes: Sequence[Block | BaseException]
        try:
            async with gate.turn:
                outcomes = await self._outcomes(ranged)
        except asyncio.CancelledError as error:
            outcomes = [error] * len(ranged.rows)
            raise
        except Exception as error:  # noqa: BLE001 - the futures carry it
            outcomes = [error] * len(ranged.rows)
        finally:
            gate.leave()
            self._finish(ranged, outcomes, region)

    async def _outcomes(self, ranged: RangedRead[_RowDownload]) -> Sequence[Block | BaseException]:
        self.requests += 1
        try:
            data = await self._objects.get_range(ranged.object_key, ranged.start, ranged.length)
        except ObjectNotFound:
            return [_missing(row) for row, _ in ranged.rows]
        except ObjectStoreError as error:
            return [_unreadable(row, error) for row, _ in ranged.rows]
        self.bytes_read += len(data)
        if len(data) < _LARGE:
            return _cut(ranged, data)
        return await asyncio.to_thread(_cut, ranged, data)

    def _finish(
        self, ranged: RangedRead[_RowDownload], outcomes: Sequence[Block | BaseException], region: CacheRegion
    ) -> None:
        for (row, download), outcome in zip(ranged.rows, outcomes, strict=True):
            del self._downloads[row.object_key, row.byte_offset]
            if isinstance(outcome, Block):
                self._cache.add(download.blocks, outcome, region)
                download.block.set_result(outcome)
            elif isinstance(outcome, asyncio.CancelledError):
                download.block.cancel()
            else:
                self._warn(row, outcome)
                download.block.set_exception(outcome)

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


def _cut(ranged: RangedRead[_RowDownload], data: Buffer) -> list[Block | BaseException]:
    """The blocks of a range. A damaged one does not harm the others."""
    if len(ranged.rows) == 1:
        return [_block(ranged.rows[0][0], data)]
    whole = memoryview(data)
    outcomes: list[Block | BaseException] = []
    for row, _ in ranged.rows:
        start = row.byte_offset - ranged.start
        outcomes.append(_block(row, whole[start : start + row.byte_size]))
    return outcomes


def _block(row: BatchRow, data: Buffer) -> Block | CorruptMessage:
    try:
        return Block.of_object(row, data)
    except CorruptMessage as error:
        return error


def _missing(row: BatchRow) -> WalObjectGone:
    return WalObjectGone(
        f"The object {row.object_key}, which should hold the offsets {row.base_offset} to {row.last_offset}, is not in "
        "the object store. `strandline fsck` finds all missing objects."
    )


def _unreadable(row: BatchRow, error: ObjectStoreError) -> KafkaStorageError:
    return KafkaStorageError(
        f"The object {row.object_key}, which holds the offsets {row.base_offset} to {row.last_offset}, cannot be read: "
        f"{error}"
    )


def _log_unexpected(future: asyncio.Future[Block]) -> None:
    """Log errors that are no StrandlineError. Also marks any error as seen, for downloads without a waiting fetch."""
    if not future.cancelled() and (error := future.exception()) is not None and not isinstance(error, StrandlineError):
        logger.error("a download of a block failed", exc_info=error)
