from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.pipeline.layouts import WalWorld, open_wal_world


@pytest_asyncio.fixture
async def wal(tmp_path: Path) -> AsyncIterator[WalWorld]:
    """Both stores in directories."""
    async with open_wal_world(tmp_path) as world:
        yield world
