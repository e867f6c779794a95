"""Every port on every implementation: the fixtures here come once per database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.controlplane import SqlControlPlane
from strandline.health import Health
from strandline.sql import SqlStore, open_store
from strandline.sql.watched import WatchedStore
from strandline.testing.clock import VirtualClock
from tests.controlplane.making import LOGS, HandSetClock
from tests.postgres import start_postgres


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'metadata.db'}"
    return start_postgres().new_database()


@pytest_asyncio.fixture
async def sql(database_url: str) -> AsyncIterator[SqlStore]:
    """An open store with an up-to-date schema and a table to play with."""
    async with open_store(database_url) as store:
        async with store.transaction() as tx:
            await tx.execute("CREATE TABLE things (id BIGINT PRIMARY KEY, name TEXT NOT NULL)")
        yield WatchedStore(store, Health("database", "the database", "sql://", VirtualClock()))  # as brokers use it


@pytest.fixture
def time() -> HandSetClock:
    """The time of the control plane: NOW of tests.controlplane.making, until a test sets it."""
    return HandSetClock()


@pytest_asyncio.fixture
async def plane(sql: SqlStore, time: HandSetClock) -> SqlControlPlane:
    """A control plane with the logs A, B and C of tests.controlplane.making."""
    control = SqlControlPlane(sql, clock=VirtualClock(), time=time)
    await control.lifecycle.create_logs(LOGS)
    return control
