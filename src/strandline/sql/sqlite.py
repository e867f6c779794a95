"""SQLite: one file, one process, one thread that does all the work.

WAL mode with synchronous=FULL: a commit is one fsync of the write-ahead log. A lock file beside the database keeps a
second process out with a clear message, so an opened store proves that every earlier user of it is gone.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from strandline.sql.dialect import SQLITE
from strandline.sql.errors import (
    IntegrityViolation,
    SqlError,
    StoreCorrupt,
    StoreInUse,
    StoreMisconfigured,
    StoreUnavailable,
)
from strandline.sql.migrations import ADD_TO_HISTORY, CREATE_HISTORY, READ_HISTORY, load_migrations, pending
from strandline.sql.notifications import Listeners
from strandline.sql.store import OnNotification, Row, Transaction

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_RETRIABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,  # a disk that is full or away for a while also looks like this
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERRUPT,
    }
)
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_MISCONFIGURED = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
MEMORY = ":memory:"


def translate(error: sqlite3.Error, path: str) -> SqlError:
    """The driver's error in our words."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF  # the low byte is the primary code
    if code in _RETRIABLE:
        return StoreUnavailable(f"The database {path} cannot take the transaction now: {error}.")
    if code in _CORRUPT:
        return StoreCorrupt(f"The database {path} is damaged or is no SQLite database: {error}.")
    if code in _MISCONFIGURED:
        return StoreMisconfigured(f"The database {path} cannot be opened for writing: {error}.")
    if isinstance(error, sqlite3.IntegrityError):
        return IntegrityViolation(str(error))
    return SqlError(f"The database {path} refused a statement: {error}.")


def _lock_file(path: Path) -> IO[str]:
    """Take the lock beside the database, or raise StoreInUse naming the process that has it."""
    lock_path = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(lock_path, "a+", encoding="ascii")  # noqa: SIM115 - held until the store is closed
    except OSError as error:
        raise StoreMisconfigured(f"The database directory {path.parent} cannot be used: {error}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        owner = lock.read().strip()
        lock.close()
        who = "this process" if owner == str(os.getpid()) else f"process {owner}" if owner else "another process"
        raise StoreInUse(
            f"The database {path} is already open in {who}. A SQLite cluster belongs to one broker process: "
            "stop that one, choose another data directory, or use PostgreSQL for several brokers."
        ) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


class _Work:
    """What runs in the store's thread: all use of the connection."""

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("PRAGMA foreign_keys = ON")

    def migrate(self) -> None:
        """Bring the schema up to date, all steps in one transaction."""
        self.begin()
        try:
            self.connection.execute(CREATE_HISTORY)
            history = self.connection.execute(READ_HISTORY).fetchall()
            for step in pending(load_migrations(SQLITE.name), history):
                _log.info("applying schema migration V%03d__%s", step.version, step.name)
                for statement in _split(step.script):
                    self.connection.execute(statement)
                self.execute(SQLITE.render(ADD_TO_HISTORY), (step.version, step.name, step.checksum))
        except BaseException:
            self.rollback()
            raise
        self.commit()

    def begin(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        try:
            self.connection.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def execute(self, statement: str, args: Sequence[object]) -> int:
        return max(0, self.connection.execute(statement, args).rowcount)

    def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        self.connection.executemany(statement, rows)

    def fetch(self, statement: str, args: Sequence[object]) -> list[Row]:
        return self.connection.execute(statement, args).fetchall()


def _split(script: str) -> list[str]:
    """The statements of a script; executescript() would commit in between."""
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements


class _SqliteTransaction:
    def __init__(self, store: SqliteStore, work: _Work) -> None:
        self._store, self._work = store, work
        self.channels: set[str] = set()

    async def execute(self, statement: str, *args: object) -> int:
        return await self._store.run(self._work.execute, SQLITE.render(statement), args)

    async def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        await self._store.run(self._work.execute_many, SQLITE.render(statement), rows)

    async def fetch(self, statement: str, *args: object) -> list[Row]:
        return await self._store.run(self._work.fetch, SQLITE.render(statement), args)

    async def fetch_one(self, statement: str, *args: object) -> Row | None:
        rows = await self.fetch(statement, *args)
        return rows[0] if rows else None

    def notify(self, channel: str) -> None:
        self.channels.add(channel)


class SqliteStore:
    """See SqlStore. Made by `open_sqlite`."""

    def __init__(self, path: str, *, session_id: str, deadline: float) -> None:
        self._path, self._session_id, self._deadline = path, session_id, deadline
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="strandline-sql")
        self._turn = asyncio.Lock()
        self._listeners = Listeners()
        self._held: set[str] = set()
        self._lock: IO[str] | None = None
        self._work: _Work | None = None

    async def open(self) -> None:
        """Take the lock, open the file, bring the schema up to date."""
        if self._path != MEMORY:
            self._lock = _lock_file(Path(self._path))
        try:
            self._work = await self.run(_Work, self._path)
            await self.run(self._work.migrate)
        except BaseException:
            await self.close()
            raise

    @property
    def is_exclusive(self) -> bool:
        return True

    @property
    def session_id(self) -> str:
        return self._session_id

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do `call` in the store's thread. Cancelling the caller does not take it back."""
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.shield(loop.run_in_executor(self._thread, lambda: call(*args, **kwargs)))
        except sqlite3.Error as error:
            raise translate(error, self._path) from error

    @asynccontextmanager
    async def transaction(self, *, within: float | None = None) -> AsyncIterator[Transaction]:
        scope = asyncio.timeout(self._deadline if within is None else within)
        try:
            async with scope, self._turn:
                if self._work is None:
                    raise StoreUnavailable(f"The database {self._path} is closed.")
                transaction = _SqliteTransaction(self, self._work)
                try:
                    await self.run(self._work.begin)
                    yield transaction
                except BaseException:
                    self._work.connection.interrupt()  # a statement still running is of no use any more
                    await self.run(self._work.rollback)
                    raise
                await self._commit(self._work, transaction.channels)
        except TimeoutError as error:
            if scope.expired():
                raise StoreUnavailable(f"The database {self._path} did not finish a transaction in time.") from error
            raise

    async def _commit(self, work: _Work, channels: set[str]) -> None:
        done = asyncio.ensure_future(self.run(work.commit))

        def wake(finished: asyncio.Future[Any]) -> None:
            if not finished.cancelled() and finished.exception() is None:
                self._listeners.wake(channels)

        done.add_done_callback(wake)
        await asyncio.shield(done)

    def listen(self, channel: str, wake: OnNotification) -> Callable[[], None]:
        return self._listeners.add(channel, wake)

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        if name in self._held:
            raise StoreInUse(f"Another {name} runs in this process.")
        self._held.add(name)
        try:
            yield
        finally:
            self._held.discard(name)

    async def close(self) -> None:
        async with self._turn:
            work, self._work = self._work, None
            if work is not None:
                await self.run(work.connection.close)
            self._thread.shutdown(wait=False)
            lock, self._lock = self._lock, None
            if lock is not None:
                lock.close()
