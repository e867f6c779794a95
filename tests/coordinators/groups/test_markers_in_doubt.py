"""Markers in `__consumer_offsets` that are written although the log has said that they are not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemClock
from strandline.config.groups import GroupSettings
from strandline.coordinators.groups import CommitRequest, GroupCoordinator, PartitionCommit
from strandline.coordinators.runtime import ReplicatedCoordinatorLog, TransactionEnd, WriteDone, WriteResult
from strandline.errors import InvalidProducerEpoch, RequestTimedOut
from strandline.model import LeaderEpoch, ProducerAndEpoch, TopicPartition
from tests.coordinators.groups.conftest import CountedIds
from tests.coordinators.groups.known_topics import KnownTopics
from tests.coordinators.runtime.replicas import LEADER_EPOCH, TOPIC, open_coordinator_log

PLACE = TopicPartition("orders", 0)


class SlowDisk(ReplicatedCoordinatorLog):
    """A log on real files. The next marker takes longer than anybody waits, and is written in the end."""

    is_slow = False

    def append_marker(self, partition: int, end: TransactionEnd, done: WriteDone, *, leader_epoch: LeaderEpoch) -> None:
        is_slow, self.is_slow = self.is_slow, False

        def answer(result: WriteResult) -> None:
            done(WriteResult(RequestTimedOut("It takes too long.")) if is_slow else result)

        super().append_marker(partition, end, answer, leader_epoch=leader_epoch)


@dataclass
class World:
    coordinator: GroupCoordinator
    log: SlowDisk
    committed: list[int] = field(default_factory=list)

    async def commit(self, offset: int, *, epoch: int) -> None:
        """In a transaction of producer 7."""
        request = CommitRequest(
            group_id="g",
            member_id="",
            generation_id=-1,
            producer=ProducerAndEpoch(7, epoch),
            offsets=(PartitionCommit(topic=PLACE.topic, partition=PLACE.partition, offset=offset),),
        )
        assert await self.coordinator.commit(request) == [None]

    async def end(self, *, epoch: int, is_commit: bool, version: int) -> None:
        end = TransactionEnd(ProducerAndEpoch(7, epoch), is_commit, 1, version)
        await self.coordinator.end_transaction(0, end)

    async def stable(self) -> tuple[int, bool]:
        """The offset of the group, and whether a transaction may change it."""
        (found,) = await self.coordinator.fetch("g", [PLACE], require_stable=True)
        return found.offset, found.error is None

    async def after_reload(self) -> tuple[int, bool]:
        self.coordinator.runtime.resigned(0)
        self.coordinator.runtime.elected(0, LEADER_EPOCH)
        await self.coordinator.runtime.wait_loaded()
        return await self.stable()


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    topic = replace(TOPIC, partitions=1)
    with open_coordinator_log(tmp_path, topic=topic) as (plain, _):
        log = SlowDisk(plain._replicas, plain._image, topic, clock=SystemClock())
        settings = replace(GroupSettings(), group_initial_rebalance_delay_ms=0)
        made = GroupCoordinator(log, KnownTopics(), clock=SystemClock(), ids=CountedIds(), settings=settings)
        async with made.running() as coordinator:
            coordinator.runtime.elected(0, LEADER_EPOCH)
            await coordinator.runtime.wait_loaded()
            yield World(coordinator, log)


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("version", [0, 2])
async def test_offsets_are_decided_when_the_marker_is_sent_again(world: World, is_commit: bool, version: int) -> None:
    """The coordinator of the transaction takes the refusal for success: nobody else would ever decide them."""
    await world.commit(3, epoch=0)
    await world.end(epoch=1, is_commit=True, version=2)
    await world.commit(5, epoch=1)
    world.log.is_slow = True
    marker_epoch = 2 if version == 2 else 1
    with pytest.raises(RequestTimedOut):
        await world.end(epoch=marker_epoch, is_commit=is_commit, version=version)
    assert (await world.stable())[1] is False
    try:
        await world.end(epoch=marker_epoch, is_commit=is_commit, version=version)
    except InvalidProducerEpoch:
        assert version == 2
    assert await world.stable() == ((5 if is_commit else 3), True)
    assert await world.after_reload() == ((5 if is_commit else 3), True)


async def test_a_marker_that_comes_late_decides_nothing_of_the_next_transaction(world: World) -> None:
    await world.commit(3, epoch=0)
    await world.end(epoch=1, is_commit=True, version=2)
    await world.commit(5, epoch=1)
    for _ in range(2):
        with pytest.raises(InvalidProducerEpoch):
            await world.end(epoch=1, is_commit=True, version=2)
        assert (await world.stable())[1] is False
        await world.after_reload()
    await world.end(epoch=2, is_commit=False, version=2)
    assert await world.stable() == (3, True)
