"""How to go on after a failure of the metadata topic: wait a little, longer each time, and do not fill the log."""

from __future__ import annotations

import logging
from typing import Final

from strandline.clock import Clock
from strandline.remote.topic_based.limits import MetadataLimits

logger = logging.getLogger(__name__)

_LONGEST_PAUSE: Final = 5.0


class Patience:
    """Failures in a row of one thing."""

    def __init__(self, name: str, limits: MetadataLimits, clock: Clock) -> None:
        self.last_error: str | None = None
        """Why it fails at the moment."""
        self._name, self._limits, self._clock = name, limits, clock
        self._pause = limits.retry_interval
        self._told_at = 0.0

    async def pause(self, error: Exception) -> None:
        """It failed: wait before the next attempt. One line in the log now, and one when it has lasted too long."""
        now = self._clock.monotonic()
        if self.last_error is None:
            logger.warning("%s cannot be read, trying again: %s", self._name, error)
            self._told_at = now
        elif now - self._told_at >= self._limits.retry_max_timeout:
            logger.error("%s still cannot be read: %s", self._name, error)
            self._told_at = now
        self.last_error = str(error)
        await self._clock.sleep(self._pause)
        self._pause = min(2 * self._pause, max(_LONGEST_PAUSE, self._limits.retry_interval))

    def succeeded(self) -> None:
        """The next failure is the first again."""
        self.last_error = None
        self._pause = self._limits.retry_interval
