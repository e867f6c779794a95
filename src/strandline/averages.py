"""Averages over the last minute of numbers that only grow."""

from __future__ import annotations

from collections import deque
from typing import Final

from strandline.clock import Clock

WINDOW_SECONDS: Final = 60.0
_STEP_SECONDS: Final = 5.0


class OneMinuteAverage:
    """How much a total grows per second, over the last minute, or since the last call if that was longer ago.

    Nothing runs in the background: each call remembers the total for the calls of the next minute.
    """

    __slots__ = ("_clock", "_readings")

    def __init__(self, clock: Clock, total: float = 0.0) -> None:
        """`total` is what it is now."""
        self._clock = clock
        self._readings = deque([(clock.monotonic(), total)])

    def per_second(self, total: float) -> float:
        """The average growth until now, when the total is `total`."""
        now, readings = self._clock.monotonic(), self._readings
        while len(readings) > 1 and now - readings[1][0] >= WINDOW_SECONDS:
            readings.popleft()
        at, before = readings[0]
        if now - readings[-1][0] >= _STEP_SECONDS:
            readings.append((now, total))
        return (total - before) / (now - at) if now > at else 0.0
