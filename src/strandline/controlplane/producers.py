"""The state of idempotent producers, per partition."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.controlplane.database import Database
from strandline.controlplane.producer_rows import producer_entry
from strandline.controlplane.values import ProducerBatches
from strandline.model import INT64_MAX, ProducerId, TimestampMs, TopicIdPartition
from strandline.sql import Row, Transaction


class SqlProducerStates:
    """See ProducerStates and ProducerExpiry."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def producers(self, partition: TopicIdPartition, only: ProducerId | None = None) -> Sequence[ProducerBatches]:
        first, last = (0, INT64_MAX) if only is None else (only, only)

        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._db.sql["producers"], partition.topic_id, partition.partition, first, last)

        entries = [producer_entry(row[0], row[1:]) for row in await self._db.store.read(work)]
        return [
            ProducerBatches(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
            for entry in entries
        ]

    async def expire_producers(self, *, silent_ms: int, limit: int) -> int:
        async def look(tx: Transaction) -> tuple[TimestampMs, list[Row]]:
            before_ms = await self._db.now_ms(tx) - silent_ms
            return before_ms, await tx.fetch(self._db.sql["silent_producers"], before_ms, limit)

        before_ms, silent = await self._db.store.read(look)

        async def forget(tx: Transaction) -> int:
            return await self._db.execute(tx, "forget_producers", silent, 2, before_ms)

        return await self._db.store.transact(forget) if silent else 0
