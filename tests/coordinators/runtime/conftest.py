"""A replicated dictionary on a clock that tests move and a log in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from strandline.testing.clock import VirtualClock
from tests.coordinators.runtime.dictionary import Dictionary
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest_asyncio.fixture
async def memory_log() -> MemoryCoordinatorLog:
    return MemoryCoordinatorLog()


@pytest_asyncio.fixture
async def dictionary(memory_log: MemoryCoordinatorLog, clock: VirtualClock) -> AsyncIterator[Dictionary]:
    """Running, and owner of partition 0 in epoch 1."""
    dictionary = Dictionary(memory_log, clock)
    async with dictionary.runtime.running():
        dictionary.lead(0, 1)
        await dictionary.runtime.wait_loaded()
        yield dictionary
