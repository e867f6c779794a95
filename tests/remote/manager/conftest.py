from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from strandline.objects.memory import MemoryStore
from strandline.testing.clock import VirtualClock
from tests.remote.manager.world import World, open_world


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A tiered log without records, objects in memory, no manager running yet."""
    async with open_world(tmp_path, MemoryStore(VirtualClock())) as made:
        made.create_log()
        yield made
