"""How much the reader may use at once: the limits, and what enforces them on reads and on their memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from strandline.errors import KafkaStorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteReaderLimits:
    """Bounds of the reader. The words in brackets are the settings they come from."""

    parallel_reads: int = 10
    """Reads of the remote storage at the same time (remote.log.reader.threads)."""
    max_pending: int = 100
    """Reads that may wait for their turn; more are refused (remote.log.reader.max.pending.tasks)."""
    cache_max_bytes: int = 64 * 1024 * 1024
    """Memory for what was read; reads under way may take as much again (strandline.remote.read.cache.max.bytes)."""
    fetch_max_wait_ms: int = 500
    """How long a Fetch waits for remote records (remote.fetch.max.wait.ms)."""
    list_offsets_timeout_ms: int = 30_000
    """How long ListOffsets searches (remote.list.offsets.request.timeout.ms)."""


class ReadGate:
    """So many reads at once, and not too many that wait. What is read ahead takes only what nobody else wants."""

    def __init__(self, parallel: int, max_pending: int) -> None:
        self.parallel = parallel
        self.running = 0
        self.waiting = 0
        self._max_pending = max_pending
        self._turn = asyncio.Semaphore(parallel)

    @property
    def has_spare(self) -> bool:
        """Whether something may be read that nobody waits for. One place stays free for who does."""
        return self.running + self.waiting < max(self.parallel - 1, 1)

    def enter(self) -> None:
        """Announce somebody who will come for a `turn`. Raises KafkaStorageError if too many wait already."""
        if self.waiting >= self._max_pending + self.parallel - self.running:
            raise KafkaStorageError(
                f"{self.waiting} reads of remote storage are waiting; remote.log.reader.threads says how many run at "
                "once, remote.log.reader.max.pending.tasks how many may wait."
            )
        self.waiting += 1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One of the places, as soon as there is one. For those who have entered."""
        try:
            await self._turn.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._turn.release()


class MemoryBudget:
    """Memory that reads may fill at the same time. They get it in the order in which they ask.

    A read gets all it needs at once, so that no two wait for each other; one that needs more than there is gets it
    when it is alone.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def reserved(self, size: int) -> AsyncIterator[None]:
        """So much memory, until the block ends."""
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
