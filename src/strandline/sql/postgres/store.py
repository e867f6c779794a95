"""PostgreSQL through asyncpg: two small pools for transactions, one more connection for locks and notifications."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from typing import Any, Final, TypeVar

import asyncpg  # type: ignore[import-untyped]

from strandline.clock import Clock
from strandline.sql.dialect import POSTGRESQL, Dialect
from strandline.sql.errors import IntegrityViolation, MigrationBlocked, SqlError, StoreUnavailable, TransactionConflict
from strandline.sql.migrations import (
    ADD_TO_HISTORY,
    CREATE_HISTORY,
    READ_HISTORY,
    check_current,
    load_migrations,
    pending,
)
from strandline.sql.postgres.address import role_of, server_of
from strandline.sql.postgres.errors import DRIVER_ERRORS, connecting, translated
from strandline.sql.postgres.session import TRANSACTIONS, Session
from strandline.sql.store import Holders, OnNotification, Row, Transaction, Work

logger = logging.getLogger(__name__)

MIGRATION_LOCK: Final = 7_305_810_221  # any constant: the broker that holds it may migrate
_SILENT_PART: Final = 3
_SILENT_S: Final = 1.0  # at least: a busy process needs some time between two statements
_POOL_SIZE: Final = 6
_ATTEMPTS: Final = 3  # of a transaction that the database aborts in favour of another one

T = TypeVar("T")


class _PostgresTransaction:
    def __init__(self, connection: Any, server: str) -> None:
        self._connection, self._server = connection, server
        self.channels: set[str] = set()

    async def execute(self, statement: str, *args: object) -> int:
        with translated(self._server):
            status: str = await self._connection.execute(POSTGRESQL.render(statement), *args)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with translated(self._server):
            await self._connection.executemany(POSTGRESQL.render(statement), rows)

    async def fetch(self, statement: str, *args: object) -> list[Row]:
        with translated(self._server):
            return [tuple(row) for row in await self._connection.fetch(POSTGRESQL.render(statement), *args)]

    async def fetch_one(self, statement: str, *args: object) -> Row | None:
        with translated(self._server):
            row = await self._connection.fetchrow(POSTGRESQL.render(statement), *args)
        return None if row is None else tuple(row)

    async def limit_silence(self, seconds: float) -> None:
        with translated(self._server):
            milliseconds = int(seconds * 1000)
            await self._connection.execute(f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds}")

    def notify(self, channel: str) -> None:
        self.channels.add(channel)


class PostgresStore:
    """See SqlStore. Opened by `open_store`."""

    def __init__(self, url: str, *, session_id: str, deadline: float, clock: Clock, read_only: bool = False) -> None:
        self._url, self._session_id, self._deadline = url, session_id, deadline
        self._read_only = read_only
        self._server = server_of(url)
        self._pool: Any = None
        self._pool_apart: Any = None
        # A process that is suspended in the middle of a transaction loses its locks before transactions that wait for
        # them give up.
        self._silent_s = max(deadline / _SILENT_PART, _SILENT_S)
        self._session = Session(url, self._server, clock=clock, within=deadline, silent_s=self._silent_s)

    async def open(self) -> None:
        """Connect and bring the schema up to date, waiting for another broker that is doing so."""
        try:
            with connecting(self._server):
                self._pool, self._pool_apart = await self._new_pool(), await self._new_pool()
                connection = await self._pool.acquire(timeout=self._deadline)
            with translated(self._server):
                await (_check_schema(connection) if self._read_only else _migrate(connection, self._server))
                await self._pool.release(connection)
        except BaseException:
            await self.close()
            raise

    async def _new_pool(self) -> Any:
        """A pool that opens its connections when they are needed."""
        return await asyncpg.create_pool(
            self._url,
            min_size=0,
            max_size=_POOL_SIZE,
            timeout=self._deadline,
            server_settings=self._settings(),
            reset=_leave_as_it_is,
            target_session_attrs=None if self._read_only else role_of(self._url),
        )

    def _settings(self) -> dict[str, str]:
        milliseconds = str(int(self._deadline * 1000))
        return {
            "application_name": TRANSACTIONS,
            "idle_in_transaction_session_timeout": str(int(1000 * self._silent_s)),
            # By then its caller has closed the connection, which the server does not notice while a statement waits for
            # a lock: connections would pile up. The second is for COMMIT, which waits for the lock of NOTIFY. Neither
            # ends a COMMIT that waits for a synchronous standby.
            "statement_timeout": milliseconds,
            "lock_timeout": milliseconds,
            # Every statement finds its rows by a key, whatever the arguments: planning or compiling it for each call
            # takes longer than running it.
            "plan_cache_mode": "force_generic_plan",
            "jit": "off",
            **({"default_transaction_read_only": "on"} if self._read_only else {}),
        }

    @property
    def is_exclusive(self) -> bool:
        return False

    @property
    def session_id(self) -> str:
        return self._session_id

    @property
    def dialect(self) -> Dialect:
        return POSTGRESQL

    @asynccontextmanager
    async def _connection(self, within: float | None) -> AsyncIterator[Any]:
        """A connection of the pool. The block raises StoreUnavailable when it takes longer than `within`."""
        scope = asyncio.timeout(self._deadline if within is None else within)
        pool = self._pool
        if pool is None:
            raise StoreUnavailable("The connection to PostgreSQL is closed.")
        try:
            async with scope:
                with connecting(self._server):
                    connection = await pool.acquire()
                try:
                    yield connection
                except (TransactionConflict, IntegrityViolation):
                    raise
                except SqlError:
                    # The session may be the reason: opened while the server was a standby or read-only, or with
                    # settings that have been changed since. A new one sees the database as it is now.
                    _drop(connection)
                    raise
                finally:
                    with suppress(*DRIVER_ERRORS):  # lost after its work was done: the pool opens another
                        await pool.release(connection)
        except TimeoutError as error:
            if scope.expired():
                raise StoreUnavailable(f"PostgreSQL at {self._server} did not finish a transaction in time.") from error
            raise

    @asynccontextmanager
    async def transaction(self, *, within: float | None = None) -> AsyncIterator[Transaction]:
        async with self._connection(within) as connection, _transaction(connection, self._server) as transaction:
            yield transaction

    async def transact(self, work: Work[T], *, within: float | None = None) -> T:
        for _ in range(_ATTEMPTS - 1):
            with suppress(TransactionConflict):
                async with self.transaction(within=within) as transaction:
                    return await work(transaction)
        async with self.transaction(within=within) as transaction:
            return await work(transaction)

    async def read(self, work: Work[T], *, within: float | None = None) -> T:
        async with self._connection(within) as connection:
            reading = _PostgresTransaction(connection, self._server)
            try:
                return await work(reading)  # without BEGIN and COMMIT: two round trips less
            except asyncio.CancelledError:
                _drop(connection)  # do not wait until the server has cancelled the query
                raise

    def listen(self, channel: str, wake: OnNotification) -> Callable[[], None]:
        return self._session.listen(channel, wake)

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        await self._session.hold(name)
        try:
            yield
        finally:
            await self._session.let_go(name)

    async def holders(self, names: Sequence[str]) -> Holders:
        return await self._session.holders(names)

    def apart(self) -> PostgresStore:
        other = copy(self)
        other._pool = self._pool_apart
        return other

    async def close(self) -> None:
        await self._session.close()
        pools, self._pool, self._pool_apart = (self._pool, self._pool_apart), None, None
        for pool in filter(None, pools):
            pool.terminate()


async def _leave_as_it_is(_connection: Any) -> None:
    """Our transactions leave no state in the session: the usual reset would cost a round trip each time."""


@asynccontextmanager
async def _transaction(connection: Any, server: str) -> AsyncIterator[_PostgresTransaction]:
    """Begin, and commit or roll back. A cancelled caller does not wait for the server: the connection is closed."""
    transaction = _PostgresTransaction(connection, server)
    try:
        with translated(server):
            await connection.execute("BEGIN")
        yield transaction
        with translated(server):
            await connection.execute("".join(f'NOTIFY "{channel}"; ' for channel in transaction.channels) + "COMMIT")
    except Exception:
        try:
            await connection.execute("ROLLBACK")
        except DRIVER_ERRORS:  # a lost connection has rolled back; one in an unknown state is not reused
            _drop(connection)
        except BaseException:
            _drop(connection)
            raise
        raise
    except BaseException:
        _drop(connection)
        raise


def _drop(connection: Any) -> None:
    """Close the connection without waiting for the server; the pool opens another."""
    with suppress(*DRIVER_ERRORS):
        connection.terminate()


async def _migrate(connection: Any, server: str) -> None:
    known = load_migrations(POSTGRESQL.name)
    async with connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
        await connection.execute(CREATE_HISTORY)
        history = [tuple(row) for row in await connection.fetch(READ_HISTORY)]
        for step in pending(known, history):
            logger.info("applying schema migration V%03d__%s", step.version, step.name)
            try:
                await connection.execute(step.script)
            except asyncpg.LockNotAvailableError as error:
                raise MigrationBlocked(
                    f"PostgreSQL at {server} answers 55P03 to the schema migration V{step.version:03}__{step.name}: "
                    "another transaction, of a backup for instance, uses a table that it changes. Nothing was changed. "
                    "Start the broker again when that transaction has ended."
                ) from error
            await connection.execute(POSTGRESQL.render(ADD_TO_HISTORY), step.version, step.name, step.checksum)


async def _check_schema(connection: Any) -> None:
    check_current(load_migrations(POSTGRESQL.name), [tuple(row) for row in await connection.fetch(READ_HISTORY)])
