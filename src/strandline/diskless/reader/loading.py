"""Loading blocks from objects: one request for neighbours, one flight for each row, bounded.

A download belongs to nobody: when the request that asked for it gives up, it goes on into the cache, where the next
attempt finds it. What lagging readers ask for waits in its own queue.
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
from strandline.errors import CorruptMessage, KafkaStorageError, StrandlineError
from strandline.objects import ObjectNotFound, ObjectStore, ObjectStoreError
from strandline.objects.store import Buffer
from strandline.records import TimestampType
from strandline.tasks import TaskSet

_log = logging.getLogger(__name__)

# From this size on, copying and checking go to a thread.
_LARGE: Final = 256 * 1024
# Requests that may wait for each that runs; more are refused, and consumers try again.
_WAITING_PER_RUNNING: Final = 100
# Each of them may lie in an object of its own.
_ROWS_AT_ONCE: Final = 256
# An object that cannot be read is spoken of once in so many seconds; so many are remembered.
_COMPLAINT_SECONDS: Final = 60.0
_COMPLAINTS: Final = 1000


class WantedRow(NamedTuple):
    """A row whose block somebody needs, and where blocks of its partition are kept."""

    row: BatchRow
    blocks: PartitionBlocks


class _RowDownload(NamedTuple):
    block: asyncio.Future[Block]
    blocks: PartitionBlocks


class _Gate:
    """So many at once, and not too many who wait."""

    def __init__(self, parallel: int) -> None:
        self.turn = asyncio.Semaphore(parallel)
        self._most = parallel * (1 + _WAITING_PER_RUNNING)
        self._inside = 0

    @property
    def room(self) -> int:
        """How many more may come."""
        return self._most - self._inside

    def enter(self) -> bool:
        """False if too many are inside or wait."""
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
        self._complained: dict[str, float] = {}
        self._flights: dict[tuple[str, int], asyncio.Future[Block]] = {}
        self._tasks = TaskSet()
        self.requests = 0
        """Requests made to the object store so far."""
        self.bytes_read = 0

    def load(self, wanted: Sequence[WantedRow]) -> list[asyncio.Future[Block]]:
        """A future for each row: of the download that is under way, or of one that begins now.

        They fail with KafkaStorageError or CorruptMessage. They are shared: wait for them, do not cancel them.
        """
        futures: list[asyncio.Future[Block]] = []
        tail: list[tuple[BatchRow, _RowDownload]] = []
        lagging: list[tuple[BatchRow, _RowDownload]] = []
        oldest = self._clock.now_ms() - self._lagging_after_ms
        for row, blocks in wanted:
            key = (row.object_key, row.byte_offset)
            future = self._flights.get(key)
            if future is None:
                future = self._flights[key] = asyncio.get_running_loop().create_future()
                future.add_done_callback(_look_at_failure)
                (tail if _time_of(row) >= oldest else lagging).append((row, _RowDownload(future, blocks)))
            futures.append(future)
        for flights, gate, region in (
            (tail, self._tail_gate, self._cache.hot),
            (lagging, self._lagging_gate, self._cache.cold),
        ):
            for ranged in plan_ranges(flights):
                self._begin(ranged, gate, region)
        return futures

    @property
    def rows_at_once(self) -> int:
        """How many rows one caller should ask for: fewer while many downloads wait, so that all get their turn."""
        return max(min(_ROWS_AT_ONCE, self._tail_gate.room // 2, self._lagging_gate.room // 2), 1)

    async def close(self) -> None:
        """End all downloads."""
        await self._tasks.close()
        for future in self._flights.values():
            future.cancel()  # of tasks that were ended before they began
        self._flights.clear()

    def _begin(self, ranged: RangedRead[_RowDownload], gate: _Gate, region: CacheRegion) -> None:
        if not gate.enter():
            refused = KafkaStorageError(
                "Too many reads of the object store are waiting; inkless.fetch.data.thread.pool.size and "
                "inkless.fetch.lagging.consumer.thread.pool.size say how many run at once."
            )
            self._land(ranged, [refused] * len(ranged.rows), region)
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
        except Exception as error:  # noqa: BLE001 - goes to whoever waits for the blocks
            outcomes = [error] * len(ranged.rows)
        finally:
            gate.leave()
            self._land(ranged, outcomes, region)

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

    def _land(
        self, ranged: RangedRead[_RowDownload], outcomes: Sequence[Block | BaseException], region: CacheRegion
    ) -> None:
        for (row, flight), outcome in zip(ranged.rows, outcomes, strict=True):
            del self._flights[row.object_key, row.byte_offset]
            if isinstance(outcome, Block):
                self._cache.add(flight.blocks, outcome, region)
                flight.block.set_result(outcome)
            elif isinstance(outcome, asyncio.CancelledError):
                flight.block.cancel()
            else:
                self._complain(row, outcome)
                flight.block.set_exception(outcome)

    def _complain(self, row: BatchRow, trouble: BaseException) -> None:
        """One line for the operator: consumers only see an error code, and ask again and again."""
        now = self._clock.monotonic()
        if now - self._complained.get(row.object_key, -_COMPLAINT_SECONDS) < _COMPLAINT_SECONDS:
            return
        if len(self._complained) >= _COMPLAINTS:
            self._complained.clear()
        self._complained[row.object_key] = now
        _log.warning("diskless records cannot be read: %s", trouble)


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


def _missing(row: BatchRow) -> KafkaStorageError:
    return KafkaStorageError(
        f"The object {row.object_key}, which should hold the offsets {row.base_offset} to {row.last_offset}, is not in "
        "the object store. `strandline fsck` finds out what else is missing."
    )


def _unreadable(row: BatchRow, error: ObjectStoreError) -> KafkaStorageError:
    return KafkaStorageError(
        f"The object {row.object_key}, which holds the offsets {row.base_offset} to {row.last_offset}, cannot be read: "
        f"{error}"
    )


def _look_at_failure(future: asyncio.Future[Block]) -> None:
    """A failure whose request has given up is no mistake of the program, unless it is one of ours."""
    if not future.cancelled() and (error := future.exception()) is not None and not isinstance(error, StrandlineError):
        _log.error("a download of a block failed", exc_info=error)
