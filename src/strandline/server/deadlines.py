"""One timer for everything that waits: long polls, produce timeouts."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)

_MIN_CANCELLED: Final = 100


class Deadline:
    """A call that is due at some time, unless it is cancelled."""

    __slots__ = ("_owner", "callback")

    def __init__(self, owner: Deadlines, callback: Callable[[], None]) -> None:
        self._owner = owner
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Do not call, and drop the reference to the callback. Harmless if it has been called."""
        if self.callback is not None:
            self.callback = None
            self._owner.cancelled()


class Deadlines:
    """Calls callbacks at their deadlines, with one timer of the event loop for all of them.

    Most deadlines are cancelled, since most long polls are woken by data. A cancelled one leaves an empty entry
    behind until its time has come, or until half of the entries are empty.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[tuple[float, int, Deadline]] = []
        self._ticket = itertools.count()
        self._handle: asyncio.TimerHandle | None = None
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap)

    def call_within(self, seconds: float, callback: Callable[[], None]) -> Deadline:
        """Call `callback` after `seconds`."""
        when = self._loop.time() + seconds
        deadline = Deadline(self, callback)
        heapq.heappush(self._heap, (when, next(self._ticket), deadline))
        if self._heap[0][2] is deadline:
            self._set_timer()
        return deadline

    def cancelled(self) -> None:
        """One of the deadlines was cancelled."""
        self._cancelled += 1
        if self._cancelled >= _MIN_CANCELLED and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def _set_timer(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._loop.call_at(self._heap[0][0], self._fire) if self._heap else None

    def _fire(self) -> None:
        # The loop may fire a little early: its timers are coarser than its clock.
        now = self._loop.time() + 0.0005
        while self._heap and self._heap[0][0] <= now:
            deadline = heapq.heappop(self._heap)[2]
            callback, deadline.callback = deadline.callback, None
            if callback is None:
                self._cancelled -= 1
                continue
            try:
                callback()
            except Exception:  # a failing callback must not keep the others waiting
                logger.exception("a deadline could not be handled")
        self._set_timer()

    def close(self) -> None:
        """Drop all deadlines."""
        self._heap.clear()
        self._cancelled = 0
        self._set_timer()
