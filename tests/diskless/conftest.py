"""The world of these tests on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.diskless.world import World, open_world
from tests.postgres import start_postgres


@pytest_asyncio.fixture(params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """An empty control plane and an empty directory for objects."""
    url = "sqlite:///:memory:" if request.param == "sqlite" else start_postgres().new_database()
    async with open_world(url, tmp_path / "objects") as opened:
        yield opened
