"""One connection to a SQLite file, used from one thread: for single statements and for whole transactions."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

from strandline.model import uuid_to_text
from strandline.sql.dialect import SQLITE
from strandline.sql.migrations import (
    ADD_TO_HISTORY,
    CREATE_HISTORY,
    READ_HISTORY,
    check_current,
    load_migrations,
    pending,
)
from strandline.sql.sqlite.errors import translate
from strandline.sql.store import Row, Work

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CACHE_KIB = 8192  # holds the inner pages of tables with millions of rows, and the newest rows of a thousand logs

sqlite3.register_adapter(UUID, uuid_to_text)


class SqliteConnection:
    """All use of one connection. Its methods run in a thread of the store."""

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self.path = path
        # A reader of a database in WAL mode sees a snapshot: it takes no lock that a writer needs.
        self._begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        name = f"file:{quote(path)}?mode=ro" if read_only else path
        self.connection = sqlite3.connect(
            name, uri=read_only, isolation_level=None, check_same_thread=False, timeout=5.0
        )
        if not read_only:
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")
            self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")

    def check_schema(self) -> None:
        """Raise SchemaMismatch if the schema is not up to date."""
        check_current(load_migrations(SQLITE.name), self.connection.execute(READ_HISTORY).fetchall())

    def migrate(self) -> None:
        """Bring the schema up to date, all steps in one transaction."""
        self.begin()
        try:
            self.connection.execute(CREATE_HISTORY)
            history = self.connection.execute(READ_HISTORY).fetchall()
            for step in pending(load_migrations(SQLITE.name), history):
                logger.info("applying schema migration V%03d__%s", step.version, step.name)
                for statement in _split(step.script):
                    self.connection.execute(statement)
                self.execute(SQLITE.render(ADD_TO_HISTORY), (step.version, step.name, step.checksum))
        except BaseException:
            self.rollback()
            raise
        self.commit()

    def begin(self) -> None:
        self.connection.execute(self._begin)

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

    # Whole transactions in one call to the thread

    def transact(self, work: Work[T]) -> tuple[T, frozenset[str]]:
        """Begin, do `work`, commit. The result, and the channels to notify."""
        return self._whole(self._begin, work)

    def read(self, work: Work[T]) -> tuple[T, frozenset[str]]:
        """Do `work` on a snapshot of what is committed."""
        return self._whole("BEGIN", work)

    def commit_and_notify(self, channels: Iterable[str]) -> tuple[None, frozenset[str]]:
        """Commit a transaction that was run statement by statement. None, and the channels to notify."""
        self.commit()
        return None, frozenset(channels)

    def _whole(self, begin: str, work: Work[T]) -> tuple[T, frozenset[str]]:
        transaction = _InThread(self)
        self.connection.execute(begin)
        try:
            result = _finished(work(transaction))
        except BaseException:
            self.rollback()
            raise
        self.commit()
        return result, frozenset(transaction.channels)


class _InThread:
    """A transaction for code that already runs in the thread: its methods never suspend."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection
        self.channels: set[str] = set()

    async def execute(self, statement: str, *args: object) -> int:
        with self._translated():
            return self._connection.execute(SQLITE.render(statement), args)

    async def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with self._translated():
            self._connection.execute_many(SQLITE.render(statement), rows)

    async def fetch(self, statement: str, *args: object) -> list[Row]:
        with self._translated():
            return self._connection.fetch(SQLITE.render(statement), args)

    async def fetch_one(self, statement: str, *args: object) -> Row | None:
        rows = await self.fetch(statement, *args)
        return rows[0] if rows else None

    async def limit_silence(self, seconds: float) -> None:
        """Nothing to do: no other process waits for this one."""

    def notify(self, channel: str) -> None:
        self.channels.add(channel)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise translate(error, self._connection.path) from error


def _finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("Work in a transaction may await the transaction's methods only.")


def _split(script: str) -> list[str]:
    """The statements of a script; executescript() would commit in between."""
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements
