"""Figures that only the control plane knows, for monitoring: a few seconds old at most, without a long wait.

The control plane is asked only when a caller needs the figures and they are not fresh any more. A caller waits for half
a second at most; if the answer takes longer, it gets the figures of the last time. Questions that take long are asked
more rarely, so that monitoring does not slow down a busy database.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.tasks import TaskSet

logger = logging.getLogger(__name__)

T = TypeVar("T")
PATIENCE_SECONDS: Final = 0.5
_WARNING_SECONDS: Final = 60.0
_REST: Final = 50
"""After a question that took a second there is none for this many seconds."""


class Refreshing(Generic[T]):
    """A value as it was asked for last. Lives on the event loop."""

    def __init__(
        self, ask: Callable[[], Awaitable[T]], first: T, *, what: str, fresh_seconds: float, clock: Clock
    ) -> None:
        """`ask` may raise StrandlineError, which is logged: "`what` in /metrics are outdated"."""
        self._ask, self._what, self._fresh_s, self._clock = ask, what, fresh_seconds, clock
        self.known = first
        self._ask_again_at = clock.monotonic()
        self._warned_at = clock.monotonic() - _WARNING_SECONDS
        self._asking: asyncio.Task[None] | None = None
        self._tasks = TaskSet()

    async def refresh(self) -> None:
        """Ask, unless that was done just now. Returns after half a second in any case. Never raises."""
        if self._asking is None:
            if self._clock.monotonic() < self._ask_again_at:
                return
            self._asking = self._tasks.start(self._ask_now(), name="figures")
        await asyncio.wait((self._asking,), timeout=PATIENCE_SECONDS)

    async def _ask_now(self) -> None:
        began = self._clock.monotonic()
        try:
            self.known = await self._ask()
            now = self._clock.monotonic()
            self._ask_again_at = now + max(self._fresh_s, _REST * (now - began))
        except StrandlineError as error:
            now = self._clock.monotonic()
            if now - self._warned_at >= _WARNING_SECONDS:
                self._warned_at = now
                logger.warning("%s in /metrics are outdated: %s", self._what, error)
        finally:
            self._asking = None

    async def close(self) -> None:
        """Ask nothing more."""
        await self._tasks.close()
