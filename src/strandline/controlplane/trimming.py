"""Deleting the oldest rows of logs: DeleteRecords and retention.

A file that no row refers to any more is marked for deletion in the same transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from strandline.controlplane.assignment import LogTail
from strandline.controlplane.database import TRIM_CHANNEL, Database, numbered
from strandline.controlplane.values import Refusal, RetentionRule, Trimmed
from strandline.crash import crash_point
from strandline.model import INT64_MAX, Offset, TimestampMs, TopicIdPartition
from strandline.sql import Row, Transaction

PAGE: Final = 200
"""Rows that one transaction deletes."""
CALM_PAGE: Final = 50
"""The same for background work: few, because on SQLite commits wait for the transaction."""
TO_THE_END: Final = -1
_STEP: Final = 2_000
"""Rows of a log that retention examines before it deletes some."""
_NEVER: Final = -(1 << 62)
_ANY_SIZE: Final = 1 << 62
_UNKNOWN: Final = Trimmed(Refusal.UNKNOWN_LOG)


class Pruned(NamedTuple):
    """What was deleted."""

    rows: int
    bytes: int


class SqlPruning(Database):
    """Deletes rows of a log page by page: for deleted topics, retention and DeleteRecords."""

    async def _prune(
        self, log_id: int, before: Offset = INT64_MAX, *, is_urgent: bool = True, is_converted: bool = False
    ) -> Pruned:
        """Delete the rows of a log that end below `before`, with their split files, page by page.

        The log start moves with them, unless they are converted: then the log goes on below its rows.

        Work that is not urgent has small pages and pauses after each for as long as the page took: at least half of
        the database's time stays for others.

        If the log start was moved before, a crash between two pages leaves rows below it. Retention deletes them.
        """
        rows = size = 0
        limit = PAGE if is_urgent else CALM_PAGE
        while True:
            started = self._clock.monotonic()
            page = await self._store.transact(lambda tx: self._prune_page(tx, log_id, before, limit, is_converted))
            crash_point("controlplane.prune.after_page")
            if not is_urgent:
                await self._clock.sleep(self._clock.monotonic() - started)
            rows, size = rows + page.rows, size + page.bytes
            if page.rows < limit:
                return Pruned(rows, size)

    async def _prune_page(self, tx: Transaction, log_id: int, before: Offset, limit: int, is_converted: bool) -> Pruned:
        """Locks rows, then files, then the log: the log last, because commits wait for it."""
        found = await tx.fetch_one(self._sql["rows_to_prune"], log_id, before, limit)
        if found is None or not found[0]:
            return Pruned(0, 0)
        rows, size, last_offset, file_ids = found
        await tx.execute(self._sql["prune_rows"], log_id, last_offset)
        await tx.execute(self._sql["prune_aborted"], log_id, last_offset)
        # Whoever records split files locks their rows too: those that are recorded by now are seen.
        splits = await self._drop_splits(tx, log_id, last_offset)
        await self._mark_unused(tx, [*json.loads(file_ids), *splits])
        if is_converted:
            await tx.execute(self._sql["shrink_log"], log_id, size)
        else:
            await tx.execute(self._sql["trim_log"], log_id, last_offset, size)
            tx.notify(TRIM_CHANNEL)
        return Pruned(rows, size)

    async def _drop_splits(self, tx: Transaction, log_id: int, last_offset: Offset) -> list[int]:
        """Remove the split files of a log that end at `last_offset` or earlier; returns the ids of their objects."""
        return [row[0] for row in await tx.fetch(self._sql["drop_splits"], log_id, last_offset)]

    async def _mark_unused(self, tx: Transaction, file_ids: Sequence[int]) -> None:
        """Files that no row refers to become the file cleaner's."""
        files = self._dialect.bulk([(file_id,) for file_id in file_ids], 1)
        await tx.fetch(self._sql["lock_files"], *files)
        await tx.execute(self._sql["mark_unused_files"], self._given_ms(), *files)


