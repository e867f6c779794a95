"""Finding rows by time.

Each row knows the largest timestamp of its log up to itself, so that a time can be searched for in the order of
offsets, with a few looks into the primary key and without an index of its own.
"""

from __future__ import annotations

from strandline.controlplane.database import Database
from strandline.controlplane.reads import batch_row
from strandline.controlplane.values import BatchRow
from strandline.model import Offset, TimestampMs, TopicIdPartition
from strandline.sql import Row, Transaction


class SqlTimeSearch(Database):
    """The searches by time of BatchReads."""

    async def first_row_at_time(self, partition: TopicIdPartition, timestamp: TimestampMs) -> BatchRow | None:
        async def work(tx: Transaction) -> Row | None:
            log = await tx.fetch_one(self._sql["log_of_partition"], partition.topic_id, partition.partition)
            return await self._first_row(tx, log, timestamp) if log else None

        row = await self._store.read(work)
        return batch_row(row) if row else None

    async def row_of_max_timestamp(self, partition: TopicIdPartition, *, from_offset: Offset = 0) -> BatchRow | None:
        async def work(tx: Transaction) -> Row | None:
            log = await tx.fetch_one(self._sql["log_of_partition"], partition.topic_id, partition.partition)
            if log is None:
                return None
            log_id, log_start, high_watermark, largest_ever = log
            start = max(log_start, from_offset)
            log = (log_id, start, high_watermark, largest_ever)
            row = await self._first_row(tx, log, largest_ever)
            if row is not None:
                return row
            # The record that had it was deleted: the largest of those that are left has to be looked for.
            found = await tx.fetch_one(self._sql["largest_timestamp"], log_id, start)
            largest = found[0] if found else None
            return None if largest is None else await self._first_row(tx, log, largest)

        row = await self._store.read(work)
        return batch_row(row) if row else None

    async def _first_row(self, tx: Transaction, log: Row, timestamp: TimestampMs) -> Row | None:
        log_id, log_start, high_watermark, _ = log
        found = await tx.fetch_one(self._sql["offset_at_time"], log_id, timestamp, log_start, high_watermark)
        offset = found[0] if found else high_watermark
        if offset >= high_watermark:
            return None
        return await tx.fetch_one(self._sql["first_row_at_time"], log_id, offset, timestamp)
