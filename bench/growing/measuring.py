"""Figures of growth, and what they are measured with: CPU time and memory of a process, not the time that passes."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from bench.process import ServerProcess

SETTLE_SECONDS: Final = 1.0
_ROUNDS: Final = 4
_ROUND_SECONDS: Final = 0.2
_AT_LEAST: Final = 2
# A figure may grow by so much more than it should: constants that fade, and noise.
TOLERANCE: Final = 0.15


class Growth(NamedTuple):
    """A figure, and how it may grow with the size: 1 with what there is, 0 not at all."""

    what: str
    unit: str
    allowed: float = 1.0


Measured = Mapping[Growth, float]


def cpu_seconds(pid: int) -> float:
    """Of all threads, to the nanosecond: the ticks of /proc/PID/stat are 10 ms."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / 1e9


@dataclass(slots=True)
class Cost:
    """CPU seconds and bytes of memory."""

    cpu: float = 0.0
    memory: int = 0


@contextmanager
def costs(process: ServerProcess) -> Iterator[Cost]:
    """What a block costs the broker, with what it does right after it."""
    cost = Cost(cpu_seconds(process.pid), process.usage().rss_bytes)
    yield cost
    settle(process)
    cost.cpu = cpu_seconds(process.pid) - cost.cpu
    cost.memory = process.usage().rss_bytes - cost.memory


def settle(process: ServerProcess) -> None:
    """Wait until the broker does next to nothing."""
    for _ in range(60):
        before = cpu_seconds(process.pid)
        time.sleep(SETTLE_SECONDS / 4)
        if cpu_seconds(process.pid) - before < 0.02 * SETTLE_SECONDS / 4:
            return


def each(process: ServerProcess, request: Callable[[], object]) -> float:
    """CPU seconds of the broker for one request: the least of some rounds of as many as fit into some time.

    Whatever else runs on the machine costs CPU time too, by what it takes out of the processor's caches.
    """
    request()
    return min(_round(process, request) for _ in range(_ROUNDS))


def _round(process: ServerProcess, request: Callable[[], object]) -> float:
    count, before, deadline = 0, cpu_seconds(process.pid), time.monotonic() + _ROUND_SECONDS
    while count < _AT_LEAST or time.monotonic() < deadline:
        request()
        count += 1
    return (cpu_seconds(process.pid) - before) / count


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """The slope of a figure over the size, both as logarithms, from the middle size on: constants fade by then."""
    late = [(math.log(size), math.log(max(value, 1e-9))) for size, value in points[(len(points) - 1) // 2 :]]
    mean_x, mean_y = (sum(values) / len(late) for values in zip(*late, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in late)
    return sum((x - mean_x) * (y - mean_y) for x, y in late) / spread if spread else 0.0


async def watched(step: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """CPU ms of a step, and of its longest turn: what another task of the loop waits for, whatever else runs."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    gc.collect()
    with without_collections():
        watcher = asyncio.create_task(watch())
        await asyncio.sleep(0)
        before = time.process_time()
        await step()
        spent = time.process_time() - before
        await asyncio.sleep(0)
        watcher.cancel()
    return spent * 1e3, longest * 1e3


@contextmanager
def without_collections() -> Iterator[None]:
    """A collection of garbage in the middle of a turn is no part of it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
