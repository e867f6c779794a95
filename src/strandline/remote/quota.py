"""Limits the bytes per second to or from remote storage: an average over several windows, as in Kafka."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from strandline.clock import Clock
from strandline.model import INT64_MAX

# Less than this is rounding.
_SHORTEST_WAIT_S: Final = 0.001


class RateQuota:
    """An average rate that may be exceeded for a moment; later transfers then wait until the average is met again.

    A transfer first asks for room (`throttle_seconds`, or `wait_for_room`) and then records all of its bytes at once: a
    segment larger than the quota goes through, and the next one waits until the average is back below the limit.
    The average spans at least all windows but one, so that a burst after a quiet time does not count as a high rate.
    """

    def __init__(self, bytes_per_second: int, *, windows: int, window_seconds: int, clock: Clock) -> None:
        self._limit = bytes_per_second
        self._windows, self._window_seconds = windows, window_seconds
        self._clock = clock
        # (beginning of a window, bytes recorded in it)
        self._samples: deque[tuple[float, int]] = deque(maxlen=windows + 1)
        self._turns = asyncio.Lock()

    @property
    def is_unlimited(self) -> bool:
        return self._limit >= INT64_MAX

    def change(self, bytes_per_second: int) -> None:
        """Another limit from now on. Transfers that wait already wait as long as under the old limit."""
        self._limit = bytes_per_second

    def record(self, size: int) -> None:
        """`size` bytes are transferred now."""
        if self.is_unlimited:
            return
        now = self._clock.monotonic()
        if self._samples and now < self._samples[-1][0] + self._window_seconds:
            begin, recorded = self._samples.pop()
            self._samples.append((begin, recorded + size))
        else:
            self._samples.append((now, size))

    def throttle_seconds(self) -> float:
        """How long to wait until the average is back at the limit; 0 if there is room now."""
        if self.is_unlimited or not self._samples:
            return 0.0
        now = self._clock.monotonic()
        oldest = now - self._windows * self._window_seconds
        while self._samples and self._samples[0][0] <= oldest:
            self._samples.popleft()
        if not self._samples:
            return 0.0
        total = sum(recorded for _, recorded in self._samples)
        least = max(self._windows - 1, 1) * self._window_seconds
        elapsed = max(now - self._samples[0][0], least)
        # The average falls as time passes: wait until `total` spread over the whole time is no more than the limit,
        # or the oldest window is forgotten, whichever comes first.
        wait = min(total / self._limit - elapsed, self._samples[0][0] - oldest)
        return wait if wait >= _SHORTEST_WAIT_S else 0.0

    async def wait_for_room(self, size: int) -> float:
        """Wait until there is room, then record `size` bytes. Returns the seconds waited. First come, first served."""
        if self.is_unlimited:
            return 0.0
        started = self._clock.monotonic()
        async with self._turns:
            while (pause := self.throttle_seconds()) > 0:
                await self._clock.sleep(pause)
            self.record(size)
        return self._clock.monotonic() - started
