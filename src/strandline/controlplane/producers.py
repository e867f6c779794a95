"""The state of idempotent producers, per partition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from struct import Struct, pack
from typing import Any, Final

from strandline.controlplane.database import Database
from strandline.controlplane.values import ProducerBatches
from strandline.model import INT64_MAX, ProducerId, TimestampMs, TopicIdPartition
from strandline.records import BatchSpan, ProducerEntry
from strandline.sql import Row, Transaction

_SPAN: Final = Struct(">4q")


def pack_spans(spans: Sequence[BatchSpan]) -> str:
    """The newest batches of a producer as text, four 64-bit numbers for each. On the hot path of commits."""
    return pack(f">{4 * len(spans)}q", *chain.from_iterable(spans)).hex()


def producer_entry(producer_id: ProducerId, columns: Sequence[Any]) -> ProducerEntry:
    """A producer from its columns: epoch, last timestamp, batches, and those of its transactions.

    The latter are the first offset of the open one, the last coordinator, and when the last one began that has ended.
    """
    epoch, last_timestamp, batches, txn_first_offset, coordinator_epoch, txn_ended_ms = columns
    entry = ProducerEntry(producer_id, epoch)
    entry.batches = list(map(BatchSpan._make, _SPAN.iter_unpack(bytes.fromhex(batches))))
    entry.last_timestamp = last_timestamp
    entry.txn_first_offset, entry.coordinator_epoch = txn_first_offset, coordinator_epoch
    entry.txn_ended_ms = txn_ended_ms
    return entry


class SqlProducerStates(Database):
    """See ProducerStates, and LogTrimming for the expiry of producers."""

    async def producers(self, partition: TopicIdPartition, only: ProducerId | None = None) -> Sequence[ProducerBatches]:
        first, last = (0, INT64_MAX) if only is None else (only, only)

        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._sql["producers"], partition.topic_id, partition.partition, first, last)

        entries = [producer_entry(row[0], row[1:]) for row in await self._store.read(work)]
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
            before_ms = await self._now_ms(tx) - silent_ms
            return before_ms, await tx.fetch(self._sql["silent_producers"], before_ms, limit)

        before_ms, silent = await self._store.read(look)

        async def forget(tx: Transaction) -> int:
            return await self._execute(tx, "forget_producers", silent, 2, before_ms)

        return await self._store.transact(forget) if silent else 0
