"""WAL files: which may be deleted, which are orphans, which rows refer to them; and rows that contradict each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from strandline.controlplane.batch_rows import batch_row
from strandline.controlplane.database import Database
from strandline.controlplane.file_rows import take_orphans
from strandline.controlplane.values import BatchRow, WalFile
from strandline.model import TimestampMs, TopicIdPartition
from strandline.sql import Row, Transaction

_REMEMBERED_MS: Final = 24 * 3600 * 1000
"""How long the key of a deleted object is kept. A commit of it that arrives later than this cannot be refused."""


class SqlWalFiles:
    """See FileDeletion and FileInspection."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def now_ms(self) -> TimestampMs:
        return await self._db.store.read(self._db.now_ms)

    async def files_to_delete(self, *, marked_for_ms: int, limit: int) -> Sequence[WalFile]:
        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._db.sql["files_to_delete"], await self._db.now_ms(tx) - marked_for_ms, limit)

        return [WalFile._make(row) for row in await self._db.store.read(work)]

    async def files_after(self, file_id: int, limit: int) -> Sequence[WalFile]:
        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._db.sql["files_after"], file_id, limit)

        return [WalFile._make(row) for row in await self._db.store.read(work)]

    async def forget_files(self, file_ids: Collection[int]) -> None:
        rows = [(file_id,) for file_id in sorted(file_ids)]

        async def work(tx: Transaction) -> None:
            now_ms = await self._db.now_ms(tx)
            await self._db.execute(tx, "drop_claims_of_files", rows, 1)
            await self._db.execute(tx, "drop_split_files", rows, 1)
            await self._db.execute(tx, "forget_files", rows, 1, now_ms)
            # Twice as many as were added, so that a backlog shrinks.
            await tx.execute(self._db.sql["drop_files"], now_ms - _REMEMBERED_MS, 2 * len(rows))

        if rows:
            await self._db.store.transact(work)

    async def take_orphans(self, object_keys: Collection[str], *, broker_id: int) -> Sequence[str]:
        async def work(tx: Transaction) -> list[str]:
            now_ms = self._db.given_ms()
            return await take_orphans(self._db, tx, object_keys, broker_id=broker_id, now_ms=now_ms)

        return await self._db.store.transact(work) if object_keys else []

    async def rows_of_file(self, file_id: int) -> Sequence[tuple[TopicIdPartition, BatchRow]]:
        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._db.sql["rows_of_file"], file_id)

        return [
            (self._db.partition_of(row[0], row[1], row[2]), batch_row(row[3:]))
            for row in await self._db.store.read(work)
        ]

    async def wrong_transactions(self) -> Mapping[TopicIdPartition, str]:
        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._db.sql["wrong_transactions"])

        found = {}
        for topic_id, topic, number, first_unstable, first_open, aborted in await self._db.store.read(work):
            partition = self._db.partition_of(topic_id, topic, number)
            found[partition] = (
                f"Its first unstable offset is {first_unstable}, its first open transaction begins at {first_open}, "
                f"and {aborted} aborted transactions are behind its newest abort marker."
            )
        return found
