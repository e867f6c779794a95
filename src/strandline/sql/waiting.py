"""Waits at the start of a broker for a database that is not there yet.

Machines that start together, and services that are restarted together, come up in any order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from strandline.clock import Clock, Ids
from strandline.sql.errors import MigrationBlocked, StoreUnavailable
from strandline.sql.watched import WatchedStore, open_watched_store

logger = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 5.0


class WaitGivenUp(Exception):
    """The broker was told to stop while it waited for the database."""


@asynccontextmanager
async def open_when_there(
    url: str, *, within: float, stop: asyncio.Event, clock: Clock, ids: Ids
) -> AsyncIterator[WatchedStore]:
    """As `open_watched_store`, after waiting up to `within` seconds for a database that cannot be reached.

    Each failure is in the log, with the time that is left. What only an operator can change, a wrong password for
    instance, ends the wait at once. Raises WaitGivenUp when `stop` is set meanwhile.
    """
    async with AsyncExitStack() as stack:
        ends_at, pause = clock.monotonic() + within, _FIRST_PAUSE_S
        while True:
            try:
                store = await stack.enter_async_context(open_watched_store(url, clock=clock, ids=ids))
                break
            except MigrationBlocked:
                raise  # each attempt would hold up transactions that use the table
            except StoreUnavailable as error:
                left = ends_at - clock.monotonic()
                if not within:
                    raise
                if left <= 0:
                    raise StoreUnavailable(
                        f"{error} The broker has waited for it for {within:g} seconds (strandline.metadata.wait.ms)."
                    ) from error
                logger.warning("waiting for the database, for %.0f more seconds at most: %s", left, error)
                if await clock.wait_set(stop, within=min(pause, left)):
                    raise WaitGivenUp from error
                pause = min(2 * pause, _LONGEST_PAUSE_S)
        yield store
