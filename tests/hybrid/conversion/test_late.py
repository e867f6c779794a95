"""Segments that were given up are deleted once more: one whose deletion hangs or fails holds up no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from strandline.controlplane.conversion.values import GivenUpSegment
from strandline.hybrid.conversion.figures import TieringFigures
from strandline.hybrid.conversion.keeper import LOOK_SECONDS, ConvertedKeeper, KeeperPorts
from strandline.model import TopicIdPartition, TopicPartition
from strandline.remote.ports import RemoteStorageError
from strandline.tasks import next_turn
from strandline.testing.clock import VirtualClock

PARTITION = TopicIdPartition(UUID(int=7), TopicPartition("t", 0))
DUE_MS = 1000


class Rows:
    """The rows of segments that were given up, all due at the same time; and no converted partitions."""

    def __init__(self, count: int) -> None:
        self.left = {UUID(int=number): number for number in range(count)}
        self.looks = 0

    async def given_up_segments(self, *, limit: int, after: Any = None) -> Sequence[GivenUpSegment]:
        self.looks += 1
        known = sorted(id_ for id_ in self.left if after is None or id_ > after.segment_id)
        return [GivenUpSegment(PARTITION, id_, self.left[id_], self.left[id_], DUE_MS) for id_ in known[:limit]]

    async def given_up_deleted(self, segment_id: UUID) -> None:
        del self.left[segment_id]

    async def converted_logs(self) -> Sequence[Any]:
        return ()


class Storage:
    """Deletes some segments, by their offset, and refuses others, or does not answer."""

    def __init__(self) -> None:
        self.failing: set[int] = set()
        self.hanging: set[int] = set()
        self.attempts: list[int] = []

    async def delete_late(self, partition: TopicIdPartition, segment_id: UUID, start: int, end: int) -> None:
        self.attempts.append(start)
        if start in self.hanging:
            await asyncio.Event().wait()
        if start in self.failing:
            raise RemoteStorageError(f"no deletion of {start}")


@asynccontextmanager
async def keeping(rows: Rows, storage: Storage) -> AsyncIterator[Callable[[int], Any]]:
    """A keeper, and what lets it look so many times."""
    clock = VirtualClock()
    nothing: Any = SimpleNamespace()
    metadata: Any = SimpleNamespace(unsubscribe_others=lambda tier, led: None)
    tiered: Any = SimpleNamespace(storage=SimpleNamespace(is_open=True, manager=SimpleNamespace(pipeline=storage)))
    diskless: Any = SimpleNamespace(registry=SimpleNamespace(without_log={}))
    given_up: Any = rows
    keeper = ConvertedKeeper(
        KeeperPorts(
            logs=nothing, conversion=given_up, given_up=given_up, trimming=nothing, prefixes=nothing, time=nothing
        ),
        diskless,
        tiered,
        nothing,
        metadata,
        nothing,
        nothing,
        topic_config=lambda topic: nothing,
        figures=TieringFigures(),
        clock=clock,
    )

    async def look(times: int) -> None:
        for _ in range(times):
            clock.move(LOOK_SECONDS)
            for _ in range(200):
                await next_turn()

    task = asyncio.create_task(keeper.run())
    await next_turn()
    try:
        yield look
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_one_that_hangs_and_one_that_fails_hold_up_no_other() -> None:
    rows, storage = Rows(30), Storage()
    storage.hanging, storage.failing = {0}, {1}
    async with keeping(rows, storage) as look:
        await look(2)
        assert sorted(rows.left.values()) == [0, 1]
        assert storage.attempts.count(0) == 1
        storage.failing.clear()
        await look(2)
        assert sorted(rows.left.values()) == [0]


async def test_more_failures_than_one_look_finds_hold_up_no_other() -> None:
    rows, storage = Rows(1000), Storage()
    storage.failing = set(range(990))
    async with keeping(rows, storage) as look:
        await look(60)
        assert sorted(rows.left.values()) == list(range(990))


async def test_a_failure_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    rows, storage = Rows(3), Storage()
    storage.failing = {1}
    with caplog.at_level(logging.INFO):
        async with keeping(rows, storage) as look:
            await look(4)
            rows.left[UUID(int=9)] = 9  # another one that can be deleted says nothing of the first
            await look(4)
            storage.failing.clear()
            await look(2)
    assert [record.message for record in caplog.records if "given up" in record.message] == [
        "deletion of segments that were given up failed, trying again: no deletion of 1",
        "deletion of segments that were given up succeeds again, after 8 attempts that failed",
    ]
