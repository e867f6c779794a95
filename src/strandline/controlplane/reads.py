"""Finding rows by offset or by time, and the offsets of logs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from strandline.controlplane.batch_rows import batch_row, batch_rows
from strandline.controlplane.database import Database, numbered
from strandline.controlplane.file_rows import find_files
from strandline.controlplane.log_rows import numbered_logs
from strandline.controlplane.values import (
    AbortedRange,
    BatchRow,
    DisklessLog,
    FindBatches,
    FoundAborted,
    FoundBatches,
    OffsetBoundary,
    Refusal,
)
from strandline.model import INT64_MAX, Offset, TimestampMs, TopicIdPartition
from strandline.sql import Row, Transaction

# The first query asks for this many rows of each log, each following one for more, so that few unneeded rows are read.
_FIRST_ROWS: Final = 2
_GROWTH: Final = 8


def _joined(before: FoundBatches, more: FoundBatches) -> FoundBatches:
    """Earlier rows with those that follow. A gap, left by rows that were deleted meanwhile, ends the answer."""
    if not before.rows:
        return more
    if not more.rows or more.rows[0].base_offset != before.rows[-1].last_offset + 1:
        return before
    return more._replace(rows=before.rows + more.rows)


class SqlBatchReads:
    """See DisklessLogs, BatchReads and BatchLookups."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def find_batches(self, requests: Sequence[FindBatches], *, max_rows: int) -> Sequence[FoundBatches]:
        found = [FoundBatches(Refusal.UNKNOWN_LOG)] * len(requests)
        wanted = dict(enumerate(requests))
        looked_at, step = 0, _FIRST_ROWS
        while wanted and looked_at < max_rows:
            step = min(step, max_rows - looked_at)
            parts = await self._find(wanted, step)
            for position, part in parts.items():
                found[position] = _joined(found[position], part)
            # Requests that got as many rows as were asked for, and have bytes left, go on behind them.
            further, likely = {}, 0
            for position, part in parts.items():
                size = sum(row.byte_size for row in part.rows)
                left = wanted[position].max_bytes - size
                if len(part.rows) == step and left > 0:
                    further[position] = wanted[position]._replace(offset=part.rows[-1].last_offset + 1, max_bytes=left)
                    likely = max(likely, left * step // max(size, 1) + 1)
            # Small rows come one after the other: a few of them tell how many more are wanted.
            wanted, looked_at, step = further, looked_at + step, max(likely, step * _GROWTH)
        return found

    async def _find(self, requests: Mapping[int, FindBatches], max_rows: int) -> dict[int, FoundBatches]:
        """By position, without requests whose log does not exist."""
        wanted = [
            (position, topic_id, number, offset, max_bytes)
            for position, ((topic_id, (_, number)), offset, max_bytes) in requests.items()
        ]

        async def work(tx: Transaction) -> list[Row]:
            return await self._db.fetch(tx, "find_batches", wanted, 5, max_rows)

        found = {}
        for position, offsets, rows in self._by_request(await self._db.store.read(work)):
            log_start, high_watermark, read_boundary, first_unstable, last_aborted = offsets
            offset = requests[position].offset
            refusal = None
            if not log_start <= offset <= high_watermark:
                refusal, rows = Refusal.OFFSET_OUT_OF_RANGE, ()
            elif offset < read_boundary:
                refusal, rows = Refusal.IN_PREFIX, ()  # rows that are left there are about to be deleted
            found[position] = FoundBatches(
                refusal, log_start, high_watermark, rows, read_boundary, first_unstable, last_aborted
            )
        return found

    def _by_request(self, fetched: list[Row]) -> list[tuple[int, Row, tuple[BatchRow, ...]]]:
        """SQLite returns one row per request, with a list of rows in it; PostgreSQL one for each row, in order."""
        if self._db.dialect.name == "sqlite":
            return [(row[0], row[1:6], batch_rows(row[6])) for row in fetched]
        answers: dict[int, tuple[Row, list[BatchRow]]] = {}
        for row in fetched:
            _, rows = answers.setdefault(row[0], (row[1:6], []))
            if row[6] is not None:
                rows.append(batch_row(row[6:]))
        return [(position, offsets, tuple(rows)) for position, (offsets, rows) in answers.items()]

    async def aborted_transactions(
        self, partition: TopicIdPartition, *, from_offset: Offset, limit: int
    ) -> FoundAborted:
        async def work(tx: Transaction) -> list[Row]:
            statement = self._db.sql["aborted_transactions"]
            return await tx.fetch(statement, partition.topic_id, partition.partition, from_offset, limit)

        rows = await self._db.store.read(work)
        if not rows:
            return FoundAborted((), INT64_MAX)
        known_from = max(rows[0][:2])
        return FoundAborted(tuple([AbortedRange._make(row[2:]) for row in rows if row[2] is not None]), known_from)

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        if not partitions:
            return {}
        asked = list(partitions)

        async def work(tx: Transaction) -> list[Row]:
            return await self._db.fetch(tx, "logs", numbered(asked), 3)

        return numbered_logs(asked, await self._db.store.read(work))

    async def known_files(self, object_keys: Collection[str]) -> Mapping[str, bool]:
        if not object_keys:
            return {}
        return await self._db.store.read(lambda tx: find_files(self._db, tx, object_keys))

    async def offset_boundary(self, partition: TopicIdPartition, offset: Offset) -> OffsetBoundary:
        log = (await self.logs([partition])).get(partition)
        return OffsetBoundary.OUT_OF_RANGE if log is None else log.boundary_of(offset)

    # By time. Each row holds the largest timestamp of its log so far, which never falls along the log: a binary search
    # over the primary key finds a time, without an index for it.

    async def first_row_at_time(self, partition: TopicIdPartition, timestamp: TimestampMs) -> BatchRow | None:
        async def work(tx: Transaction) -> Row | None:
            log = await tx.fetch_one(self._db.sql["log_of_partition"], partition.topic_id, partition.partition)
            return await self._first_row(tx, log, timestamp) if log else None

        row = await self._db.store.read(work)
        return batch_row(row) if row else None

    async def row_of_max_timestamp(self, partition: TopicIdPartition, *, from_offset: Offset = 0) -> BatchRow | None:
        async def work(tx: Transaction) -> Row | None:
            log = await tx.fetch_one(self._db.sql["log_of_partition"], partition.topic_id, partition.partition)
            if log is None:
                return None
            log_id, log_start, high_watermark, largest_ever = log
            start = max(log_start, from_offset)
            log = (log_id, start, high_watermark, largest_ever)
            row = await self._first_row(tx, log, largest_ever)
            if row is not None:
                return row
            # The record with this timestamp was deleted: find the largest that remains.
            found = await tx.fetch_one(self._db.sql["largest_timestamp"], log_id, start)
            largest = found[0] if found else None
            return None if largest is None else await self._first_row(tx, log, largest)

        row = await self._db.store.read(work)
        return batch_row(row) if row else None

    async def _first_row(self, tx: Transaction, log: Row, timestamp: TimestampMs) -> Row | None:
        log_id, log_start, high_watermark, _ = log
        found = await tx.fetch_one(self._db.sql["offset_at_time"], log_id, timestamp, log_start, high_watermark)
        offset = found[0] if found else high_watermark
        if offset >= high_watermark:
            return None
        return await tx.fetch_one(self._db.sql["first_row_at_time"], log_id, offset, timestamp)
