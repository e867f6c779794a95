"""Committing WAL files: one transaction for all of them, with a fixed number of round trips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from strandline.controlplane.assignment import LogTail, OffsetAssignment
from strandline.controlplane.commit_rows import Changes, changes_of, decode_answers
from strandline.controlplane.database import COMMIT_CHANNEL, Database
from strandline.controlplane.log_rows import lock_tails
from strandline.controlplane.producer_rows import producer_entry
from strandline.controlplane.values import CommittedBatch, FileToCommit, Refusal
from strandline.crash import crash_point
from strandline.model import ProducerId, TimestampMs, TopicIdPartition
from strandline.records import ProducerEntry
from strandline.sql import IntegrityViolation, Transaction

_STALE: Final = CommittedBatch(
    Refusal.STALE_FILE, message="The object was marked as an orphan before it was committed; write it again."
)


class SqlBatchCommits:
    """See BatchCommits."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def commit_files(self, files: Sequence[FileToCommit]) -> Sequence[Sequence[CommittedBatch]]:
        async def work(tx: Transaction) -> list[tuple[CommittedBatch, ...]]:
            return await self._commit(tx, files)

        try:
            return await self._db.store.transact(work)
        except IntegrityViolation:
            # One of the keys was added concurrently, by an earlier attempt of this commit or by the search for orphans.
            # The second attempt sees its row.
            return await self._db.store.transact(work)

    async def _commit(self, tx: Transaction, files: Sequence[FileToCommit]) -> list[tuple[CommittedBatch, ...]]:
        partitions = list(dict.fromkeys(batch.partition for file in files for batch in file.batches))
        logs = await lock_tails(self._db, tx, partitions)
        # Read while the locks are held: an earlier attempt of the same commit has ended, or has written nothing yet;
        # and the commits to a log have their times in the order of their offsets.
        now_ms, answers = await self._time_and_earlier_answers(tx, files)
        producers = await self._producers(tx, files, logs)
        await self._read_open_transactions(tx, files, logs)
        order = OffsetAssignment(logs, producers, now_ms=now_ms)
        fresh: list[FileToCommit] = []
        for file in files:
            if file.object_key not in answers:
                answers[file.object_key] = order.add(file)
                fresh.append(file)
        if fresh:
            await self._write(tx, order, fresh, answers, now_ms)
        return [answers[file.object_key] or (_STALE,) * len(file.batches) for file in files]

    async def _time_and_earlier_answers(
        self, tx: Transaction, files: Sequence[FileToCommit]
    ) -> tuple[TimestampMs, dict[str, tuple[CommittedBatch, ...]]]:
        """The time of this commit, and answers by key; empty for a file that was marked as an orphan."""
        keys = [(file.object_key,) for file in files]
        found = await self._db.fetch(tx, "committed_files", keys, 1, self._db.given_ms())
        answers = {key: decode_answers(text) if text else () for _, key, text in found if key is not None}
        return found[0][0], answers

    async def _producers(
        self, tx: Transaction, files: Sequence[FileToCommit], logs: Mapping[TopicIdPartition, LogTail]
    ) -> dict[tuple[int, ProducerId], ProducerEntry]:
        keys = {
            (logs[batch.partition].log_id, batch.producer_id)
            for file in files
            for batch in file.batches
            if batch.producer_id >= 0 and batch.partition in logs
        }
        if not keys:
            return {}
        found = await self._db.fetch(tx, "producers_of_logs", list(keys), 2)
        return {(row[0], row[1]): producer_entry(row[1], row[2:]) for row in found}

    async def _read_open_transactions(
        self, tx: Transaction, files: Sequence[FileToCommit], logs: Mapping[TopicIdPartition, LogTail]
    ) -> None:
        """Only of logs in which a transaction ends: then another one may be the first that is open."""
        ending = {
            log.log_id: log
            for file in files
            for batch in file.batches
            if batch.marker is not None and (log := logs.get(batch.partition)) and log.first_unstable_offset >= 0
        }
        if ending:
            for log_id, producer_id, first_offset in await self._db.fetch(
                tx, "open_transactions", [(log_id,) for log_id in ending], 1
            ):
                ending[log_id].open_transactions[producer_id] = first_offset

    async def _write(
        self,
        tx: Transaction,
        order: OffsetAssignment,
        files: Sequence[FileToCommit],
        answers: Mapping[str, Sequence[CommittedBatch]],
        now_ms: TimestampMs,
    ) -> None:
        changes = changes_of(order, files, answers)
        if self._db.dialect.name == "postgresql":
            await self._write_at_once(tx, changes, now_ms)
        else:
            await self._write_in_turn(tx, changes, now_ms)
        crash_point("controlplane.commit.before_commit")
        if changes.rows:
            tx.notify(COMMIT_CHANNEL)

    async def _write_at_once(self, tx: Transaction, changes: Changes, now_ms: TimestampMs) -> None:
        """One round trip: a statement of PostgreSQL can change several tables."""
        bulk = self._db.dialect.bulk
        await tx.execute(
            self._db.sql["write_commit"],
            now_ms,
            *bulk(changes.files, 5),
            *bulk(changes.rows, 10),
            *bulk(changes.logs, 7),
            *bulk(changes.producers, 8),
            *bulk(changes.aborted, 5),
        )

    async def _write_in_turn(self, tx: Transaction, changes: Changes, now_ms: TimestampMs) -> None:
        added = await tx.fetch(self._db.sql["add_files"], now_ms, *self._db.dialect.bulk(changes.files, 5))
        file_ids: dict[object, int] = dict(added)
        rows = [(file_ids[row[0]], *row[1:]) for row in changes.rows]
        await self._db.execute(tx, "add_batches", rows, 10, now_ms)
        await self._db.execute(tx, "advance_logs", changes.logs, 7)
        await self._db.execute(tx, "keep_producers", changes.producers, 8, now_ms)
        await self._db.execute(tx, "add_aborted", changes.aborted, 5)
