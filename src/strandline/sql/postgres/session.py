"""The one connection of a broker that stays open: it receives notifications and holds session-level locks.

When it is lost it is opened again, the locks are taken again, and every listener is woken because a notification may
have been missed. It is asked now and then whether it still leads to the primary: after a failover the old server may go
on as a standby, which hears of no commit and whose locks protect nothing. And it ends transactions of brokers that were
suspended in the middle of a statement, which no setting of the server does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]

from strandline.clock import Clock
from strandline.sql.errors import SqlError, StoreInUse, StoreUnavailable
from strandline.sql.notifications import Listeners
from strandline.sql.postgres.address import role_of
from strandline.sql.postgres.errors import DRIVER_ERRORS, connecting, translated
from strandline.sql.store import Holders, OnNotification
from strandline.tasks import Setbacks

logger = logging.getLogger(__name__)

_LOCK_SPACE: Final = 0x5374_7264  # first half of our advisory lock numbers
_HOLDERS: Final = """
    SELECT objid::bigint, pid FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND classid::bigint = $1 AND objid::bigint = ANY($2::bigint[])
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# The driver prepares a statement in one message and runs it with the next. Until that arrives, the server neither takes
# the session for idle nor ends the statement when its time is over, and keeps the locks of the transaction.
# `state_change` is by the server's own clock, also where the database has a function that hides it.
_END_SILENT: Final = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name = $1
      AND state = 'active' AND wait_event = 'ClientRead' AND xact_start IS NOT NULL
      AND state_change < pg_catalog.clock_timestamp() - $2::float8 * INTERVAL '1 second'
"""
_RETRY_SECONDS: Final = 0.5
_LONGEST_RETRY_SECONDS: Final = 4.0
_CHECK_SECONDS: Final = 2.0
TRANSACTIONS: Final = "strandline"
"""The application name of connections for transactions."""
_SETTINGS: Final = {
    "application_name": "strandline-session",
    # The locks of a machine that lost power are freed when these keepalives fail, after about eleven seconds.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}


def _lock_number(name: str) -> int:
    return zlib.crc32(name.encode()) - (1 << 31)


class Session:
    """Connects at first use; afterwards keeps itself connected until closed."""

    def __init__(self, url: str, server: str, *, clock: Clock, within: float, silent_s: float) -> None:
        """`silent_s`: a transaction whose process says nothing for so long is ended."""
        self._url, self._server, self._clock, self._within = url, server, clock, within
        self._silent_s = silent_s
        self._listeners = Listeners()
        self._listening: set[str] = set()
        self._held: dict[str, None] = {}
        """In the order in which they were taken, which is the order in which they are taken again."""
        self._renewals = 0
        self._connection: Any = None
        self._turn = asyncio.Lock()  # a connection runs one statement at a time
        self._wake = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    def listen(self, channel: str, wake: OnNotification) -> Callable[[], None]:
        """See SqlStore.listen."""
        remove = self._listeners.add(channel, wake)
        self._start_keeper()
        self._wake.set()
        return remove

    async def hold(self, name: str) -> None:
        """Take the lock `name`: the first half of SqlStore.hold."""
        if name in self._held:  # PostgreSQL lets a session take a lock that it holds
            raise StoreInUse(f"Another {name} runs in this process.")
        async with self._turn:
            await self._ensure_connected()
            with translated(self._server):
                await self._take(self._connection, name)
            self._held[name] = None
        self._start_keeper()

    async def let_go(self, name: str) -> None:
        """Release the lock `name`: the second half of SqlStore.hold. A lost connection has released it already."""
        self._held.pop(name, None)
        async with self._turn:
            if self._connection is not None:
                with contextlib.suppress(*DRIVER_ERRORS):
                    await self._connection.execute("SELECT pg_advisory_unlock($1, $2)", _LOCK_SPACE, _lock_number(name))

    async def holders(self, names: Sequence[str]) -> Holders:
        """See SqlStore.holders. Asked by the session that holds our own locks: where it leads is where they protect."""
        by_number = {
            _lock_number(name) & 0xFFFF_FFFF: name for name in names
        }  # signed when taken, unsigned in the view
        async with self._turn:
            await self._ensure_connected()
            with translated(self._server):
                rows = await self._connection.fetch(_HOLDERS, _LOCK_SPACE, list(by_number))
            view = self._renewals
        self._start_keeper()
        return Holders(view, {by_number[number]: pid for number, pid in rows})

    async def _take(self, connection: Any, name: str) -> None:
        if not await connection.fetchval("SELECT pg_try_advisory_lock($1, $2)", _LOCK_SPACE, _lock_number(name)):
            raise StoreInUse(f"Another {name} is connected to this database.")

    async def _ensure_connected(self) -> None:
        if self._connection is not None and not self._connection.is_closed():
            return
        self._drop()
        with connecting(self._server):
            connection = await asyncpg.connect(
                self._url,
                timeout=self._within,
                command_timeout=self._within,
                server_settings=_SETTINGS,
                target_session_attrs=role_of(self._url),
            )
        try:
            with translated(self._server):
                for name in self._held:
                    await self._take(connection, name)
        except BaseException:
            connection.terminate()
            raise
        connection.add_termination_listener(lambda _: self._wake.set())
        self._connection = connection
        self._renewals += 1

    async def _ensure_listening(self) -> None:
        fresh = self._listeners.channels() - self._listening
        with translated(self._server):
            for channel in fresh:
                await self._connection.add_listener(channel, self._heard)
                self._listening.add(channel)
        self._listeners.wake(fresh)  # notifications from before were not received

    async def _ensure_primary(self) -> None:
        with translated(self._server):
            is_standby = await self._connection.fetchval("SELECT pg_is_in_recovery()")
        if is_standby:
            raise StoreUnavailable(f"PostgreSQL at {self._server} is a standby, which takes no writes.")

    async def _end_silent(self) -> None:
        with translated(self._server):
            ended = await self._connection.fetch(_END_SILENT, TRANSACTIONS, self._silent_s)
        if ended:
            logger.warning(
                "%d transactions of brokers that said nothing for %g s in the middle of a statement were ended: others "
                "may have waited for their locks",
                len(ended),
                self._silent_s,
            )

    def _heard(self, _connection: object, _pid: int, channel: str, _payload: object) -> None:
        self._listeners.wake((channel,))

    def _start_keeper(self) -> None:
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="postgres-session")

    async def _keep(self) -> None:
        setbacks = Setbacks("the session for notifications and locks", logger)
        pause = _RETRY_SECONDS
        while True:
            self._wake.clear()
            try:
                async with self._turn:
                    await self._ensure_connected()
                    await self._ensure_primary()
                    await self._ensure_listening()
                    await self._end_silent()
            except SqlError as error:
                setbacks.met(error)
                self._drop()
                await self._clock.sleep(pause)
                pause = min(2 * pause, _LONGEST_RETRY_SECONDS)
            else:
                setbacks.over()
                pause = _RETRY_SECONDS
                await self._clock.wait_set(self._wake, within=_CHECK_SECONDS)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self._listening.clear()
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        """Close the connection, which releases all locks."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        self._drop()
