"""The control plane answers about a partition after something else has become of it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest

from strandline.controlplane.reads import SqlBatchReads
from strandline.controlplane.switches import SqlMigrations
from strandline.controlplane.values import BoundarySet, DisklessLog, MigrationState, NewBoundary, TopicMigration
from strandline.hybrid.switching import switches
from strandline.model import TopicIdPartition
from strandline.sql import StoreUnavailable
from tests.hybrid.switching.world import switching_broker
from tests.switched import prefix_of


async def test_an_answer_from_before_the_boundary_does_not_undo_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    initialize, logs = SqlMigrations.initialize_diskless_migration, SqlBatchReads.logs
    is_asked, is_joined, is_told = asyncio.Event(), asyncio.Event(), asyncio.Event()
    held: list[Mapping[TopicIdPartition, DisklessLog]] = []
    asked: list[SqlBatchReads] = []

    async def setting(migrations: SqlMigrations, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
        held.append(await logs(asked[0], [boundary.partition for boundary in boundaries]))
        answers = await initialize(migrations, boundaries)
        await is_asked.wait()
        return answers

    async def late(
        reads: SqlBatchReads, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, DisklessLog]:
        asked.append(reads)
        if not held or is_told.is_set():
            return await logs(reads, partitions)
        is_asked.set()
        await is_joined.wait()
        is_told.set()
        return held[0]

    monkeypatch.setattr(SqlMigrations, "initialize_diskless_migration", setting)
    monkeypatch.setattr(SqlBatchReads, "logs", late)
    async with switching_broker(tmp_path) as broker:
        await broker.create("t")
        await broker.flag("t", is_diskless=True)
        partition = await broker.switched("t")
        is_joined.set()
        await broker.until(is_told.is_set)
        known = broker.known("t")
        assert known is not None
        assert known.state is MigrationState.DISKLESS_ONLY
        assert broker.served("t") is partition


@pytest.mark.parametrize("records", [3, 0])
async def test_a_sealed_partition_takes_records_again_if_the_request_of_its_switch_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    monkeypatch.setattr(switches, "BOUNDARY_SECONDS", 0.05)

    async def away(migrations: SqlMigrations, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
        raise StoreUnavailable("A test takes the database away.")

    async def lost(migrations: SqlMigrations) -> Sequence[TopicMigration]:
        return ()

    monkeypatch.setattr(SqlMigrations, "initialize_diskless_migration", away)
    async with switching_broker(tmp_path) as broker:
        await broker.create("t", records=records)
        await broker.flag("t", is_diskless=True)
        replica = broker.replica("t")
        await broker.until(lambda: replica.is_sealed)
        monkeypatch.setattr(SqlMigrations, "topic_migrations", lost)
        await broker.until(lambda: not replica.is_sealed)
        assert await broker.append("t") == records
        known = broker.known("t")
        assert known is not None
        assert "No switch of t is requested" in known.problem


async def test_a_boundary_whose_answer_was_lost_counts_although_its_request_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction that sets the last boundary of an empty topic ends the request."""
    monkeypatch.setattr(switches, "BOUNDARY_SECONDS", 0.05)
    initialize = SqlMigrations.initialize_diskless_migration

    async def unanswered(migrations: SqlMigrations, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
        await initialize(migrations, boundaries)
        raise StoreUnavailable("A test loses the answer.")

    monkeypatch.setattr(SqlMigrations, "initialize_diskless_migration", unanswered)
    async with switching_broker(tmp_path) as broker:
        await broker.create("t")
        await broker.flag("t", is_diskless=True)
        partition = await broker.switched("t")
        assert prefix_of(partition).end == 0
        assert await broker.append("t") == 0
        assert broker.replica("t").log.log_end_offset == 0
