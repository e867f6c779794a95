"""How to go on after a failure of the metadata topic: wait a little, longer each time, and do not fill the log."""

from __future__ import annotations

import logging
from typing import Final

from strandline.clock import Clock
from strandline.remote.topic_based.limits import MetadataLimits

logger = logging.getLogger(__name__)

_LONGEST_PAUSE: Final = 5.0
# A leader that moves is no trouble, and neither is one that moves because this broker is stopping.
_TROUBLE_SECONDS: Final = 1.0


class TopicRetries:
    """Failures in a row of one thing."""

    def __init__(self, name: str, limits: MetadataLimits, clock: Clock) -> None:
        self.last_error: str | None = None
        """Why it fails at the moment."""
        self._name, self._limits, self._clock = name, limits, clock
        self._pause = limits.retry_interval
        self._failing_since = 0.0
        self._tell_at = 0.0
        self._level = logging.WARNING

    async def pause(self, error: Exception) -> None:
        """It failed: wait before the next attempt. One line after a second, others when it lasts too long."""
        now = self._clock.monotonic()
        if self.last_error is None:
            self._failing_since, self._tell_at, self._level = now, now + _TROUBLE_SECONDS, logging.WARNING
        elif now >= self._tell_at:
            seconds = now - self._failing_since
            logger.log(self._level, "%s cannot be read for %.0f s, trying again: %s", self._name, seconds, error)
            self._tell_at, self._level = now + self._limits.retry_max_timeout, logging.ERROR
        self.last_error = str(error)
        await self._clock.sleep(self._pause)
        self._pause = min(2 * self._pause, max(_LONGEST_PAUSE, self._limits.retry_interval))

    def succeeded(self) -> None:
        """The next failure is the first again."""
        self.last_error = None
        self._pause = self._limits.retry_interval
