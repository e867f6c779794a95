"""The time in which this process could receive heartbeats of other brokers.

A controller fences brokers that send no heartbeats. A process that was stopped, or whose event loop was blocked, has
received none, which says nothing about the other brokers. Sessions are therefore measured by a clock that stands still
while the event loop does not run.
"""

from __future__ import annotations

from typing import Final

from strandline.clock import Clock

TICK_SECONDS: Final = 0.5
_LONGEST_GAP_SECONDS: Final = 2 * TICK_SECONDS


class ListeningTime:
    """A monotonic clock that leaves out the time in which the event loop did not run. It needs `run` as a task."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_running = False
        self._seen = clock.monotonic()
        self._deaf = 0.0

    def now(self) -> float:
        """Seconds of listening. Counts a gap that has just ended, so that it may be asked right after one."""
        now = self._clock.monotonic()
        gap = now - self._seen
        self._seen = now
        if self._is_running and gap > _LONGEST_GAP_SECONDS:
            self._deaf += gap - TICK_SECONDS
        return now - self._deaf

    async def run(self) -> None:
        """Look at the clock often enough that only a blocked event loop makes a gap."""
        self._seen = self._clock.monotonic()
        self._is_running = True
        try:
            while True:
                await self._clock.sleep(TICK_SECONDS)
                self.now()
        finally:
            self._is_running = False
