"""A coordinator on a clock that tests move and a log that is a list."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from strandline.config.groups import GroupSettings
from strandline.coordinators.groups import GroupCoordinator
from strandline.testing.clock import VirtualClock
from tests.coordinators.groups.known_topics import KnownTopics
from tests.coordinators.groups.members import GroupDriver
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog
from tests.golden import kafka_classic as kafka_classic


class CountedIds:
    """UUIDs that count up, so that a failing test prints the same ids every time."""

    def __init__(self) -> None:
        self._next = itertools.count(1)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=next(self._next))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def settings() -> GroupSettings:
    return replace(GroupSettings(), group_initial_rebalance_delay_ms=0)


@pytest_asyncio.fixture
async def log() -> MemoryCoordinatorLog:
    return MemoryCoordinatorLog()


@pytest.fixture
def topics() -> KnownTopics:
    return KnownTopics()


@pytest_asyncio.fixture
async def coordinator(
    clock: VirtualClock, settings: GroupSettings, log: MemoryCoordinatorLog, topics: KnownTopics
) -> AsyncIterator[GroupCoordinator]:
    """Running, and in charge of every partition."""
    async with GroupCoordinator(log, topics, clock=clock, ids=CountedIds(), settings=settings).running() as coordinator:
        for partition in range(log.partition_count()):
            coordinator.runtime.elected(partition, 0)
        await coordinator.runtime.wait_loaded()
        yield coordinator


@pytest_asyncio.fixture
async def group(coordinator: GroupCoordinator, clock: VirtualClock) -> GroupDriver:
    return GroupDriver(coordinator, clock)
