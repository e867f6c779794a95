"""What coordinators do while their log is not replicated, and when that is over: memory follows the log.

A change that is in the log of the leader alone has no effect, a request that waits for it is answered in bounded time,
and what becomes of the change is what the state says afterwards, here and on a broker that loads the log.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from strandline.config.groups import GroupSettings
from strandline.config.sharing import ShareSettings
from strandline.config.transactions import TransactionSettings
from strandline.coordinators.groups import CommitRequest, GroupCoordinator, PartitionCommit
from strandline.coordinators.groups.coordinator import offsets_topic
from strandline.coordinators.runtime import CoordinatorRuntime, TransactionEnd
from strandline.coordinators.share_states import DeliveryBatch, DeliveryState, ShareCoordinator, ShareStateUpdate
from strandline.coordinators.share_states import SharePartitionKey as Key
from strandline.coordinators.share_states.coordinator import share_state_topic
from strandline.coordinators.transactions import TransactionCoordinator, TransactionLimits
from strandline.coordinators.transactions.coordinator import transaction_state_topic
from strandline.coordinators.transactions.states import TransactionState
from strandline.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
    RequestTimedOut,
)
from strandline.metadata import Images
from strandline.model import ProducerAndEpoch, ProducerId, TopicPartition
from strandline.testing.clock import VirtualClock
from tests.coordinators.groups.conftest import CountedIds
from tests.coordinators.groups.known_topics import KnownTopics
from tests.coordinators.replicated_topic import BOTH, ReplicatedTopic, open_replicated_topic
from tests.coordinators.share_states.test_share_state_golden import OneTopic
from tests.coordinators.transactions.test_coordinator import InstantMarkers
from tests.waiting import until

PLACE = TopicPartition("orders", 0)
SHARED = Key("g", UUID(int=5), 0)
TIMEOUT_S = 6.0
"""Longer than any coordinator lets a request wait for its log."""


@asynccontextmanager
async def led(topic: ReplicatedTopic, runtime: CoordinatorRuntime[Any]) -> AsyncIterator[None]:
    """The coordinator follows the metadata, and has loaded its partition."""
    topic.replicas.add_listener(topic.name, runtime)
    topic.let_go()
    await runtime.wait_loaded()
    yield


async def loaded_again(topic: ReplicatedTopic, runtime: CoordinatorRuntime[Any]) -> None:
    """As a broker that has the log of this one begins."""
    runtime.resigned(0)
    topic.lead()
    runtime.elected(0, topic.partition.leader_epoch)
    await runtime.wait_loaded()


# Groups


class Groups:
    def __init__(self, directory: Path) -> None:
        self.clock = VirtualClock(1_000_000)
        settings = GroupSettings(offsets_topic_num_partitions=1)
        self.topic_context = open_replicated_topic(directory, offsets_topic(settings), self.clock)
        self.topic = self.topic_context.__enter__()
        self.coordinator = GroupCoordinator(
            self.topic.log, KnownTopics(), clock=self.clock, ids=CountedIds(), settings=settings
        )

    async def commit(self, offset: int, *, producer: ProducerAndEpoch | None = None) -> None:
        commit = PartitionCommit(topic=PLACE.topic, partition=PLACE.partition, offset=offset)
        assert await self.coordinator.commit(CommitRequest(group_id="g", producer=producer, offsets=(commit,))) == [
            None
        ]

    async def offset(self) -> int:
        (found,) = await self.coordinator.fetch("g", [PLACE])
        return found.offset


@pytest_asyncio.fixture
async def groups(tmp_path: Path) -> AsyncIterator[Groups]:
    made = Groups(tmp_path)
    try:
        async with made.coordinator.running(), led(made.topic, made.coordinator.runtime):
            yield made
    finally:
        made.topic_context.__exit__(None, None, None)


async def test_an_offset_that_is_replicated_too_late_for_its_client_counts_nevertheless(groups: Groups) -> None:
    await groups.commit(3)
    groups.topic.hold()
    late = asyncio.create_task(groups.commit(5))
    await groups.clock.advance(TIMEOUT_S)
    with pytest.raises(CoordinatorNotAvailable):
        await late
    assert await groups.offset() == 3
    groups.topic.let_go()
    assert await groups.offset() == 5
    await loaded_again(groups.topic, groups.coordinator.runtime)
    assert await groups.offset() == 5


async def test_an_offset_that_the_next_leader_lacks_does_not_count(groups: Groups) -> None:
    await groups.commit(3)
    groups.topic.hold()
    lost = asyncio.create_task(groups.commit(5))
    await groups.clock.settle()
    groups.topic.lose()
    with pytest.raises(NotCoordinator):
        await lost
    groups.topic.lead()
    await groups.coordinator.runtime.wait_loaded()
    assert await groups.offset() == 3


async def test_commits_that_arrive_together_wait_together(groups: Groups) -> None:
    groups.topic.hold()
    before = groups.topic.end
    commits = [asyncio.create_task(groups.commit(offset)) for offset in (1, 2, 3)]
    await groups.clock.settle()
    assert groups.topic.end == before + 3
    groups.topic.let_go()
    await asyncio.gather(*commits)
    assert await groups.offset() == 3


async def test_offsets_of_a_transaction_that_are_late_are_decided_by_its_marker(groups: Groups) -> None:
    producer = ProducerAndEpoch(7, 0)
    groups.topic.hold()
    late = asyncio.create_task(groups.commit(5, producer=producer))
    await groups.clock.advance(TIMEOUT_S)
    with pytest.raises(CoordinatorNotAvailable):
        await late
    end = asyncio.create_task(groups.coordinator.end_transaction(0, TransactionEnd(ProducerAndEpoch(7, 1), True, 0, 2)))
    await groups.clock.advance(TIMEOUT_S)
    with pytest.raises(RequestTimedOut):
        await end  # not written: the transaction coordinator has to ask again
    groups.topic.let_go()
    await groups.coordinator.end_transaction(0, TransactionEnd(ProducerAndEpoch(7, 1), True, 0, 2))
    assert await groups.offset() == 5
    await loaded_again(groups.topic, groups.coordinator.runtime)
    assert await groups.offset() == 5


# Transactions


class Transactions:
    def __init__(self, directory: Path) -> None:
        self.clock, self.markers = VirtualClock(1_000_000), InstantMarkers()
        self.markers.held = {}
        topic = transaction_state_topic(TransactionSettings(transaction_state_log_num_partitions=1))
        self.topic_context = open_replicated_topic(directory, topic, self.clock)
        self.topic = self.topic_context.__enter__()
        ids = itertools.count(100)

        async def new_producer_id() -> ProducerId:
            return next(ids)

        self.coordinator = TransactionCoordinator(
            self.topic.log, self.markers, new_producer_id, clock=self.clock, limits=TransactionLimits()
        )

    async def begun(self) -> ProducerAndEpoch:
        """A producer with an open transaction that is replicated."""
        producer = await self.coordinator.init_producer_id("pay", timeout_ms=60_000)
        await self.coordinator.add_partitions("pay", producer, [PLACE], client_version=2)
        return producer

    async def commit(self, producer: ProducerAndEpoch) -> None:
        await self.coordinator.end("pay", producer, is_commit=True, client_version=2)

    def state(self) -> TransactionState:
        return self.coordinator.describe("pay").state


@pytest_asyncio.fixture
async def transactions(tmp_path: Path) -> AsyncIterator[Transactions]:
    made = Transactions(tmp_path)
    try:
        async with made.coordinator.running(), led(made.topic, made.coordinator.runtime):
            yield made
    finally:
        made.topic_context.__exit__(None, None, None)


async def test_a_decision_that_is_replicated_late_is_made_then(transactions: Transactions) -> None:
    producer = await transactions.begun()
    transactions.topic.hold()
    late = asyncio.create_task(transactions.commit(producer))
    await transactions.clock.advance(TIMEOUT_S)
    with pytest.raises(CoordinatorNotAvailable):
        await late
    assert transactions.state() is TransactionState.ONGOING
    assert transactions.markers.sent == []
    with pytest.raises(ConcurrentTransactions):  # no other decision is made meanwhile
        await asyncio.gather(
            transactions.coordinator.end("pay", producer, is_commit=False, client_version=2),
            transactions.clock.advance(1),
        )
    transactions.topic.let_go()
    assert transactions.state() is TransactionState.PREPARE_COMMIT
    assert [one.state for one in transactions.markers.sent] == [TransactionState.PREPARE_COMMIT]
    await loaded_again(transactions.topic, transactions.coordinator.runtime)
    assert transactions.state() is TransactionState.PREPARE_COMMIT


async def test_a_decision_that_the_next_leader_lacks_was_not_made(transactions: Transactions) -> None:
    producer = await transactions.begun()
    transactions.topic.hold()
    lost = asyncio.create_task(transactions.commit(producer))
    await transactions.clock.settle()
    transactions.topic.lose()
    with pytest.raises(NotCoordinator):
        await lost
    transactions.topic.lead()
    await transactions.coordinator.runtime.wait_loaded()
    assert transactions.state() is TransactionState.ONGOING
    assert transactions.markers.sent == []


@pytest.mark.parametrize("is_kept", [True, False], ids=["replicated", "lost"])
async def test_a_coordinator_acts_on_nothing_that_its_log_has_alone(transactions: Transactions, is_kept: bool) -> None:
    """It would send markers of a decision that the next leader may not know, and that one would decide otherwise."""
    producer = await transactions.begun()
    runtime, topic = transactions.coordinator.runtime, transactions.topic
    topic.hold()
    unknown = asyncio.create_task(transactions.commit(producer))
    await transactions.clock.settle()
    runtime.resigned(0)
    with pytest.raises(NotCoordinator):
        await unknown
    topic.lead(isr=BOTH)  # it was elected again, with a Prepare record that is in its own log only
    runtime.elected(0, topic.partition.leader_epoch)
    await until(lambda: topic.waiting == 2, "the load, beside the append")
    await transactions.clock.settle()
    with pytest.raises(CoordinatorLoadInProgress):
        transactions.coordinator.describe("pay")
    assert transactions.markers.sent == []
    if is_kept:
        topic.let_go()
    else:
        topic.lose()
        topic.lead()
    await runtime.wait_loaded()
    assert transactions.state() is (TransactionState.PREPARE_COMMIT if is_kept else TransactionState.ONGOING)
    assert len(transactions.markers.sent) == is_kept


# State of share partitions


class SharedStates:
    def __init__(self, directory: Path) -> None:
        self.clock = VirtualClock(1_000_000)
        settings = ShareSettings(share_coordinator_state_topic_num_partitions=1)
        self.topic_context = open_replicated_topic(directory, share_state_topic(settings), self.clock)
        self.topic = self.topic_context.__enter__()
        images: Images = OneTopic(SHARED.topic_id)
        self.coordinator = ShareCoordinator(self.topic.log, images, clock=self.clock, settings=settings)

    async def accept(self, first: int, last: int) -> None:
        batch = DeliveryBatch(first, last, DeliveryState.ACKNOWLEDGED, 1)
        update = ShareStateUpdate(state_epoch=0, leader_epoch=0, start_offset=0, batches=(batch,))
        await self.coordinator.write(SHARED, update)

    async def accepted(self) -> list[tuple[int, int]]:
        state = await self.coordinator.read(SHARED, leader_epoch=0)
        return [(batch.first_offset, batch.last_offset) for batch in state.batches]


@pytest_asyncio.fixture
async def shared(tmp_path: Path) -> AsyncIterator[SharedStates]:
    made = SharedStates(tmp_path)
    try:
        async with made.coordinator.running(), led(made.topic, made.coordinator.runtime):
            await made.coordinator.initialize(SHARED, state_epoch=0, start_offset=0)
            await made.coordinator.read(SHARED, leader_epoch=0)
            yield made
    finally:
        made.topic_context.__exit__(None, None, None)


async def test_state_of_a_share_partition_that_is_replicated_late_counts(shared: SharedStates) -> None:
    await shared.accept(0, 4)
    shared.topic.hold()
    late = asyncio.create_task(shared.accept(10, 14))
    await shared.clock.advance(TIMEOUT_S)
    with pytest.raises(CoordinatorNotAvailable):
        await late
    shared.topic.let_go()
    assert await shared.accepted() == [(0, 4), (10, 14)]
    await loaded_again(shared.topic, shared.coordinator.runtime)
    assert await shared.accepted() == [(0, 4), (10, 14)]


async def test_state_of_a_share_partition_that_the_next_leader_lacks_does_not_count(shared: SharedStates) -> None:
    await shared.accept(0, 4)
    shared.topic.hold()
    lost = asyncio.create_task(shared.accept(10, 14))
    await shared.clock.settle()
    shared.topic.lose()
    with pytest.raises(NotCoordinator):
        await lost
    shared.topic.lead()
    await shared.coordinator.runtime.wait_loaded()
    assert await shared.accepted() == [(0, 4)]
