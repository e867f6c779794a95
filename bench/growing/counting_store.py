"""A store that counts the statements it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from strandline.sql import Row, SqlStore, Transaction, Work
from strandline.sql.passing import PassingStore

T = TypeVar("T")


class CountingStore(PassingStore):
    """See SqlStore. `statements` is how many were sent: one with many rows counts once, as it is one round trip."""

    def __init__(self, store: SqlStore) -> None:
        super().__init__(store)
        self.statements = 0

    @asynccontextmanager
    async def transaction(self, *, within: float | None = None) -> AsyncIterator[Transaction]:
        async with self._store.transaction(within=within) as transaction:
            yield _CountingTransaction(transaction, self)

    async def transact(self, work: Work[T], *, within: float | None = None) -> T:
        return await self._store.transact(lambda tx: work(_CountingTransaction(tx, self)), within=within)

    async def read(self, work: Work[T], *, within: float | None = None) -> T:
        return await self._store.read(lambda tx: work(_CountingTransaction(tx, self)), within=within)


class _CountingTransaction:
    """See Transaction."""

    def __init__(self, transaction: Transaction, store: CountingStore) -> None:
        self._transaction, self._store = transaction, store
        self.limit_silence = transaction.limit_silence

    async def execute(self, statement: str, *args: object) -> int:
        self._store.statements += 1
        return await self._transaction.execute(statement, *args)

    async def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        self._store.statements += 1
        await self._transaction.execute_many(statement, rows)

    async def fetch(self, statement: str, *args: object) -> list[Row]:
        self._store.statements += 1
        return await self._transaction.fetch(statement, *args)

    async def fetch_one(self, statement: str, *args: object) -> Row | None:
        self._store.statements += 1
        return await self._transaction.fetch_one(statement, *args)

    def notify(self, channel: str) -> None:
        self._transaction.notify(channel)
