"""A control plane that is away for long: partitions whose boundary is not known wait for it, and then go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from strandline.controlplane.switches import SqlMigrations
from strandline.controlplane.values import TopicMigration
from strandline.hybrid.switching import switches
from strandline.sql import StoreUnavailable
from tests.hybrid.switching.world import switching_broker

HOURS = 1_100
"""Attempts that fail, one after the other: those of some hours."""


async def test_an_outage_of_hours_does_not_end_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with switching_broker(tmp_path) as broker:
        await broker.create("t", records=3)
        await broker.flag("t", is_diskless=True)
        await broker.switched("t")
    read, attempts = SqlMigrations.topic_migrations, 0

    async def away(migrations: SqlMigrations) -> Sequence[TopicMigration]:
        nonlocal attempts
        attempts += 1
        if attempts < HOURS:
            raise StoreUnavailable("A test takes the database away.")
        return await read(migrations)

    monkeypatch.setattr(SqlMigrations, "topic_migrations", away)
    monkeypatch.setattr(switches, "_LONGEST_PAUSE_S", 0.0)
    async with switching_broker(tmp_path) as broker:
        await broker.switched("t")
        assert attempts >= HOURS
        assert await broker.append("t") == 3
