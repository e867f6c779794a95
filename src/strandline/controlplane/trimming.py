"""Deleting the oldest rows of logs: DeleteRecords and retention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from strandline.controlplane.assignment import LogTail
from strandline.controlplane.database import TRIM_CHANNEL, Database
from strandline.controlplane.log_rows import lock_tails
from strandline.controlplane.pruning import Pruned, prune
from strandline.controlplane.values import Refusal, RetentionRule, Trimmed
from strandline.model import Offset, TimestampMs, TopicIdPartition
from strandline.sql import Row, Transaction

TO_THE_END: Final = -1
_STEP: Final = 2_000
"""Rows of a log that retention examines before it deletes some."""
_NEVER: Final = -(1 << 62)
_ANY_SIZE: Final = 1 << 62
_UNKNOWN: Final = Trimmed(Refusal.UNKNOWN_LOG)


class SqlLogTrimming:
    """See RecordDeletion and LogTrimming.

    DeleteRecords moves the log starts in a short transaction of their own, which locks nothing else. Rows are deleted
    in pages that lock the log only at their very end, where retention also moves the log start: commits wait for
    neither.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    async def delete_records(self, before: Mapping[TopicIdPartition, Offset]) -> Mapping[TopicIdPartition, Trimmed]:
        async def work(tx: Transaction) -> dict[TopicIdPartition, LogTail]:
            logs = await lock_tails(self._db, tx, list(before))
            moves = [(log.log_id, _target(log, before[p])) for p, log in logs.items() if _is_legal(log, before[p])]
            await self._db.execute(tx, "move_log_starts", moves, 2)
            tx.notify(TRIM_CHANNEL)
            return logs

        logs = await self._db.store.transact(work) if before else {}
        return {partition: await self._trimmed(logs.get(partition), offset) for partition, offset in before.items()}

    async def _trimmed(self, log: LogTail | None, offset: Offset) -> Trimmed:
        if log is None:
            return _UNKNOWN
        if not _is_legal(log, offset):
            return Trimmed(Refusal.OFFSET_OUT_OF_RANGE, log.log_start_offset)
        start = max(log.log_start_offset, _target(log, offset))
        return Trimmed(None, start, *await prune(self._db, log.log_id, start))

    async def enforce_retention(self, rules: Sequence[RetentionRule], *, max_rows: int) -> Sequence[Trimmed]:
        if not rules:
            return []
        now_ms = await self._db.store.read(self._db.now_ms)
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
            return await self._db.fetch(tx, "retention_heads", wanted, 5)

        answers = [_UNKNOWN] * len(rules)
        for position, log_id, log_start, has_work, converted_before in await self._db.store.read(heads):
            answers[position] = Trimmed(None, log_start)
            if converted_before is not None:
                await prune(self._db, log_id, converted_before, is_urgent=False, is_converted=True)
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
                pruned = await prune(self._db, log_id, start, is_urgent=False)
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
            return await tx.fetch_one(self._db.sql["retention_boundary"], log_id, rows, expire_before, retention_bytes)

        found = await self._db.store.read(work)
        return found[0] if found else None


def _is_legal(log: LogTail, offset: Offset) -> bool:
    return TO_THE_END <= offset <= log.high_watermark


def _target(log: LogTail, offset: Offset) -> Offset:
    return log.high_watermark if offset == TO_THE_END else offset
