"""Which object stores the cluster's objects are in. Every broker compares them with those that its settings name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from strandline.controlplane.database import Database
from strandline.sql import Row, Transaction

DISKLESS_STORE: Final = "diskless"
REMOTE_STORE: Final = "remote"


class RecordedStore(NamedTuple):
    """A store as the control plane knows it."""

    store_id: str
    url: str
    """Where it was when it was recorded, without credentials."""


class StoreProofs(NamedTuple):
    """Keys of objects that are needed: WAL objects, and split files. In the right store they are there."""

    oldest: Sequence[str]
    newest: Sequence[str]


class StoreRecords(Protocol):
    """For the code that opens a store."""

    async def recorded_store(self, purpose: str) -> RecordedStore | None:
        """The store of this purpose; None if none was recorded yet."""

    async def record_store(self, purpose: str, store: RecordedStore, *, instead_of: str | None) -> RecordedStore:
        """Record a store if none is recorded, or instead of the one with this id, and return what is recorded then.

        Of several brokers at once, one wins. A store that holds objects which are needed is never replaced.
        """

    async def replace_store(self, purpose: str, store: RecordedStore) -> None:
        """Record a store, whatever was recorded before: for an operator who has moved the objects."""

    async def has_remote_segments(self) -> bool:
        """Whether a log of the control plane has records in remote storage, or is getting some."""

    async def store_proofs(self, limit: int) -> StoreProofs:
        """The oldest and the newest objects that are needed, as many of each; none if the store holds nothing."""


class SqlStoreRecords:
    """See StoreRecords."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def recorded_store(self, purpose: str) -> RecordedStore | None:
        async def work(tx: Transaction) -> Row | None:
            return await tx.fetch_one(self._db.sql["recorded_store"], purpose)

        row = await self._db.store.read(work)
        return None if row is None else RecordedStore(*row)

    async def record_store(self, purpose: str, store: RecordedStore, *, instead_of: str | None) -> RecordedStore:
        async def work(tx: Transaction) -> Row | None:
            if instead_of is None:
                await tx.execute(self._db.sql["record_store"], purpose, *store)
            else:
                await tx.execute(self._db.sql["move_store"], purpose, *store, instead_of)
            return await tx.fetch_one(self._db.sql["recorded_store"], purpose)

        row = await self._db.store.transact(work)
        assert row is not None
        return RecordedStore(*row)

    async def replace_store(self, purpose: str, store: RecordedStore) -> None:
        async def work(tx: Transaction) -> None:
            await tx.execute(self._db.sql["replace_store"], purpose, *store)

        await self._db.store.transact(work)

    async def has_remote_segments(self) -> bool:
        async def work(tx: Transaction) -> Row | None:
            return await tx.fetch_one(self._db.sql["any_remote_segments"])

        return await self._db.store.read(work) is not None

    async def store_proofs(self, limit: int) -> StoreProofs:
        async def work(tx: Transaction) -> tuple[list[Row], list[Row]]:
            return (
                await tx.fetch(self._db.sql["oldest_objects"], limit),
                await tx.fetch(self._db.sql["newest_objects"], limit),
            )

        oldest, newest = await self._db.store.read(work)
        return StoreProofs([row[0] for row in oldest], [row[0] for row in newest])
