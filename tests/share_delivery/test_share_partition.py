"""One share partition: where it begins, what it stores, and what becomes of records when that fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID

import pytest

from strandline.config.share_group import ShareGroupConfig
from strandline.coordinators.runtime import Timers
from strandline.coordinators.share_states import (
    DeliveryBatch,
    DeliveryState,
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    ShareStateUpdate,
)
from strandline.errors import (
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    InvalidRequest,
    LeaderNotAvailable,
    NotCoordinator,
    NotLeaderOrFollower,
    StrandlineError,
    UnknownTopicOrPartition,
)
from strandline.hybrid.partition import ServedPartition
from strandline.model import NO_EPOCH, TopicPartition
from strandline.reads import EARLIEST, LATEST, FetchIsolation, FoundOffset
from strandline.share_delivery.delivery import Acknowledgement, AcknowledgeType, FetchedBatch
from strandline.share_delivery.partition import SharePartition
from strandline.share_errors import FencedStateEpoch, InvalidRecordState
from strandline.tasks import TaskSet
from strandline.testing.clock import VirtualClock

S = DeliveryState
KEY = SharePartitionKey("g", UUID(int=1), 0)
ACCEPT, RELEASE = [AcknowledgeType.ACCEPT], [AcknowledgeType.RELEASE]


class LeaderStates:
    """The part of `ShareGroupStates` that a leader does not use."""

    async def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: int) -> None:
        raise AssertionError("a leader does not initialize")

    async def delete(self, key: SharePartitionKey) -> None:
        raise AssertionError("a leader does not delete")

    async def summary(self, key: SharePartitionKey) -> ShareStateSummary:
        raise AssertionError("a leader needs the batches")


class States(LeaderStates):
    """`ShareGroupStates` of one share partition, which can be told to fail or to wait."""

    def __init__(self, start_offset: int = 0, *batches: DeliveryBatch) -> None:
        self.state = ShareState(
            state_epoch=3, leader_epoch=0, start_offset=start_offset, batches=batches, created_ms=0, written_ms=0
        )
        self.writes: list[ShareStateUpdate] = []
        self.fail_with: StrandlineError | None = None
        self.write_fails_with: StrandlineError | None = None
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def read(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        await self._wait()
        assert leader_epoch == 7
        return self.state

    async def write(self, key: SharePartitionKey, update: ShareStateUpdate) -> None:
        await self._wait()
        if self.write_fails_with is not None:
            raise self.write_fails_with
        self.writes.append(update)

    async def _wait(self) -> None:
        await self.is_open.wait()
        if self.fail_with is not None:
            raise self.fail_with


class Served:
    """The part of `ServedPartition` that a share partition asks."""

    topic_partition = TopicPartition("t", 0)
    leader_epoch = 7

    def __init__(self) -> None:
        self.asked: list[int] = []

    @property
    def newest(self) -> Served:
        return self

    async def list_offset(
        self,
        timestamp: int,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: int,
        timeout_ms: int = 0,
    ) -> FoundOffset:
        self.asked.append(timestamp)
        return FoundOffset(-1, {EARLIEST: 5, LATEST: 50}.get(timestamp, -1), NO_EPOCH)


class Witness:
    """A `Watcher` that counts."""

    def __init__(self) -> None:
        self.notified = 0

    def notify(self) -> None:
        self.notified += 1


class World:
    def __init__(self, states: States, config: ShareGroupConfig, *, predecessor: SharePartition | None = None) -> None:
        self.states, self.config, self.clock = states, config, VirtualClock()
        self.served, self.witness = Served(), Witness()
        self.timers, self.tasks = Timers(self.clock), TaskSet()
        self.fenced: list[SharePartition] = []
        self.share = SharePartition(
            KEY,
            cast(ServedPartition, self.served),
            states,
            lambda: self.config,
            clock=self.clock,
            timers=self.timers,
            spawn=self.spawn,
            on_fenced=self.fenced.append,
            predecessor=predecessor,
        )
        self.share.watch(self.witness)

    def spawn(self, work: Coroutine[Any, Any, None]) -> object:
        return self.tasks.start(work, name="test")

    def acquire(self, first: int, last: int, member: str = "m") -> list[tuple[int, int, int]]:
        found = self.share.acquire(
            member, first, [FetchedBatch(first, last)], max_records=500, batch_size=500, is_strict=False
        )
        return [(one.first, one.last, one.delivery_count) for one in found]

    def said(self, first: int, last: int, types: list[AcknowledgeType]) -> asyncio.Task[None]:
        return asyncio.ensure_future(self.share.acknowledge("m", [Acknowledgement(first, last, types)]))


@asynccontextmanager
async def opened(
    states: States | None = None, *, predecessor: SharePartition | None = None, **config: Any
) -> AsyncIterator[World]:
    world = World(states or States(), ShareGroupConfig(**config), predecessor=predecessor)
    timers = asyncio.ensure_future(world.timers.run())
    try:
        await world.clock.settle()
        yield world
    finally:
        timers.cancel()
        await world.tasks.close()


@pytest.mark.parametrize(
    ("reset", "start", "asked"),
    [
        ("earliest", 5, [EARLIEST]),
        ("latest", 50, [LATEST]),
        ("by_duration:PT1H", 50, [1_700_000_000_000 - 3_600_000, LATEST]),
    ],
)
async def test_a_group_without_an_offset_begins_where_its_setting_says(
    reset: str, start: int, asked: list[int]
) -> None:
    async with opened(States(-1), share_auto_offset_reset=reset) as world:
        assert world.share.next_offset() == start
        assert world.served.asked == asked
        [kept] = world.states.writes
        assert (kept.start_offset, kept.delivery_complete_count, kept.batches) == (start, 0, ())


async def test_nobody_gets_records_before_the_first_offset_is_kept() -> None:
    states = States(-1)
    states.write_fails_with = CoordinatorNotAvailable("the share coordinator is away")
    async with opened(states) as world:
        with pytest.raises(CoordinatorNotAvailable):
            world.share.next_offset()


async def test_a_successor_reads_what_its_predecessor_was_still_writing() -> None:
    """In the same leader epoch nothing else keeps them apart."""
    async with opened() as former:
        former.acquire(0, 3)
        former.states.is_open.clear()
        waiting = former.said(0, 3, ACCEPT)
        await former.clock.settle()
        assert former.share.is_writing
        former.share.fence(NotLeaderOrFollower("No member fetches it any more."))
        async with opened(predecessor=former.share) as world:
            assert not world.share.is_loaded
            former.states.is_open.set()
            await waiting
            await world.clock.settle()
            assert world.share.is_loaded


async def test_a_group_with_an_offset_goes_on_there() -> None:
    states = States(10, DeliveryBatch(10, 11, S.ACKNOWLEDGED, 1), DeliveryBatch(14, 15, S.AVAILABLE, 2))
    async with opened(states) as world:
        assert world.served.asked == []
        assert world.share.next_offset() == 12
        assert world.acquire(12, 16) == [(12, 13, 1), (14, 15, 3), (16, 16, 1)]


async def test_one_that_is_fenced_while_it_loads_leaves_the_first_offset_to_its_successor() -> None:
    """It would choose another one, and what its successor has delivered before that would be lost."""
    states = States(-1)
    states.is_open.clear()
    async with opened(states, share_auto_offset_reset="latest") as former:
        former.share.fence(NotLeaderOrFollower("It is served in another way now."))
        assert former.share.is_writing
        async with opened(States(-1), predecessor=former.share, share_auto_offset_reset="latest") as world:
            assert not world.share.is_loaded
            states.is_open.set()
            await former.clock.settle()
            await world.clock.settle()
            assert world.share.next_offset() == 50
        assert former.states.writes == []


async def test_until_it_is_loaded_nobody_gets_records_and_a_failed_load_says_why() -> None:
    states = States()
    states.is_open.clear()
    async with opened(states) as world:
        with pytest.raises(LeaderNotAvailable):
            world.share.next_offset()
        states.fail_with = NotCoordinator("it moved")
        states.is_open.set()
        await world.clock.settle()
        assert world.witness.notified
        with pytest.raises(CoordinatorNotAvailable):
            world.share.next_offset()


async def test_an_acknowledgement_counts_when_it_is_stored_and_others_wait_for_the_next_write() -> None:
    async with opened() as world:
        assert world.acquire(0, 9) == [(0, 9, 1)]
        world.states.is_open.clear()
        first = world.said(0, 1, ACCEPT)
        await world.clock.settle()
        second, third = world.said(2, 3, ACCEPT), world.said(4, 4, RELEASE)
        await world.clock.settle()
        assert [task.done() for task in (first, second, third)] == [False] * 3
        assert world.share.next_offset() == 10, "what is being released is not available yet"
        world.states.is_open.set()
        await asyncio.gather(first, second, third)
        assert [(update.start_offset, update.delivery_complete_count) for update in world.states.writes] == [
            (0, 2),
            (2, 2),
        ]
        assert world.states.writes[1].batches == (
            DeliveryBatch(2, 3, S.ACKNOWLEDGED, 1),
            DeliveryBatch(4, 4, S.AVAILABLE, 1),
        )
        assert {(update.state_epoch, update.leader_epoch) for update in world.states.writes} == {(3, 7)}
        assert world.share.next_offset() == 4


async def test_a_write_that_fails_leaves_the_records_with_the_member() -> None:
    async with opened() as world:
        world.acquire(0, 3)
        world.states.fail_with = NotCoordinator("it moved")
        with pytest.raises(CoordinatorNotAvailable):
            await world.said(0, 3, ACCEPT)
        world.states.fail_with = None
        await world.said(0, 3, ACCEPT)
        assert world.states.writes[-1].batches == (DeliveryBatch(0, 3, S.ACKNOWLEDGED, 1),)
        assert world.fenced == []


@pytest.mark.parametrize(
    "error",
    [
        FencedLeaderEpoch("another leads"),
        FencedStateEpoch("begun anew"),
        InvalidRequest("no state: the group was deleted"),
        UnknownTopicOrPartition("so was the topic"),
    ],
)
async def test_a_leader_that_is_fenced_is_of_no_use_any_more(error: StrandlineError) -> None:
    async with opened() as world:
        world.acquire(0, 3)
        world.states.fail_with = error
        with pytest.raises(StrandlineError):
            await world.said(0, 3, ACCEPT)
        assert world.fenced == [world.share]
        with pytest.raises(StrandlineError):
            world.share.next_offset()


async def test_only_who_was_turned_away_hears_that_a_read_is_through() -> None:
    """Idle members would wake each other up for ever."""
    async with opened() as world:
        before = world.witness.notified
        reader, waiting = Witness(), Witness()
        for one in (reader, waiting):
            world.share.watch(one)
        world.share.is_fetching = True
        world.share.turn_away(waiting)
        world.share.end_fetch(reader)
        assert (world.witness.notified - before, reader.notified, waiting.notified) == (0, 0, 1)
        world.share.end_fetch(waiting)
        assert (reader.notified, waiting.notified) == (0, 1)


async def test_locks_end_and_records_that_failed_too_often_are_given_up() -> None:
    async with opened(share_delivery_count_limit=2, share_record_lock_duration_ms=20_000) as world:
        assert world.acquire(0, 1) == [(0, 1, 1)]
        await world.clock.advance(19)
        assert world.states.writes == []
        await world.clock.advance(2)
        assert world.states.writes[-1].batches == (DeliveryBatch(0, 1, S.AVAILABLE, 1),)
        assert world.acquire(0, 1) == [(0, 1, 2)]
        with pytest.raises(InvalidRecordState):
            await world.share.acknowledge("other", [Acknowledgement(0, 1, ACCEPT)])
        await world.clock.advance(21)
        assert world.states.writes[-1].start_offset == 2, "both are given up, so nothing is left"
        assert world.share.next_offset() == 2


async def test_a_lock_that_ends_while_an_acknowledgement_is_stored_ends_if_that_fails() -> None:
    async with opened(share_record_lock_duration_ms=20_000) as world:
        world.acquire(0, 1)
        world.states.is_open.clear()
        waiting = world.said(0, 1, ACCEPT)
        await world.clock.advance(25)
        world.states.fail_with = NotCoordinator("it moved")
        world.states.is_open.set()
        with pytest.raises(CoordinatorNotAvailable):
            await waiting
        world.states.fail_with = None
        await world.clock.advance(1)
        assert world.share.next_offset() == 0
        assert world.acquire(0, 1, "other") == [(0, 1, 2)]


async def test_an_end_of_a_lock_that_could_not_be_stored_goes_with_the_next_write() -> None:
    """Else another leader would deliver the records more often than the limit says."""
    async with opened(share_record_lock_duration_ms=20_000, share_delivery_count_limit=3) as world:
        assert world.acquire(0, 1) == [(0, 1, 1)]
        world.states.fail_with = NotCoordinator("it moved")
        await world.clock.advance(21)
        assert world.acquire(0, 0) == [(0, 0, 2)]
        await world.clock.advance(21)
        world.states.fail_with = None
        assert world.acquire(2, 2) == [(2, 2, 1)]
        await world.said(2, 2, ACCEPT)
        assert world.states.writes[-1].batches == (
            DeliveryBatch(0, 0, S.AVAILABLE, 2),
            DeliveryBatch(1, 1, S.AVAILABLE, 1),
            DeliveryBatch(2, 2, S.ACKNOWLEDGED, 1),
        )
        assert world.acquire(3, 3) == [(3, 3, 1)]
        await world.said(3, 3, ACCEPT)
        assert list(world.states.writes[-1].batches) == [DeliveryBatch(3, 3, S.ACKNOWLEDGED, 1)], "once is enough"


async def test_a_member_that_renews_keeps_its_records_if_the_group_allows_it() -> None:
    renew = [AcknowledgeType.RENEW]
    async with opened(share_record_lock_duration_ms=20_000) as world:
        world.acquire(0, 1)
        await world.clock.advance(15)
        await world.said(0, 1, renew)
        await world.clock.advance(15)
        assert world.states.writes == []
        await world.said(0, 1, ACCEPT)
        world.config = ShareGroupConfig(share_renew_acknowledge_enable=False)
        world.acquire(2, 3)
        with pytest.raises(InvalidRecordState, match=r"share\.renew\.acknowledge\.enable"):
            await world.said(2, 3, renew)


async def test_records_of_a_member_that_leaves_were_delivered_once_more() -> None:
    """As in Kafka 4.3.1: a record that ends its members does so only as often as the group allows."""
    async with opened() as world:
        world.acquire(0, 1)
        world.acquire(2, 3, "other")
        stored = world.share.release("m")
        assert stored is not None
        assert world.acquire(4, 4) == [(4, 4, 1)], "another session of the same member keeps what it gets"
        assert await stored is None
        assert world.states.writes[-1].batches == (DeliveryBatch(0, 1, S.AVAILABLE, 1),)
        assert world.acquire(0, 1) == [(0, 1, 2)]
        assert world.share.release("nobody") is None


async def test_records_of_a_member_that_leaves_are_given_up_after_their_last_delivery() -> None:
    async with opened(share_delivery_count_limit=1) as world:
        world.acquire(0, 1)
        stored = world.share.release("m")
        assert stored is not None
        assert await stored is None
        assert world.states.writes[-1].batches == (DeliveryBatch(0, 1, S.ARCHIVED, 1),)
        assert world.acquire(0, 2) == [(2, 2, 1)]


async def test_as_many_records_as_the_group_may_lock_are_delivered() -> None:
    async with opened(share_partition_max_record_locks=100) as world:
        world.acquire(0, 99)
        assert world.share.next_offset() is None
        await world.said(50, 50, RELEASE)
        assert world.share.next_offset() == 50
        with pytest.raises(InvalidRequest):
            await world.said(99, 100, ACCEPT)
