"""The base of stores around another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from strandline.sql.dialect import Dialect
from strandline.sql.store import Holders, OnNotification, SqlStore, Transaction, Work

T = TypeVar("T")


class PassingStore:
    """See SqlStore. Passes everything on to the store inside."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    @property
    def is_exclusive(self) -> bool:
        return self._store.is_exclusive

    @property
    def session_id(self) -> str:
        return self._store.session_id

    @property
    def dialect(self) -> Dialect:
        return self._store.dialect

    def transaction(self, *, within: float | None = None) -> AbstractAsyncContextManager[Transaction]:
        return self._store.transaction(within=within)

    async def transact(self, work: Work[T], *, within: float | None = None) -> T:
        return await self._store.transact(work, within=within)

    async def read(self, work: Work[T], *, within: float | None = None) -> T:
        return await self._store.read(work, within=within)

    def listen(self, channel: str, wake: OnNotification) -> Callable[[], None]:
        return self._store.listen(channel, wake)

    def hold(self, name: str) -> AbstractAsyncContextManager[None]:
        return self._store.hold(name)

    async def holders(self, names: Sequence[str]) -> Holders:
        return await self._store.holders(names)

    def apart(self) -> SqlStore:
        return self._store.apart()

    async def close(self) -> None:
        await self._store.close()