class SqlLogTrimming(SqlPruning):
    """See LogTrimming; its producers are in `producers`.

    DeleteRecords moves the log starts in a short transaction of their own, which locks nothing else. Rows are deleted
    in pages that lock the log only at their very end, where retention also moves the log start: commits wait for
    neither.
    """

    async def delete_records(self, before: Mapping[TopicIdPartition, Offset]) -> Mapping[TopicIdPartition, Trimmed]:
        async def work(tx: Transaction) -> dict[TopicIdPartition, LogTail]:
            partitions = list(before)
            found = await self._fetch(tx, "lock_logs", numbered(partitions), 3)
            logs = {partitions[row[0]]: LogTail(*row[1:]) for row in found}
            moves = [(log.log_id, _target(log, before[p])) for p, log in logs.items() if _is_legal(log, before[p])]
            await self._execute(tx, "move_log_starts", moves, 2)
            tx.notify(TRIM_CHANNEL)
            return logs

        logs = await self._store.transact(work) if before else {}
        return {partition: await self._trimmed(logs.get(partition), offset) for partition, offset in before.items()}

    async def _trimmed(self, log: LogTail | None, offset: Offset) -> Trimmed:
        if log is None:
            return _UNKNOWN
        if not _is_legal(log, offset):
            return Trimmed(Refusal.OFFSET_OUT_OF_RANGE, log.log_start_offset)
        start = max(log.log_start_offset, _target(log, offset))
        return Trimmed(None, start, *await self._prune(log.log_id, start))

    async def enforce_retention(self, rules: Sequence[RetentionRule], *, max_rows: int) -> Sequence[Trimmed]:
        if not rules:
            return []
        now_ms = await self._store.read(self._now_ms)
        wanted = [
            (
                position,
                rule.partition.topic_id,
                rule.partition.partition,
                now_ms - rule.retention_ms if rule.retention_ms >= 0 else _NEVER,
                rule.retention_bytes if rule.retention_bytes >= 0 else _ANY_SIZE,
            )
            for position, rule in enumerate(rules)
        ]

        async def heads(tx: Transaction) -> list[Row]:
            return await self._fetch(tx, "retention_heads", wanted, 5)

        answers = [_UNKNOWN] * len(rules)
        for position, log_id, log_start, has_work, converted_before in await self._store.read(heads):
            answers[position] = Trimmed(None, log_start)
            if converted_before is not None:
                await self._prune(log_id, converted_before, is_urgent=False, is_converted=True)
            if has_work:
                limits = wanted[position][3:]
                answers[position] = await self._enforce(log_id, answers[position], *limits, max_rows=max_rows)
        return answers

    async def _enforce(
        self, log_id: int, trimmed: Trimmed, expire_before: TimestampMs, retention_bytes: int, *, max_rows: int
    ) -> Trimmed:
        while trimmed.rows_deleted < max_rows:
            step = min(_STEP, max_rows - trimmed.rows_deleted)
            start = await self._boundary(log_id, step, expire_before, retention_bytes)
            pruned = Pruned(0, 0)
            if start is not None:
                pruned = await self._prune(log_id, start, is_urgent=False)
            trimmed = Trimmed(
                None,
                # The log start has moved with the rows. If they have gone into a segment meanwhile, it has not.
                max(trimmed.log_start_offset, start) if start is not None and pruned.rows else trimmed.log_start_offset,
                trimmed.rows_deleted + pruned.rows,
                trimmed.bytes_deleted + pruned.bytes,
            )
            if pruned.rows < step:
                break
        return trimmed

    async def _boundary(
        self, log_id: int, rows: int, expire_before: TimestampMs, retention_bytes: int
    ) -> Offset | None:
        """The new log start, as far as the oldest `rows` rows tell; None if there is none, or rows are not to go.

        Read without a lock: in other systems, retention that held the lock of a log stalled every commit to it.
        """

        async def work(tx: Transaction) -> Row | None:
            return await tx.fetch_one(self._sql["retention_boundary"], log_id, rows, expire_before, retention_bytes)

        found = await self._store.read(work)
        return found[0] if found else None


def _is_legal(log: LogTail, offset: Offset) -> bool:
    return TO_THE_END <= offset <= log.high_watermark


def _target(log: LogTail, offset: Offset) -> Offset:
    return log.high_watermark if offset == TO_THE_END else offset
