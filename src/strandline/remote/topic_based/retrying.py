"""Retries of reads of the metadata topic: growing pauses, and few log lines."""

from __future__ import annotations

import logging
from typing import Final

from strandline.clock import Clock
from strandline.remote.topic_based.limits import MetadataLimits

logger = logging.getLogger(__name__)

_LONGEST_PAUSE: Final = 5.0
# Shorter failures are not logged: the leader moves, perhaps because this broker is stopping.
_QUIET_SECONDS: Final = 1.0


class TopicRetries:
    """Consecutive failures of one metadata partition."""

    def __init__(self, name: str, limits: MetadataLimits, clock: Clock) -> None:
        self.last_error: str | None = None
        """Why it fails at the moment; None if it does not."""
        self._name, self._limits, self._clock = name, limits, clock
        self._pause = limits.retry_interval
        self._failing_since = 0.0
        self._log_at = 0.0
        self._level = logging.WARNING

    async def pause(self, error: Exception) -> None:
        """Wait before the next attempt. Logs a warning after a second, then errors at long intervals."""
        now = self._clock.monotonic()
        if self.last_error is None:
            self._failing_since, self._log_at, self._level = now, now + _QUIET_SECONDS, logging.WARNING
        elif now >= self._log_at:
            seconds = now - self._failing_since
            logger.log(self._level, "%s cannot be read for %.0f s, trying again: %s", self._name, seconds, error)
            self._log_at, self._level = now + self._limits.retry_max_timeout, logging.ERROR
        self.last_error = str(error)
        await self._clock.sleep(self._pause)
        self._pause = min(2 * self._pause, max(_LONGEST_PAUSE, self._limits.retry_interval))

    def succeeded(self) -> None:
        """The next failure is a first one again."""
        self.last_error = None
        self._pause = self._limits.retry_interval
