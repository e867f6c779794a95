"""The one connection of a broker that stays open: it hears notifications and holds session-level locks.

When it is lost it is made again, the names are taken again, and every listener is woken because a notification may
have been missed.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]

from strandline.clock import Clock
from strandline.sql.errors import StoreInUse
from strandline.sql.notifications import Listeners
from strandline.sql.store import OnNotification

_log = logging.getLogger(__name__)

_LOCK_SPACE: Final = 0x5374_7264  # first half of our advisory lock numbers
_RETRY_SECONDS: Final = 0.5


def _lock_number(name: str) -> int:
    return zlib.crc32(name.encode()) - (1 << 31)


class Session:
    """Connects at first use; afterwards keeps itself connected until closed."""

    def __init__(self, url: str, *, clock: Clock, connect_within: float) -> None:
        self._url, self._clock, self._connect_within = url, clock, connect_within
        self._listeners = Listeners()
        self._held: list[str] = []
        self._connection: Any = None
        self._lost = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    def listen(self, channel: str, wake: OnNotification) -> Callable[[], None]:
        """See SqlStore.listen."""
        known = channel in self._listeners.channels()
        remove = self._listeners.add(channel, wake)
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="postgres-session")
        elif not known:
            self._lost.set()  # connect again, with the new channel
        return remove

    async def hold(self, name: str) -> None:
        """See SqlStore.hold."""
        if self._connection is None:
            await self._connect()
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="postgres-session")
        await self._take(self._connection, name)
        self._held.append(name)

    async def _take(self, connection: Any, name: str) -> None:
        if not await connection.fetchval("SELECT pg_try_advisory_lock($1, $2)", _LOCK_SPACE, _lock_number(name)):
            raise StoreInUse(f"Another {name} is connected to this database.")

    async def _connect(self) -> None:
        connection = await asyncpg.connect(
            self._url,
            timeout=self._connect_within,
            command_timeout=self._connect_within,
            # Locks of a machine that vanished without a word are freed after these seconds.
            server_settings={
                "application_name": "strandline-session",
                "tcp_keepalives_idle": "5",
                "tcp_keepalives_interval": "2",
                "tcp_keepalives_count": "3",
            },
        )
        self._lost.clear()
        connection.add_termination_listener(lambda _: self._lost.set())
        self._connection = connection

    async def _resume(self) -> None:
        """Listen again and take the names again on a fresh connection."""
        for name in self._held:
            await self._take(self._connection, name)
        for channel in self._listeners.channels():
            await self._connection.add_listener(channel, self._heard)
        self._listeners.wake(self._listeners.channels())

    def _heard(self, _connection: object, _pid: int, channel: str, _payload: object) -> None:
        self._listeners.wake((channel,))

    async def _keep(self) -> None:
        while True:
            try:
                if self._connection is None:
                    await self._connect()
                await self._resume()
                await self._lost.wait()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, StoreInUse) as error:
                _log.warning("the PostgreSQL session is not available, trying again: %s", error)
                await self._clock.sleep(_RETRY_SECONDS)
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        """Let go of everything."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        self._drop()
