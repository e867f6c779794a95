"""Waiting for a replica to come to a state, told by the replica itself: it notifies watchers of every change.

A replica that is not waited for pays nothing, and nearly all are not: those that are switched are, one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.clock import Clock
from strandline.replication import Partition


class _StateWatcher:
    """A `Watcher` that sets an event when its replica is in a state."""

    __slots__ = ("_is_so", "_replica", "seen")

    def __init__(self, replica: Partition, is_so: Callable[[Partition], bool]) -> None:
        self._replica, self._is_so = replica, is_so
        self.seen = asyncio.Event()

    def notify(self) -> None:
        if self._is_so(self._replica):
            self.seen.set()


async def wait_until(replica: Partition, is_so: Callable[[Partition], bool], clock: Clock, *, deadline: float) -> bool:
    """Return when a replica is in a state, or at a moment of the monotonic clock. True if it was in that state."""
    watcher = _StateWatcher(replica, is_so)
    replica.watch(watcher)
    try:
        watcher.notify()
        return await clock.wait_set(watcher.seen, within=max(deadline - clock.monotonic(), 0.0))
    finally:
        replica.unwatch(watcher)
