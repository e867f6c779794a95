"""A clock that tests move. Nothing here waits for real time."""

from __future__ import annotations

import asyncio
import heapq
from typing import Any

# Turns of the event loop after which all tasks wait for time to pass.
_TURNS = 50


class VirtualClock:
    """A `Clock` whose time passes only when a test moves it."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = now_ms
        self._elapsed = 0.0
        self._order = 0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self._start_ms + round(self._elapsed * 1000)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
        else:
            await self._until(self._elapsed + seconds)

    async def wait_set(self, event: asyncio.Event, *, within: float) -> bool:
        if event.is_set():
            return True
        deadline = self._until(self._elapsed + max(within, 0.0))
        waiter = asyncio.ensure_future(event.wait())
        try:
            either: set[asyncio.Future[Any]] = {waiter, deadline}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
            deadline.cancel()
        return event.is_set()

    def move(self, seconds: float) -> None:
        """Let time pass at once; sleepers whose time has come wake in the next turns of the loop."""
        self._elapsed += seconds
        while self._waiting and self._waiting[0][0] <= self._elapsed:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)

    def set_wall_clock(self, by_seconds: float) -> None:
        """Set the wall clock forward or back, as an operator or NTP does. The monotonic clock does not notice."""
        self._start_ms += round(by_seconds * 1000)

    async def advance(self, seconds: float) -> None:
        """Let time pass step by step: each sleeper wakes at its own time and runs until it waits again."""
        await self.settle()
        end = self._elapsed + seconds
        while (step := self._next_wake()) is not None and step <= end:
            self.move(max(step - self._elapsed, 0.0))
            await self.settle()
        self.move(max(end - self._elapsed, 0.0))
        await self.settle()

    async def settle(self) -> None:
        """Run all tasks until each of them waits for time to pass."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def _until(self, deadline: float) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._order += 1
        heapq.heappush(self._waiting, (deadline, self._order, future))
        return future

    def _next_wake(self) -> float | None:
        while self._waiting and self._waiting[0][2].done():
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None
