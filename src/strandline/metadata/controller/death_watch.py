"""Looks whether the processes of other brokers live: the controller fences brokers whose process has ended, and the
others wait for the end of the controller's.

Every broker that shares its database with others looks. A look is one statement, whatever the number of brokers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol
from uuid import UUID

from strandline.clock import Clock
from strandline.metadata.controller.deaths import CONFIRM_SECONDS, Deaths, LocksSeen, Sign
from strandline.metadata.controller.leadership import broker_name, process_name
from strandline.metadata.controller.listening import ListeningTime
from strandline.sql import SqlError, SqlStore
from strandline.tasks import Setbacks

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.3  # with the second look, a death is seen within half a second


class Inquiry(Protocol):
    """Asks a broker whether it lives."""

    async def ask(self, node_id: int) -> Sign:
        """What came of it, in a fraction of a second."""


class DeathWatch:
    """See `deaths` for the rule. Nothing is watched over a store that only one process can open."""

    def __init__(
        self,
        sql: SqlStore,
        inquiry: Inquiry,
        clock: Clock,
        listening: ListeningTime,
        *,
        watched: Callable[[], Mapping[UUID, int]],
        heard: Callable[[int, float], bool],
        session_seconds: float,
    ) -> None:
        """`watched`: the processes of other brokers that matter now, and the ids of these brokers. `heard`: whether
        a heartbeat of a broker came since a moment, by `listening`.
        """
        self._sql, self._inquiry, self._clock, self._listening = sql, inquiry, clock, listening
        self._watched, self._heard = watched, heard
        self._deaths = Deaths(session_seconds)

    @property
    def dead(self) -> frozenset[UUID]:
        """Processes that are watched and have ended."""
        return self._deaths.dead

    async def look(self) -> None:
        """One look, and questions to those that may have ended. Raises SqlError, and then begins anew."""
        watched = self._watched()
        if not watched:
            self._deaths.nothing_seen()
            return
        named = {process: broker_name(node_id) for process, node_id in watched.items()}
        own = {process: process_name(process) for process in watched}
        try:
            holders = await self._sql.holders([*own.values(), *named.values()])
        except SqlError:
            self._deaths.nothing_seen()
            raise
        held = holders.sessions
        look = LocksSeen(
            view=holders.view,
            alive={process for process, name in own.items() if name in held},
            named={process for process, name in named.items() if name in held},
        )
        self._deaths.looked(self._listening.now(), look, watched, self._heard)
        suspects = self._deaths.suspects
        signs = await asyncio.gather(*(self._inquiry.ask(watched[process]) for process in suspects))
        for process, sign in zip(suspects, signs, strict=True):
            self._deaths.asked(process, sign)

    async def is_process_of(self, node_id: int, incarnation_id: UUID) -> bool:
        """True if this process has the name of the broker now: every earlier process of it has ended, or lost it."""
        names = process_name(incarnation_id), broker_name(node_id)
        try:
            sessions = (await self._sql.holders(names)).sessions
        except SqlError as error:
            logger.debug("it cannot be seen which process is broker %d: %s", node_id, error)
            return False
        process, broker = (sessions.get(name) for name in names)
        return process is not None and process == broker

    async def run(self, on_look: Callable[[], None]) -> None:
        """Look until cancelled, and call `on_look` after each look."""
        if self._sql.is_exclusive:
            return
        setbacks = Setbacks("looking whether other brokers live", logger)
        while True:
            await self._clock.sleep(CONFIRM_SECONDS if self._deaths.suspects else LOOK_SECONDS)
            try:
                await self.look()
            except SqlError as error:
                setbacks.met(error)
            else:
                setbacks.over()
                on_look()
