"""How much the reader may use at once: the limits, and what enforces them on reads and on their memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from strandline.averages import OneMinuteAverage
from strandline.clock import Clock
from strandline.errors import KafkaStorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteReaderLimits:
    """Limits of the reader, each with its setting in brackets."""

    parallel_reads: int = 10
    """Reads of the remote storage at the same time (remote.log.reader.threads)."""
    max_pending: int = 100
    """Reads that may wait for a slot; more are refused (remote.log.reader.max.pending.tasks)."""
    cache_max_bytes: int = 64 * 1024 * 1024
    """Memory for cached reads; in-flight reads may take as much again (strandline.remote.read.cache.max.bytes)."""
    fetch_max_wait_ms: int = 500
    """How long a Fetch waits for remote records (remote.fetch.max.wait.ms)."""
    list_offsets_timeout_ms: int = 30_000
    """How long ListOffsets searches (remote.list.offsets.request.timeout.ms)."""


class ReadGate:
    """Bounds concurrent and waiting reads. Read-ahead only uses capacity that no request needs."""

    def __init__(self, parallel: int, max_pending: int, clock: Clock) -> None:
        self.parallel = parallel
        self._clock = clock
        self._busy_seconds = 0.0
        self._counted_at = clock.monotonic()
        self._busy = OneMinuteAverage(clock)
        self.running = 0
        self.waiting = 0
        self._max_pending = max_pending
        self._turn = asyncio.Semaphore(parallel)

    @property
    def busy_seconds(self) -> float:
        """How long slots were held, all slots together."""
        now = self._clock.monotonic()
        self._busy_seconds += (now - self._counted_at) * self.running
        self._counted_at = now
        return self._busy_seconds

    @property
    def idle_percent(self) -> float:
        """The slots that were free in the last minute, from 0 to 100 percent."""
        return 100.0 * (1 - self._busy.per_second(self.busy_seconds) / self.parallel)

    def _run(self, more: int) -> None:
        _ = self.busy_seconds  # up to now, before the number changes
        self.running += more

    @property
    def has_spare(self) -> bool:
        """Whether read-ahead may start a read. One slot stays free for requests."""
        return self.running + self.waiting < max(self.parallel - 1, 1)

    def enter(self) -> None:
        """Announce a read, which then takes a `turn`. Raises KafkaStorageError if too many reads wait already."""
        if self.waiting >= self._max_pending + self.parallel - self.running:
            raise KafkaStorageError(
                f"{self.waiting} reads of remote storage are waiting already. Raise remote.log.reader.threads to run "
                "more at once, or remote.log.reader.max.pending.tasks to let more wait."
            )
        self.waiting += 1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold a slot while the block lasts. Only after `enter`."""
        try:
            await self._turn.acquire()
        finally:
            self.waiting -= 1
        self._run(1)
        try:
            yield
        finally:
            self._run(-1)
            self._turn.release()


class MemoryBudget:
    """Memory that in-flight reads may fill, granted in the order of requests.

    A read gets all it needs at once, so that no two reads wait for each other; a read that needs more than the limit
    gets it when no other read holds any.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def reserved(self, size: int) -> AsyncIterator[None]:
        """Hold `size` bytes until the block ends."""
        if self._waiting or not self._fits(size):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._give_back(size)
                else:
                    self._waiting.remove((size, turn))
                    self._admit()
                raise
        else:
            self._used += size
        try:
            yield
        finally:
            self._give_back(size)

    def _fits(self, size: int) -> bool:
        return self._used == 0 or self._used + size <= self._limit

    def _give_back(self, size: int) -> None:
        self._used -= size
        self._admit()

    def _admit(self) -> None:
        waiting = self._waiting
        while waiting and self._fits(waiting[0][0]):
            size, turn = waiting.popleft()
            self._used += size
            turn.set_result(None)
