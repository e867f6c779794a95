"""The control plane answers about a partition after something else has become of it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest

from strandline.controlplane.plane import SqlControlPlane
from strandline.controlplane.values import BoundarySet, DisklessLog, MigrationState, NewBoundary
from strandline.model import TopicIdPartition
from tests.hybrid.migration.world import switching_broker


async def test_an_answer_from_before_the_boundary_does_not_undo_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    initialize, logs = SqlControlPlane.initialize_diskless_migration, SqlControlPlane.logs
    is_asked, is_joined, is_told = asyncio.Event(), asyncio.Event(), asyncio.Event()
    held: list[Mapping[TopicIdPartition, DisklessLog]] = []

    async def setting(plane: SqlControlPlane, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
        held.append(await logs(plane, [boundary.partition for boundary in boundaries]))
        answers = await initialize(plane, boundaries)
        await is_asked.wait()
        return answers

    async def late(
        plane: SqlControlPlane, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, DisklessLog]:
        if not held or is_told.is_set():
            return await logs(plane, partitions)
        is_asked.set()
        await is_joined.wait()
        is_told.set()
        return held[0]

    monkeypatch.setattr(SqlControlPlane, "initialize_diskless_migration", setting)
    monkeypatch.setattr(SqlControlPlane, "logs", late)
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
