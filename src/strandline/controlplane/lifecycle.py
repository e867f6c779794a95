"""Creating logs, and deleting those of deleted topics."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from strandline.controlplane.database import Database
from strandline.controlplane.pruning import PAGE, drop_splits, mark_unused, prune
from strandline.controlplane.values import LATE_MS
from strandline.crash import crash_point
from strandline.model import INT64_MAX, TopicIdPartition
from strandline.sql import Row, Transaction


class SqlLogLifecycle:
    """See LogCreation and TopicDeletion."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def create_logs(self, partitions: Collection[TopicIdPartition]) -> None:
        rows = [(topic_id, partition, name) for topic_id, (name, partition) in partitions]

        async def work(tx: Transaction) -> int:
            return await self._db.execute(tx, "create_logs", rows, 3)

        if rows:
            await self._db.store.transact(work)

    async def delete_topics(self, topic_ids: Collection[UUID]) -> None:
        async def end_switches(tx: Transaction) -> None:
            await self._db.execute(tx, "drop_migrations", [(topic_id,) for topic_id in topic_ids], 1)
            await self._db.execute(tx, "drop_wishes", [(topic_id,) for topic_id in topic_ids], 1)

        async def close(tx: Transaction) -> list[int]:
            log_ids = await self._db.fetch(tx, "lock_topics", [(topic_id,) for topic_id in topic_ids], 1)
            await self._db.execute(tx, "close_logs", log_ids, 1)
            return [row[0] for row in log_ids]

        if not topic_ids:
            return
        # By itself and first: a leader that sets a boundary now either finds no switch, or has committed its logs
        # before they are looked for.
        await self._db.store.transact(end_switches)
        for log_id in await self._db.store.transact(close):
            crash_point("controlplane.delete_topics.between_logs")
            await prune(self._db, log_id)
            await self._drop(log_id)

    async def _drop(self, log_id: int) -> None:
        """Remove the producers of a log whose batches are gone, then its uploads and the log itself.

        The bytes of the uploads are the remote log manager's, with all segments of the topic; what is uploaded after
        it has deleted them is deleted later.
        """

        async def forget(tx: Transaction) -> int:
            return await tx.execute(self._db.sql["forget_producers_of_log"], log_id, PAGE)

        async def drop(tx: Transaction) -> None:
            await mark_unused(self._db, tx, await drop_splits(self._db, tx, log_id, INT64_MAX))
            await tx.execute(self._db.sql["keep_uploads_of_log"], log_id, await self._db.now_ms(tx) + LATE_MS)
            await tx.execute(self._db.sql["drop_uploads_of_log"], log_id)
            await tx.execute(self._db.sql["drop_log"], log_id)

        while await self._db.store.transact(forget) == PAGE:
            pass
        await self._db.store.transact(drop)

    async def topic_ids(self) -> frozenset[UUID]:
        return await self._ids("topic_ids")

    async def diskless_topic_ids(self) -> frozenset[UUID]:
        return await self._ids("diskless_topic_ids")

    async def _ids(self, statement: str) -> frozenset[UUID]:
        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._db.sql[statement])

        return frozenset(self._db.dialect.uuid(row[0]) for row in await self._db.store.read(work))
