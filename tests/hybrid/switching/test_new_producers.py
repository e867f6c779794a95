"""Idempotent producers whose very first batch comes while the log is sealed, with more of them right behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from strandline.controlplane.switches import SqlMigrations
from strandline.controlplane.values import BoundarySet, NewBoundary
from strandline.errors import OutOfOrderSequence, RequestTimedOut
from tests.hybrid.switching.world import switching_broker


async def test_a_batch_that_was_sent_behind_a_refused_one_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log takes any first sequence of a producer that it does not know: the refused batch could not be written."""
    initialize, may_go_on = SqlMigrations.initialize_diskless_migration, asyncio.Event()

    async def slow(migrations: SqlMigrations, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
        await may_go_on.wait()
        return await initialize(migrations, boundaries)

    monkeypatch.setattr(SqlMigrations, "initialize_diskless_migration", slow)
    async with switching_broker(tmp_path) as broker:
        await broker.create("t", records=2)
        await broker.flag("t", is_diskless=True)
        await broker.until(lambda: broker.broker.replicas.find("t", 0).is_sealed)
        with pytest.raises(RequestTimedOut):
            await broker.append("t", producer_id=7, sequence=0)
        may_go_on.set()
        await broker.switched("t")
        with pytest.raises(OutOfOrderSequence):
            await broker.append("t", producer_id=7, sequence=1)
        assert await broker.append("t", producer_id=8, sequence=5) == 2, "others are taken as ever"
        assert await broker.append("t", producer_id=7, sequence=0) == 3
        assert await broker.append("t", producer_id=7, sequence=1) == 4
