"""One timer for everything that waits: long polls, produce timeouts."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable


class Deadlines:
    """Calls functions at their time, with one timer of the event loop for all of them.

    There is no cancel: what was answered earlier simply does nothing when its time comes. A long poll that
    is woken by data leaves its entry behind for at most its own waiting time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._ticket = itertools.count()
        self._handle: asyncio.TimerHandle | None = None

    def call_within(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call `callback` after `seconds`."""
        when = self._loop.time() + seconds
        heapq.heappush(self._heap, (when, next(self._ticket), callback))
        if self._handle is None:
            self._handle = self._loop.call_at(when, self._fire)
        elif self._heap[0][0] == when:
            self._handle.cancel()
            self._handle = self._loop.call_at(when, self._fire)

    def _fire(self) -> None:
        self._handle = None
        # The loop may fire a little early: its clock has a coarser grain than ours.
        now = self._loop.time() + 0.0005
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2]()
        if self._heap and self._handle is None:
            self._handle = self._loop.call_at(self._heap[0][0], self._fire)

    def close(self) -> None:
        """Forget everything that waits."""
        self._heap.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
