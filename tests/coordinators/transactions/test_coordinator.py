"""The transaction coordinator over a log in memory: answers, refusals, and another broker that takes over."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import replace

import pytest
import pytest_asyncio

from strandline.coordinators.transactions.coordinator import (
    TransactionCoordinator,
    TransactionFilter,
    TransactionLimits,
    TransactionsStatus,
)
from strandline.coordinators.transactions.metadata import LAST_EPOCH, TransactionMetadata
from strandline.coordinators.transactions.states import TransactionState
from strandline.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidRegularExpression,
    InvalidRequest,
    InvalidTransactionTimeout,
    NotCoordinator,
    ProducerFenced,
    TransactionalIdNotFound,
)
from strandline.model import ProducerAndEpoch, ProducerId, TopicPartition
from strandline.testing.clock import VirtualClock
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog

A = TopicPartition("a", 0)


class InstantMarkers:
    """Markers are written at once, unless the test holds them back."""

    def __init__(self) -> None:
        self.held: dict[str, Callable[[], None]] | None = None
        self.sent: list[TransactionMetadata] = []

    @property
    def outstanding(self) -> int:
        return len(self.held or ())

    def send(self, transaction: TransactionMetadata, *, coordinator_epoch: int, done: Callable[[], None]) -> None:
        self.sent.append(transaction)
        if self.held is None:
            done()
        else:
            self.held[transaction.transactional_id] = done

    def forget(self, transactional_ids: Collection[str]) -> None:
        if self.held is not None:
            self.held.clear()


class World:
    def __init__(self) -> None:
        self.log, self.markers, self.clock = MemoryCoordinatorLog(), InstantMarkers(), VirtualClock(1_000_000)
        self._ids = itertools.count(100)
        self.coordinator = self.new()

    def new(self) -> TransactionCoordinator:
        async def new_producer_id() -> ProducerId:
            return next(self._ids)

        return TransactionCoordinator(
            self.log, self.markers, new_producer_id, clock=self.clock, limits=TransactionLimits()
        )


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    async with made.coordinator.running():
        for partition in range(made.log.partition_count()):
            made.coordinator.runtime.elected(partition, 1)
        await made.coordinator.runtime.wait_loaded()
        yield made


async def test_a_producer_commits_one_transaction_after_the_other(world: World) -> None:
    coordinator = world.coordinator
    producer = await coordinator.init_producer_id("pay", timeout_ms=1000)
    assert producer == (100, 0)
    for epoch in (1, 2, 3):
        await coordinator.add_partitions("pay", producer, [A], client_version=2)
        assert (await coordinator.verify_partitions("pay", producer, [A])).errors == {A: None}
        producer = await coordinator.end("pay", producer, is_commit=True, client_version=2)
        assert producer == (100, epoch)
    assert coordinator.describe("pay").state is TransactionState.COMPLETE_COMMIT
    assert [one.producer_epoch for one in world.markers.sent] == [1, 2, 3]


async def test_another_producer_takes_over(world: World) -> None:
    coordinator = world.coordinator
    old = await coordinator.init_producer_id("pay", timeout_ms=1000)
    await coordinator.add_partitions("pay", old, [A], client_version=2)
    assert await coordinator.init_producer_id("pay", timeout_ms=1000) == (100, 2)
    with pytest.raises(ProducerFenced):
        await coordinator.add_partitions("pay", old, [A], client_version=2)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("is_timed_out", [False, True], ids=["open", "timed-out"])
async def test_a_producer_that_initialises_after_its_transaction_was_aborted_for_it_goes_on(
    world: World, version: int, is_timed_out: bool
) -> None:
    """KIP-360: it does not know whether its last request was carried out."""
    me = await world.coordinator.init_producer_id("pay", timeout_ms=60_000)
    await world.coordinator.add_partitions("pay", me, [A], client_version=version)
    if is_timed_out:
        await world.clock.advance(80)
        assert world.coordinator.describe("pay").state is TransactionState.COMPLETE_ABORT
    again = await world.coordinator.init_producer_id("pay", timeout_ms=60_000, expected=me)
    assert again == ProducerAndEpoch(me.producer_id, me.epoch + 1)
    assert [(sent.state, sent.producer_epoch) for sent in world.markers.sent] == [
        (TransactionState.PREPARE_ABORT, again.epoch)
    ]
    repeated = await world.coordinator.init_producer_id("pay", timeout_ms=60_000, expected=me)
    assert repeated == again, "the answer was lost"
    await world.coordinator.add_partitions("pay", again, [A], client_version=version)
    with pytest.raises(ProducerFenced):
        await world.coordinator.add_partitions("pay", me, [A], client_version=version)


async def test_requests_wait_for_the_end_of_a_transaction_but_not_for_long(world: World) -> None:
    coordinator = world.coordinator
    producer = await coordinator.init_producer_id("pay", timeout_ms=1000)
    await world.clock.advance(1)
    await coordinator.add_partitions("pay", producer, [A], client_version=2)
    world.markers.held = {}
    await world.clock.advance(3)
    assert coordinator.status() == TransactionsStatus(by_state={"Ongoing": 1}, longest_open_s=3)
    producer = await coordinator.end("pay", producer, is_commit=True, client_version=2)
    assert coordinator.status() == TransactionsStatus(by_state={"PrepareCommit": 1}, unmarked=1)
    waiting = asyncio.create_task(coordinator.add_partitions("pay", producer, [A], client_version=2))
    await world.clock.advance(0.09)
    assert not waiting.done()
    world.markers.held.pop("pay")()
    await waiting
    producer = await coordinator.end("pay", producer, is_commit=True, client_version=2)
    waiting = asyncio.create_task(coordinator.add_partitions("pay", producer, [A], client_version=2))
    await world.clock.advance(0.11)
    with pytest.raises(ConcurrentTransactions):
        await waiting


async def test_ids_that_nobody_has_take_no_memory(world: World) -> None:
    for number in range(100):
        with pytest.raises(InvalidProducerIdMapping):
            await world.coordinator.end(f"x{number}", ProducerAndEpoch(1, 0), is_commit=True, client_version=2)
    shards = [context.shard for context in world.coordinator.runtime.contexts]
    assert sum(len(shard.transactions) + shard.waited_for for shard in shards) == 0


async def test_epochs_that_are_used_up_make_a_new_producer_id(world: World) -> None:
    coordinator = world.coordinator
    producer = await coordinator.init_producer_id("pay", timeout_ms=1000)
    shard = coordinator.runtime.shard_for("pay")
    spent = coordinator.describe("pay")
    shard.transactions["pay"] = TransactionMetadata(
        transactional_id="pay",
        producer_id=producer.producer_id,
        producer_epoch=LAST_EPOCH,
        timeout_ms=1000,
        last_update_ms=spent.last_update_ms,
    )
    last = ProducerAndEpoch(100, LAST_EPOCH)
    await coordinator.add_partitions("pay", last, [A], client_version=2)
    assert await coordinator.end("pay", last, is_commit=True, client_version=2) == (101, 0)
    assert world.markers.sent[-1].producer_epoch == LAST_EPOCH + 1
    assert await coordinator.init_producer_id("pay", timeout_ms=1000) == (101, 1)


async def test_transactions_are_listed_by_the_pattern_of_their_ids(world: World) -> None:
    coordinator = world.coordinator
    for name in ("pay-1", "pay-2", "ship-1"):
        await coordinator.init_producer_id(name, timeout_ms=1000)
    found = await coordinator.transactions(TransactionFilter(id_pattern="pay-.*"))
    assert [one.transactional_id for one in found] == ["pay-1", "pay-2"]
    assert await coordinator.transactions(TransactionFilter(id_pattern="pay")) == [], "all of the id has to match"
    with pytest.raises(InvalidRegularExpression, match="TransactionalIdPattern `\\(`"):
        await coordinator.transactions(TransactionFilter(id_pattern="("))


@pytest.mark.parametrize("version", [0, 2])
async def test_the_epoch_that_fences_the_last_one_is_nobodys(world: World, version: int) -> None:
    """It could not be fenced any more, and what waits for a timeout behind it would wait forever."""
    coordinator = world.coordinator
    producer_id = (await coordinator.init_producer_id("pay", timeout_ms=1000)).producer_id
    other = await coordinator.init_producer_id("other", timeout_ms=1000)
    shard = coordinator.runtime.shard_for("pay")
    shard.transactions["pay"] = replace(coordinator.describe("pay"), producer_epoch=LAST_EPOCH)
    last, marker = ProducerAndEpoch(producer_id, LAST_EPOCH), ProducerAndEpoch(producer_id, LAST_EPOCH + 1)
    await coordinator.add_partitions("pay", last, [A], client_version=version)
    await coordinator.add_partitions("other", other, [A], client_version=version)
    await world.clock.advance(20)
    assert coordinator.describe("pay").producer_epoch == marker.epoch
    assert coordinator.describe("other").state is TransactionState.COMPLETE_ABORT
    with pytest.raises(ProducerFenced):
        await coordinator.add_partitions("pay", marker, [A], client_version=version)
    with pytest.raises(ProducerFenced):
        await coordinator.verify_partitions("pay", marker, [A])
    with pytest.raises(ProducerFenced):
        await coordinator.end("pay", marker, is_commit=False, client_version=version)
    assert (await coordinator.init_producer_id("pay", timeout_ms=1000)).producer_id != producer_id


async def test_refusals(world: World) -> None:
    coordinator = world.coordinator
    for timeout in (0, -1, 900_001):
        with pytest.raises(InvalidTransactionTimeout, match=r"between 1 and 900000 ms \(transaction.max.timeout.ms\)"):
            await coordinator.init_producer_id("pay", timeout_ms=timeout)
    with pytest.raises(InvalidRequest, match="empty"):
        await coordinator.init_producer_id("", timeout_ms=1)
    with pytest.raises(InvalidRequest, match="32767 bytes"):
        await coordinator.init_producer_id("x" * 40_000, timeout_ms=1)
    with pytest.raises(TransactionalIdNotFound):
        coordinator.describe("pay")


async def test_transactions_are_listed_by_state_producer_and_age(world: World) -> None:
    coordinator = world.coordinator
    for name in ("pay", "ship"):
        producer = await coordinator.init_producer_id(name, timeout_ms=100_000)
        await coordinator.add_partitions(name, producer, [A], client_version=2)
    await coordinator.end("pay", ProducerAndEpoch(100, 0), is_commit=False, client_version=2)
    world.clock.move(10)

    async def listed(wanted: TransactionFilter) -> list[str]:
        return sorted(one.transactional_id for one in await coordinator.transactions(wanted))

    assert await listed(TransactionFilter()) == ["pay", "ship"]
    assert await listed(TransactionFilter(states=[TransactionState.ONGOING])) == ["ship"]
    assert await listed(TransactionFilter(producer_ids=[100])) == ["pay"]
    assert await listed(TransactionFilter(longer_than_ms=9_000, states=[TransactionState.ONGOING])) == ["ship"]
    assert await listed(TransactionFilter(longer_than_ms=11_000)) == []


async def test_another_broker_goes_on_with_what_is_decided(world: World) -> None:
    coordinator = world.coordinator
    producer = await coordinator.init_producer_id("pay", timeout_ms=1000)
    await coordinator.add_partitions("pay", producer, [A], client_version=2)
    world.markers.held = {}
    await coordinator.end("pay", producer, is_commit=True, client_version=2)
    coordinator.runtime.resigned(coordinator.partition_for("pay"))
    with pytest.raises(NotCoordinator):
        await coordinator.init_producer_id("pay", timeout_ms=1000)
    world.markers.held = None
    other = world.new()
    async with other.running():
        other.runtime.elected(other.partition_for("pay"), 2)
        await other.runtime.wait_loaded()
        retried = await other.init_producer_id("pay", timeout_ms=1000, expected=ProducerAndEpoch(100, 1))
    assert retried == (100, 2)
    assert world.markers.sent[-1].state is TransactionState.PREPARE_COMMIT
