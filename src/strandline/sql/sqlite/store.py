"""SQLite: one file, one process, one thread for all writes, and one thread for reads.

WAL mode with synchronous=FULL: a commit is one fsync of the write-ahead log. A lock file beside the database keeps a
second process out, so a process that has opened the store knows that every earlier user of it is gone. Commands that
only read open it beside such a process: WAL mode gives them a snapshot, and they take no lock that a writer needs.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, ParamSpec, TypeVar

from strandline.sql.dialect import SQLITE, Dialect
from strandline.sql.errors import StoreInUse, StoreMisconfigured, StoreUnavailable
from strandline.sql.notifications import Listeners
from strandline.sql.sqlite.connection import SqliteConnection
from strandline.sql.sqlite.errors import translate
from strandline.sql.store import Holders, OnNotification, Row, Transaction, Work

P = ParamSpec("P")
T = TypeVar("T")

MEMORY = ":memory:"


def _lock_file(path: Path) -> IO[str]:
    """Take the lock file beside the database. Raises StoreInUse, naming the process that holds it."""
    lock_path = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(lock_path, "a+", encoding="ascii")  # noqa: SIM115 - held until the store is closed
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreMisconfigured(
            f"The database {path} cannot be opened: {path.parent} is not a directory. See strandline.metadata.url."
        ) from error
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


class _SqliteTransaction:
    def __init__(self, store: SqliteStore, work: SqliteConnection) -> None:
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

    async def limit_silence(self, seconds: float) -> None:
        """Nothing to do: no other process waits for this one."""

    def notify(self, channel: str) -> None:
        self.channels.add(channel)


class SqliteStore:
    """See SqlStore. Opened by `open_store`."""

    def __init__(self, path: str, *, session_id: str, deadline: float, read_only: bool = False) -> None:
        self._path, self._session_id, self._deadline = path, session_id, deadline
        self._read_only = read_only
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="strandline-sql")
        self._reading_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="strandline-sql-read")
        self._turn = asyncio.Lock()
        self._reading_turn = asyncio.Lock()
        self._listeners = Listeners()
        self._held: set[str] = set()
        self._lock: IO[str] | None = None
        self._work: SqliteConnection | None = None
        self._reading: SqliteConnection | None = None  # opened at first use; never for a store in memory

    async def open(self) -> None:
        """Take the lock, open the file, bring the schema up to date; a reader takes no lock and checks the schema."""
        if self._path != MEMORY and not self._read_only:
            self._lock = _lock_file(Path(self._path))
        try:
            self._work = await self.run(self._connect)
            await self.run(self._work.check_schema if self._read_only else self._work.migrate)
        except BaseException:
            await self.close()
            raise

    def _connect(self) -> SqliteConnection:
        return SqliteConnection(self._path, read_only=self._read_only)

    @property
    def is_exclusive(self) -> bool:
        return not self._read_only

    @property
    def session_id(self) -> str:
        return self._session_id

    @property
    def dialect(self) -> Dialect:
        return SQLITE

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do `call` in the thread for writes. Cancelling the caller does not stop it."""
        return await self._run_in(self._thread, lambda: call(*args, **kwargs))

    async def _run_in(self, thread: ThreadPoolExecutor, call: Callable[[], T]) -> T:
        try:
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(thread, call))
        except sqlite3.Error as error:
            raise translate(error, self._path) from error

    @asynccontextmanager
    async def _turn_of(self, turn: asyncio.Lock, within: float | None) -> AsyncIterator[SqliteConnection]:
        """Wait for the turn; everything until the end of the block happens in time or raises StoreUnavailable."""
        scope = asyncio.timeout(self._deadline if within is None else within)
        try:
            async with scope, turn:
                if self._work is None:
                    raise StoreUnavailable(f"The database {self._path} is closed.")
                yield self._work
        except TimeoutError as error:
            if scope.expired():
                raise StoreUnavailable(f"The database {self._path} did not finish a transaction in time.") from error
            raise

    @asynccontextmanager
    async def transaction(self, *, within: float | None = None) -> AsyncIterator[Transaction]:
        async with self._turn_of(self._turn, within) as work:
            transaction = _SqliteTransaction(self, work)
            try:
                await self.run(work.begin)
                yield transaction
            except BaseException:
                work.connection.interrupt()  # ends a statement that still runs
                await self.run(work.rollback)
                raise
            await self._whole(self._thread, work, lambda: work.commit_and_notify(transaction.channels), interrupt=False)

    async def transact(self, work: Work[T], *, within: float | None = None) -> T:
        async with self._turn_of(self._turn, within) as connection:
            return await self._whole(self._thread, connection, lambda: connection.transact(work))

    async def read(self, work: Work[T], *, within: float | None = None) -> T:
        if self._path == MEMORY:
            return await self.transact(work, within=within)
        async with self._turn_of(self._reading_turn, within):
            if self._reading is None:
                self._reading = await self._run_in(self._reading_thread, self._connect)
            connection = self._reading
            return await self._whole(self._reading_thread, connection, lambda: connection.read(work))

    async def _whole(
        self,
        thread: ThreadPoolExecutor,
        connection: SqliteConnection,
        call: Callable[[], tuple[T, Iterable[str]]],
        *,
        interrupt: bool = True,
    ) -> T:
        """Run a call that ends with a commit, and wake its listeners, even if the caller is cancelled meanwhile."""
        done = asyncio.ensure_future(self._run_in(thread, call))

        def wake(finished: asyncio.Future[tuple[T, Iterable[str]]]) -> None:
            if not finished.cancelled() and finished.exception() is None:
                self._listeners.wake(finished.result()[1])

        done.add_done_callback(wake)
        try:
            return (await asyncio.shield(done))[0]
        except asyncio.CancelledError:
            if interrupt and not done.done():
                connection.connection.interrupt()  # ends a statement that still runs
                await asyncio.wait([done])
            raise

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

    async def holders(self, names: Sequence[str]) -> Holders:
        return Holders(0, dict.fromkeys(self._held.intersection(names), 0))

    def apart(self) -> SqliteStore:
        return self

    async def close(self) -> None:
        async with self._turn, self._reading_turn:
            work, self._work = self._work, None
            reading, self._reading = self._reading, None
            if reading is not None:
                await self._run_in(self._reading_thread, reading.connection.close)
            if work is not None:
                await self.run(work.connection.close)
            self._thread.shutdown(wait=False)
            self._reading_thread.shutdown(wait=False)
            lock, self._lock = self._lock, None
            if lock is not None:
                lock.close()
