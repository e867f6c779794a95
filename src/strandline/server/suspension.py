"""Holds requests back when this process did not run for a while, until the broker knows again what it is.

A process that was suspended goes on as if no time had passed, and leads what it led, for its own part. Meanwhile the
controller may have fenced it and other brokers may lead: it would acknowledge records that nobody keeps, and answer
reads from a log that is not the partition's any more. So after a gap of half a session, nothing more is read from
clients until a heartbeat was answered and everything is followed that the controller had decided by then.

A broker that reaches no controller for a whole session goes on all the same. What it leads may have no other leader,
and brokers go on without the database and without a controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from strandline.clock import Clock, within
from strandline.errors import StrandlineError

logger = logging.getLogger(__name__)

_TICKS: Final = 4  # in half a session: what is told apart from a gap is less than that by one of them


class HeldRequests(Protocol):
    """The server, as the watch uses it."""

    awake_until: float
    """The server finds that the process was suspended when it receives something after this time of the loop."""

    def hold_requests(self) -> None:
        """Serve no further request, and set the event that the watch waits for."""

    def serve_again(self) -> None:
        """Serve what was held back."""


class SuspensionWatch:
    """Notes that the process runs, a few times in half a session, and clears up what happened when it did not."""

    def __init__(
        self,
        server: HeldRequests,
        suspended: asyncio.Event,
        confirm: Callable[[], Coroutine[Any, Any, None]],
        clock: Clock,
        now: Callable[[], float],
        *,
        session_seconds: float,
    ) -> None:
        """`suspended` is set by the server; `confirm` is `BrokerLifecycle.confirm`; `now` is the time of the loop."""
        self._server, self._suspended, self._confirm = server, suspended, confirm
        self._clock, self._now = clock, now
        self._gap, self._patience = session_seconds / 2, session_seconds

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            self._server.awake_until = self._now() + self._gap
            await self._clock.wait_set(self._suspended, within=self._gap / _TICKS)
            if self._now() > self._server.awake_until:
                self._server.hold_requests()
            if self._suspended.is_set():
                await self._clear_up()

    async def _clear_up(self) -> None:
        logger.warning("this process did not run for a while: requests wait until the controller was asked")
        try:
            while not await self._is_confirmed():
                logger.warning("this process did not run for a while once more: the controller is asked again")
        except TimeoutError:
            logger.warning("no controller was reached for %g s: the broker goes on with what it knew", self._patience)
        except StrandlineError as error:
            logger.warning("requests are not served any more: %s", error)  # the broker is about to stop
            await self._clock.sleep(self._gap / _TICKS)  # until then the answer is the same, again and again
            return
        self._suspended.clear()
        self._server.serve_again()

    async def _is_confirmed(self) -> bool:
        """Ask the controller. False if this process was suspended again meanwhile: the answer may be from before that.

        Raises TimeoutError or StrandlineError.
        """
        over = asyncio.Event()
        asking = asyncio.ensure_future(within(self._clock, self._patience, self._confirm()))
        asking.add_done_callback(lambda _: over.set())
        try:
            while not over.is_set():
                at = self._now()
                await self._clock.wait_set(over, within=self._gap / _TICKS)
                if self._now() - at > self._gap:
                    return False
            await asking
            return True
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
