"""A store whose outcomes are noted, so that the broker can say whether its database answers.

Nothing is asked for that purpose: the loops of the broker ask often enough.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar
from urllib.parse import urlsplit

from strandline.clock import Clock, Ids
from strandline.health import Health
from strandline.sql.errors import IntegrityViolation, SqlError, StoreInUse, TransactionConflict
from strandline.sql.opening import open_store
from strandline.sql.passing import PassingStore
from strandline.sql.store import SqlStore, Transaction, Work

T = TypeVar("T")

# A transaction that waits for longer shows the database as away. The deadline of transactions is later.
_SLOW = 5.0
# The database answered; the answer concerns one transaction only.
_ANSWERS = (TransactionConflict, IntegrityViolation, StoreInUse)


class WatchedStore(PassingStore):
    """See SqlStore."""

    def __init__(self, store: SqlStore, health: Health) -> None:
        super().__init__(store)
        self.health = health

    @asynccontextmanager
    async def transaction(self, *, within: float | None = None) -> AsyncIterator[Transaction]:
        with self._noted():
            async with self._store.transaction(within=within) as transaction:
                yield transaction

    async def transact(self, work: Work[T], *, within: float | None = None) -> T:
        with self._noted():
            return await self._store.transact(work, within=within)

    async def read(self, work: Work[T], *, within: float | None = None) -> T:
        with self._noted():
            return await self._store.read(work, within=within)

    def apart(self) -> WatchedStore:
        return WatchedStore(self._store.apart(), self.health)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            with self.health.waiting():
                yield
        except SqlError as error:
            if isinstance(error, _ANSWERS):
                self.health.answered()
            else:
                self.health.failed(str(error))
            raise
        else:
            self.health.answered()


@asynccontextmanager
async def open_watched_store(url: str, *, clock: Clock, ids: Ids) -> AsyncIterator[WatchedStore]:
    """As `open_store`, with the health of the database."""
    async with open_store(url, clock=clock, ids=ids) as store:
        yield WatchedStore(store, Health("database", "the database", public_address(url), clock, hangs_after=_SLOW))


def public_address(url: str) -> str:
    """The address of a database without user, password and options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
