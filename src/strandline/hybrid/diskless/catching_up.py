"""Work that is done again whenever there may be something to do, until it succeeds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from strandline.clock import Clock
from strandline.objects import ObjectStoreError
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 30.0
_STEP_S: Final = 0.25


class CatchingUp:
    """Calls `catch_up` after each `wake`, and without one after the time that `look_again_s` gives.

    A failure of the database or the object store is logged, and `catch_up` is called again after a pause that grows.
    """

    def __init__(
        self, catch_up: Callable[[], Awaitable[None]], *, what: str, look_again_s: Callable[[], float], clock: Clock
    ) -> None:
        self._catch_up, self._what, self._look_again_s, self._clock = catch_up, what, look_again_s, clock
        self._wake = asyncio.Event()
        self._is_stopping = False
        self.trouble = ""
        """The last failure."""
        self._first_attempt = asyncio.Event()

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    def stop(self) -> None:
        """End `run` when the attempt under way is over."""
        self._is_stopping = True
        self._wake.set()

    async def first_attempt(self, *, within: float) -> None:
        """Return when the first attempt is over, successful or not, or after `within` seconds."""
        await self._clock.wait_set(self._first_attempt, within=within)

    async def run(self) -> None:
        """Work until `stop`."""
        pause = _FIRST_PAUSE_S
        while True:
            await self._clock.wait_set(self._wake, within=self._look_again_s())
            self._wake.clear()
            if self._is_stopping:
                return
            try:
                await self._catch_up()
            except (SqlError, ObjectStoreError, OSError) as error:
                self.trouble = str(error)
                logger.warning("%s, trying again in %g s: %s", self._what, pause, error)
                self._wake.set()
                self._first_attempt.set()
                await self._rest(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            else:
                self._first_attempt.set()
                pause = _FIRST_PAUSE_S

    async def _rest(self, seconds: float) -> None:
        """Wait, unless the broker stops."""
        deadline = self._clock.monotonic() + seconds
        while not self._is_stopping and (left := deadline - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(left, _STEP_S))
