"""Segments with so many transactions, or producers, as a broker that was killed leaves them behind."""

from __future__ import annotations

import asyncio
import gc
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from bench.growing.measuring import Growth, Measured, watched, without_collections
from strandline.clock import SystemChance, SystemClock
from strandline.config.topic import TopicConfig
from strandline.log import LogDirectory, LogEnvironment, UnifiedLog
from strandline.log.loading import LoadedOffsets, load_log
from strandline.log.snapshot_writing import write_snapshots
from strandline.model import NO_PRODUCER_ID, TopicPartition
from strandline.records.builder import build_batch
from strandline.records.control import ControlType, EndTransactionMarker, build_marker
from strandline.records.record import Record

_PARTITION: Final = TopicPartition("crashed", 0)


def one_after_the_other(size: int) -> Iterator[bytearray]:
    """Of one producer."""
    for number in range(size):
        yield written(2 * number, 1, number)
        yield ended(2 * number + 1, 1, number)


def aborted(size: int) -> Iterator[bytearray]:
    """Of one producer that aborts all of them."""
    for number in range(size):
        yield written(2 * number, 1, number)
        yield ended(2 * number + 1, 1, number, ControlType.ABORT)


def all_open_at_once(size: int) -> Iterator[bytearray]:
    """Of as many producers; the oldest ends first, and every second one aborts."""
    for number in range(size):
        yield written(number, number, 0)
    for number in range(size):
        yield ended(size + number, number, 0, ControlType.ABORT if number % 2 else ControlType.COMMIT)


def newest_ends_first(size: int) -> Iterator[bytearray]:
    """Of as many producers, all open at once."""
    for number in range(size):
        yield written(number, number, 0)
    for number in range(size):
        yield ended(size + number, size - 1 - number, 0, ControlType.ABORT)


def behind_an_open_one(size: int) -> Iterator[bytearray]:
    """Of one producer, while the transaction of another one stays open."""
    yield written(0, 2, 0)
    for number in range(size):
        yield written(2 * number + 1, 1, number)
        yield ended(2 * number + 2, 1, number, ControlType.ABORT)


def without_transactions(size: int) -> Iterator[bytearray]:
    """So many producers with one batch each."""
    for number in range(size):
        yield written(number, number, 0, is_transactional=False)


SHAPES: Final[Mapping[str, Callable[[int], Iterator[bytearray]]]] = {
    "transactions of one producer": one_after_the_other,
    "transactions that one producer aborts": aborted,
    "transactions open at the same time": all_open_at_once,
    "the same, the newest ends first": newest_ends_first,
    "transactions behind one that stays open": behind_an_open_one,
    "producers without transactions": without_transactions,
}


def written(offset: int, producer_id: int, number: int, *, is_transactional: bool = True) -> bytearray:
    """A batch of a producer, the first in its epoch."""
    now_ms = SystemClock().now_ms()
    return build_batch(
        [Record(offset, now_ms, None, b"x" * 100)],
        base_offset=offset,
        leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=number % 30_000,
        base_sequence=0,
        is_transactional=is_transactional,
    )


def ended(offset: int, producer_id: int, number: int, kind: ControlType = ControlType.COMMIT) -> bytearray:
    """A marker."""
    return build_marker(
        EndTransactionMarker(kind, 0),
        producer_id=producer_id,
        producer_epoch=number % 30_000 + 1,
        timestamp_ms=SystemClock().now_ms(),
        base_offset=offset,
        leader_epoch=0,
    )


def crashed_directory(root: Path, batches: Iterator[bytearray]) -> Path:
    """A partition's directory with one segment of these batches, and nothing else."""
    directory = root / str(_PARTITION)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with (directory / f"{0:020}.log").open("wb") as file:
        file.writelines(batches)
    return directory


def load_crashed(directory: Path) -> UnifiedLog:
    """What a start does with it."""
    env = LogEnvironment(directory=LogDirectory(str(directory.parent)), clock=SystemClock(), chance=SystemChance(1))
    return load_log(_PARTITION, str(directory), TopicConfig(), env, offsets=LoadedOffsets(), is_clean=False)


def measure(root: Path, size: int) -> Measured:
    """CPU time of the load of each shape, and of the high watermark that reaches the end. Then of a roll and a clean
    start with as many producers.

    As in a broker that starts, no garbage is collected meanwhile.
    """
    found: dict[Growth, float] = {}
    for what, shape in SHAPES.items():
        directory = crashed_directory(root, shape(size))
        gc.collect()
        with without_collections():
            before = time.process_time()
            log = load_crashed(directory)
            log.update_high_watermark(log.log_end_offset)
            found[Growth(f"load {what}", "CPU ms")] = (time.process_time() - before) * 1e3
        if shape is without_transactions:
            found |= _measure_roll(log)
        log.close()
    return found


def _measure_roll(log: UnifiedLog) -> Measured:
    """Of a log whose producers have written since the last snapshot."""
    log.append(memoryview(written(0, NO_PRODUCER_ID, 0, is_transactional=False)), leader_epoch=0)

    async def roll() -> None:
        log.roll()
        await write_snapshots(log, _in_thread)

    spent, longest = asyncio.run(watched(roll))
    end = log.log_end_offset
    snapshot = Path(log.producers.snapshot_path(end)).read_bytes()
    gc.collect()
    with without_collections():
        before = time.process_time()
        log.producers.restore(snapshot, log.env.clock.now_ms())
        parsed = time.process_time() - before
    return {
        Growth("roll with as many producers", "CPU ms"): spent,
        Growth("roll with as many producers: longest turn of the loop", "ms", 0): longest,
        Growth("read their snapshot", "CPU ms"): parsed * 1e3,
    }


async def _in_thread(work: Callable[[], None]) -> bool:
    await asyncio.to_thread(work)
    return True
