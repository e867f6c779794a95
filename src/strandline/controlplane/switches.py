"""Switching topics from classic to diskless: where their partitions became diskless, and what became of their prefixes.

All transactions lock logs in the order of their ids, then the rows of inkless_migration. A leader that sets boundaries
locks those rows last, because the brokers of one topic set theirs at the same time: writing the producers, which takes
most of the time, keeps no other leader waiting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final
from uuid import UUID

from strandline.controlplane.boundaries import advanced, judge_boundary, judge_reset, judge_seeds, new_columns
from strandline.controlplane.database import MIGRATION_CHANNEL, TRIM_CHANNEL, Database
from strandline.controlplane.log_rows import lock_logs, named_log, read_logs
from strandline.controlplane.producer_rows import pack_spans
from strandline.controlplane.values import (
    BoundaryClaim,
    BoundarySet,
    DisklessLog,
    NewBoundary,
    PrefixProgress,
    Refusal,
    TopicMigration,
)
from strandline.crash import crash_point
from strandline.model import LeaderEpoch, TopicIdPartition
from strandline.records.producer_entry import RETAINED_BATCHES
from strandline.sql import Row, Transaction

_PRODUCERS_AT_ONCE: Final = 2_000
"""Producers that one statement writes: they are packed on the event loop."""
_MANY_PRODUCERS: Final = 20_000
_WITHIN_S: Final = 60.0
"""For that many producers. Without it they would fail at the deadline of the store, and again each time."""
_SILENT_S: Final = 1.0
"""For the statements that follow the lock of a switch, which all leaders of its topic wait for."""


class _SwitchEnded(Exception):
    """The switch was aborted, or its topic deleted, while boundaries were being written."""


class SqlMigrations:
    """See Boundaries, PrefixReports and MigrationEnding."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def topic_migrations(self) -> Sequence[TopicMigration]:
        return await self._db.store.read(self._topic_migrations)

    async def _topic_migrations(self, tx: Transaction) -> list[TopicMigration]:
        return [
            TopicMigration(
                position=row[0],
                topic_id=self._db.dialect.uuid(row[1]),
                topic=row[2],
                partitions=row[3],
                requested_at_ms=row[4],
                sealed_at_ms=row[5],
                now_ms=row[6],
            )
            for row in await tx.fetch(self._db.sql["topic_migrations"], self._db.given_ms())
        ]

    # Boundaries

    async def claim_boundaries(self, claims: Sequence[BoundaryClaim]) -> Mapping[TopicIdPartition, DisklessLog]:
        async def work(tx: Transaction) -> dict[TopicIdPartition, DisklessLog]:
            missing = [
                (one.partition.topic_id, one.partition.partition, one.partition.topic, one.position) for one in claims
            ]
            await self._db.execute(tx, "add_unset_logs", missing, 4)
            logs: dict[TopicIdPartition, DisklessLog] = {}
            claimed: list[tuple[object, ...]] = []
            locked = await lock_logs(self._db, tx, [one.partition for one in claims])
            for number, (log_id, is_deleted, log) in locked.items():
                epoch = claims[number].leader_epoch
                if log.diskless_log_start_offset < 0 and log.diskless_log_start_epoch < epoch and not is_deleted:
                    claimed.append((log_id, epoch))
                    log = replace(log, diskless_log_start_epoch=epoch)
                if not is_deleted:
                    logs[log.partition] = log
            await self._db.execute(tx, "claim_logs", claimed, 2)
            return logs

        return await self._db.store.transact(work) if claims else {}

    async def initialize_diskless_migration(self, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
        async def work(tx: Transaction) -> list[BoundarySet]:
            return await self._initialize(tx, boundaries)

        producers = sum(len(boundary.producers) for boundary in boundaries)
        within = _WITHIN_S if producers >= _MANY_PRODUCERS else None
        while boundaries:
            try:
                answers = await self._db.store.transact(work, within=within)
            except _SwitchEnded:
                continue  # it is seen at once the next time
            crash_point("controlplane.migration.after_commit")
            return answers
        return []

    async def _initialize(self, tx: Transaction, boundaries: Sequence[NewBoundary]) -> list[BoundarySet]:
        # First, so that no log is created and then refused: the row is looked at again before the end.
        positions = {switch.topic_id: switch.position for switch in await self._topic_migrations(tx)}
        missing = [(b.partition.topic_id, b.partition.partition, b.partition.topic, b.position) for b in boundaries]
        await self._db.execute(tx, "add_unset_logs", missing, 4)
        logs = await lock_logs(self._db, tx, [boundary.partition for boundary in boundaries])
        answers: list[BoundarySet] = []
        accepted: dict[int, NewBoundary] = {}
        for number, boundary in enumerate(boundaries):
            found = logs.get(number)
            log = found.log if found and not found.is_deleted else None
            is_requested = positions.get(boundary.partition.topic_id) == boundary.position
            answer = judge_boundary(log, boundary, is_requested=is_requested)
            if found and log and answer.refusal is None:
                if log.diskless_log_start_offset < 0:
                    accepted[found.log_id] = boundary
                elif log.high_watermark == boundary.boundary:  # else producers have written since
                    are_same = await self._has_seeds(tx, found.log_id, boundary)
                    answer = judge_seeds(boundary, log.diskless_log_start_epoch, are_same=are_same)
            answers.append(answer)
        if accepted:
            await self._set_boundaries(tx, accepted)
        return answers

    async def _has_seeds(self, tx: Transaction, log_id: int, boundary: NewBoundary) -> bool:
        stored = {tuple(row) for row in await tx.fetch(self._db.sql["seeds_of_log"], log_id)}
        return stored == {row[1:] for row in _seeds({log_id: boundary})}

    async def _set_boundaries(self, tx: Transaction, accepted: Mapping[int, NewBoundary]) -> None:
        now_ms = await self._db.now_ms(tx)
        await self._db.execute(tx, "set_boundaries", [(key, *new_columns(b)) for key, b in accepted.items()], 7)
        await self._db.execute(tx, "drop_seeds", [(log_id,) for log_id in accepted], 1)
        seeds = _seeds(accepted)
        while rows := list(islice(seeds, _PRODUCERS_AT_ONCE)):
            await self._db.execute(tx, "seed_producers", rows, 6, now_ms)
        topics = [(topic_id,) for topic_id in {boundary.partition.topic_id for boundary in accepted.values()}]
        locked = {row[0] for row in await self._lock_migrations(tx, topics)}
        if not locked.issuperset(boundary.position for boundary in accepted.values()):
            raise _SwitchEnded
        await self._db.execute(tx, "seal_migrations", topics, 1, now_ms)
        await self._db.execute(tx, "finish_migrations", topics, 1)
        tx.notify(MIGRATION_CHANNEL)
        crash_point("controlplane.migration.before_commit")

    async def reset_diskless_log_start_offset(
        self, partition: TopicIdPartition, leader_epoch: LeaderEpoch
    ) -> BoundarySet:
        async def work(tx: Transaction) -> BoundarySet:
            found = (await lock_logs(self._db, tx, [partition])).get(0)
            log = found.log if found and not found.is_deleted else None
            answer = judge_reset(log, leader_epoch)
            if found and log and log.diskless_log_start_offset >= 0 and answer.refusal is None:
                await tx.execute(self._db.sql["unset_boundary"], found.log_id, leader_epoch)
                await tx.execute(self._db.sql["resume_migration"], partition.topic_id, self._db.given_ms())
                tx.notify(MIGRATION_CHANNEL)
                crash_point("controlplane.migration.before_reset_commit")
            return answer

        return await self._db.store.transact(work)

    # Prefixes

    async def record_prefix(self, progress: Sequence[PrefixProgress]) -> None:
        # Most reports say what is known: those take no lock.
        known = await self._db.store.read(lambda tx: read_logs(self._db, tx, [report.partition for report in progress]))
        news = [one for one in progress if (log := known.get(one.partition)) and advanced(log, one) != log]
        if news:
            await self._db.store.transact(lambda tx: self._record(tx, news))

    async def _record(self, tx: Transaction, progress: Sequence[PrefixProgress]) -> None:
        locked = await lock_logs(self._db, tx, [report.partition for report in progress])
        moved: list[tuple[object, ...]] = []
        topics: set[UUID] = set()
        for number, (log_id, is_deleted, before) in locked.items():
            log = advanced(before, progress[number])
            if is_deleted or log == before:
                continue
            if log.migration_state is not before.migration_state:
                topics.add(log.partition.topic_id)
            if log.log_start_offset != before.log_start_offset:
                tx.notify(TRIM_CHANNEL)
            columns = log.log_start_offset, log.tiered_log_start_offset, log.tiered_high_offset
            moved.append((log_id, *columns, log.migration_state.value))
        await self._db.execute(tx, "advance_prefixes", moved, 5)
        if topics:
            rows = [(topic_id,) for topic_id in topics]
            await self._lock_migrations(tx, rows)
            await self._db.execute(tx, "finish_migrations", rows, 1)
            tx.notify(MIGRATION_CHANNEL)
        crash_point("controlplane.migration.before_prefix_commit")

    async def _lock_migrations(self, tx: Transaction, topics: Sequence[tuple[UUID]]) -> Sequence[Row]:
        await tx.limit_silence(_SILENT_S)
        return await self._db.fetch(tx, "lock_migrations", topics, 1)

    async def complete_migration(self, topic_id: UUID) -> Refusal | None:
        async def work(tx: Transaction) -> Refusal | None:
            await tx.limit_silence(_SILENT_S)
            await tx.fetch(self._db.sql["lock_logs_of_topic"], topic_id)
            switch = await tx.fetch_one(self._db.sql["lock_migration"], topic_id)
            if switch is None:
                return Refusal.MIGRATION_NOT_FOUND
            found = await tx.fetch_one(self._db.sql["boundaries_of_topic"], topic_id, switch[1])
            if found is None or found[0] < switch[1]:
                return Refusal.BOUNDARY_IS_UNSET
            await tx.execute(self._db.sql["complete_logs"], topic_id)
            await tx.execute(self._db.sql["end_migration"], topic_id)
            tx.notify(MIGRATION_CHANNEL)
            return None

        return await self._db.store.transact(work)

    async def migration_states(self, topic_ids: Collection[UUID]) -> Mapping[UUID, Sequence[DisklessLog]]:
        async def work(tx: Transaction) -> list[Row]:
            return await self._db.fetch(tx, "logs_of_topics", [(topic_id,) for topic_id in topic_ids], 1)

        logs: dict[UUID, list[DisklessLog]] = {}
        for row in await self._db.store.read(work) if topic_ids else []:
            log = named_log(self._db, row)
            logs.setdefault(log.partition.topic_id, []).append(log)
        return logs


def _seeds(accepted: Mapping[int, NewBoundary]) -> Iterator[tuple[object, ...]]:
    """The producers of the prefixes as rows: as a commit would have left them."""
    for log_id, boundary in accepted.items():
        for entry in boundary.producers:
            batches = pack_spans(entry.batches[-RETAINED_BATCHES:])
            yield log_id, entry.producer_id, entry.epoch, entry.last_timestamp, batches, entry.coordinator_epoch
