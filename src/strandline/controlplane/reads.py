"""Finding rows by offset or by time, and the offsets of logs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from strandline.controlplane.batch_rows import batch_row, batch_rows
from strandline.controlplane.conversion.values import PendingSplit, SplitObject
from strandline.controlplane.database import Database, numbered
from strandline.controlplane.values import (
    AbortedRange,
    BatchRow,
    DisklessLog,
    FindBatches,
    FoundAborted,
    FoundBatches,
    MigrationState,
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


class SqlBatchReads(Database):
    """See BatchReads."""

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
            return await self._fetch(tx, "find_batches", wanted, 5, max_rows)

        found = {}
        for position, offsets, rows in self._by_request(await self._store.read(work)):
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
        if self._dialect.name == "sqlite":
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
            statement = self._sql["aborted_transactions"]
            return await tx.fetch(statement, partition.topic_id, partition.partition, from_offset, limit)

        rows = await self._store.read(work)
        if not rows:
            return FoundAborted((), INT64_MAX)
        known_from = max(rows[0][:2])
        return FoundAborted(tuple([AbortedRange._make(row[2:]) for row in rows if row[2] is not None]), known_from)

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        if not partitions:
            return {}
        asked = list(partitions)

        async def work(tx: Transaction) -> list[Row]:
            return await self._fetch(tx, "logs", numbered(asked), 3)

        return {asked[row[0]]: diskless_log(asked[row[0]], row[1:]) for row in await self._store.read(work)}

    async def known_files(self, object_keys: Collection[str]) -> Mapping[str, bool]:
        async def work(tx: Transaction) -> list[Row]:
            return await self._fetch(tx, "known_files", [(key,) for key in object_keys], 1)

        return {key: bool(is_used) for key, is_used in await self._store.read(work)} if object_keys else {}

    async def offset_boundary(self, partition: TopicIdPartition, offset: Offset) -> OffsetBoundary:
        log = (await self.logs([partition])).get(partition)
        return OffsetBoundary.OUT_OF_RANGE if log is None else log.boundary_of(offset)

    # By time. Each row holds the largest timestamp of its log so far, which never falls along the log: a binary search
    # over the primary key finds a time, without an index for it.

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
            # The record with this timestamp was deleted: find the largest that remains.
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


def diskless_log(partition: TopicIdPartition, columns: Sequence[Any]) -> DisklessLog:
    """A log from columns in the order of `logs.sql`."""
    start, high, tiered_start, tiered_high, diskless_start, first, epoch, state, byte_size, last, *txn = columns
    first_unstable, last_aborted = txn
    return DisklessLog(
        partition=partition,
        log_start_offset=start,
        high_watermark=high,
        tiered_log_start_offset=tiered_start,
        tiered_high_offset=tiered_high,
        diskless_start_offset=diskless_start,
        diskless_log_start_offset=first,
        diskless_log_start_epoch=epoch,
        migration_state=MigrationState(state),
        byte_size=byte_size,
        last_epoch=last,
        first_unstable_offset=first_unstable,
        last_aborted_offset=last_aborted,
    )


def pending_split(columns: Sequence[Any]) -> PendingSplit:
    """A split file from columns in the order of `splits_of_logs.sql`."""
    key, base, last, size, batches, max_timestamp, epochs, created_at_ms, committed_at_ms = columns
    file = SplitObject(
        object_key=key,
        base_offset=base,
        last_offset=last,
        size_bytes=size,
        batch_count=batches,
        max_timestamp=max_timestamp,
        leader_epochs=tuple((epoch, start) for epoch, start in json.loads(epochs)),
    )
    return PendingSplit(file, created_at_ms, committed_at_ms)
