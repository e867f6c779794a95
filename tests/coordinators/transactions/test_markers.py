"""Markers reach the leaders of their partitions, whoever does not answer, moves, or is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from strandline.coordinators.runtime import TransactionEnd
from strandline.coordinators.transactions.markers import (
    LEADERLESS_SECONDS,
    RETRY_SECONDS,
    MarkerChannel,
    MarkerResults,
    TransactionMarker,
)
from strandline.coordinators.transactions.metadata import TransactionMetadata
from strandline.coordinators.transactions.states import TransactionState
from strandline.errors import (
    InvalidProducerEpoch,
    LeaderNotAvailable,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    StrandlineError,
    TransactionCoordinatorFenced,
)
from strandline.model import ProducerAndEpoch, TopicPartition
from strandline.tasks import next_turn
from strandline.testing.clock import VirtualClock


async def settled() -> None:
    """Until nothing happens any more without time passing."""
    for _ in range(20):
        await next_turn()


PARTITIONS = [TopicPartition("orders", number) for number in range(4)]


@dataclass
class _Found:
    leader: int

    @property
    def has_leader(self) -> bool:
        return self.leader >= 0


@dataclass
class Image:
    """The leaders of partitions, as metadata has them."""

    leaders: dict[TopicPartition, int] = field(default_factory=lambda: {one: one.partition % 2 for one in PARTITIONS})
    lookups: int = 0

    def partition(self, topic: str, partition: int) -> _Found | None:
        self.lookups += 1
        leader = self.leaders.get(TopicPartition(topic, partition))
        return None if leader is None else _Found(leader)


@dataclass
class Transport:
    """Brokers that answer when, and what, the test says."""

    sent: list[tuple[int, tuple[TransactionMarker, ...]]] = field(default_factory=list)
    errors: dict[TopicPartition, StrandlineError] = field(default_factory=dict)
    away: set[int] = field(default_factory=set)
    silent: dict[int, asyncio.Event] = field(default_factory=dict)

    async def write(self, broker: int, markers: Sequence[TransactionMarker]) -> MarkerResults:
        self.sent.append((broker, tuple(markers)))
        if broker in self.silent:
            await self.silent[broker].wait()
        if broker in self.away:
            raise LeaderNotAvailable("It does not answer.")
        return {(marker.transactional_id, one): self.errors.get(one) for marker in markers for one in marker.partitions}


class World:
    def __init__(self) -> None:
        self.transport, self.image, self.clock = Transport(), Image(), VirtualClock(0)
        self.stand_ins: dict[TopicPartition, int] = {}
        self.channel = MarkerChannel(
            self.transport,
            lambda: self.image,  # type: ignore[arg-type, return-value]
            self.clock,
            stand_in=self.stand_ins.get,
        )
        self.done: list[str] = []

    def send(self, name: str = "pay", *partitions: TopicPartition) -> None:
        transaction = TransactionMetadata(
            transactional_id=name,
            producer_id=7,
            producer_epoch=3,
            timeout_ms=1,
            state=TransactionState.PREPARE_COMMIT,
            partitions=frozenset(partitions or PARTITIONS),
            last_update_ms=0,
            client_version=2,
        )
        self.channel.send(transaction, coordinator_epoch=5, done=lambda: self.done.append(name))

    async def later(self) -> None:
        self.clock.move(RETRY_SECONDS)
        await settled()


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    running = asyncio.create_task(made.channel.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_each_leader_gets_one_request(world: World) -> None:
    world.send()
    await settled()
    assert world.done == ["pay"]
    assert {broker: [one.partition for one in markers[0].partitions] for broker, markers in world.transport.sent} == {
        0: [0, 2],
        1: [1, 3],
    }
    marker = world.transport.sent[0][1][0]
    assert marker.end == TransactionEnd(ProducerAndEpoch(7, 3), True, coordinator_epoch=5, transaction_version=2)
    assert world.channel.outstanding == 0


async def test_a_late_answer_does_not_count_for_the_next_transaction(world: World) -> None:
    """Another broker has coordinated the id meanwhile, and ended the transaction that was asked about."""
    silence = world.transport.silent[0] = asyncio.Event()
    world.send("pay", PARTITIONS[0])
    await settled()
    world.channel.forget(["pay"])
    world.send("pay", PARTITIONS[0], PARTITIONS[2])
    silence.set()
    await settled()
    await world.later()
    assert world.done == ["pay"]
    assert [markers[0].partitions for _, markers in world.transport.sent] == [
        (PARTITIONS[0],),
        (PARTITIONS[0], PARTITIONS[2]),
    ]


async def test_markers_that_are_refused_let_others_go_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.coordinators.transactions.markers._PARTITIONS_PER_REQUEST", 1)
    world.transport.errors[PARTITIONS[0]] = NotEnoughReplicas("too few")
    world.send("sick", PARTITIONS[0])
    world.send("healthy", PARTITIONS[2])
    for _ in range(3):
        await settled()
        await world.later()
    assert world.done == ["healthy"]


async def test_a_broker_that_is_silent_holds_nobody_up(world: World) -> None:
    world.transport.silent[0] = asyncio.Event()
    world.send("slow")
    await settled()
    world.send("quick", PARTITIONS[1])
    world.send("more", PARTITIONS[2])
    world.send("and more", PARTITIONS[0])
    await settled()
    assert world.done == ["quick"]
    requests = len(world.transport.sent)
    world.transport.silent.pop(0).set()
    await settled()
    assert set(world.done) == {"slow", "quick", "more", "and more"}
    assert len(world.transport.sent) == requests + 1, "what has gathered goes in one request"


async def test_what_is_refused_is_sent_again_and_only_that(world: World) -> None:
    world.transport.errors = {PARTITIONS[0]: NotEnoughReplicas("Not now.")}
    world.transport.away = {1}
    world.send()
    await settled()
    assert world.done == []
    world.transport.errors, world.transport.away = {}, set()
    world.transport.sent.clear()
    await world.later()
    assert world.done == ["pay"]
    assert sorted(one.partition for _, markers in world.transport.sent for one in markers[0].partitions) == [0, 1, 3]


async def test_leaders_that_move_and_topics_that_are_deleted(world: World) -> None:
    world.transport.errors = {one: NotLeaderOrFollower("Not here.") for one in PARTITIONS}
    world.send()
    await settled()
    world.transport.errors = {}
    world.image.leaders = {PARTITIONS[0]: 9, PARTITIONS[1]: -1}
    world.transport.sent.clear()
    await world.later()
    assert [broker for broker, _ in world.transport.sent] == [9]
    assert world.done == []
    world.image.leaders = {}
    world.channel.metadata_changed()
    await settled()
    assert world.done == ["pay"]


async def test_markers_that_are_there_already_count_and_a_newer_coordinator_takes_over(world: World) -> None:
    world.transport.errors = {PARTITIONS[0]: InvalidProducerEpoch("It has this epoch.")}
    world.send("again")
    await settled()
    assert world.done == ["again"]
    world.transport.errors = {PARTITIONS[1]: TransactionCoordinatorFenced("Epoch 6 is known.")}
    world.send("fenced")
    await settled()
    await world.later()
    assert (world.done, world.channel.outstanding) == (["again"], 0)


async def test_nothing_is_done_for_ids_that_are_forgotten(world: World) -> None:
    world.transport.silent[0] = asyncio.Event()
    world.send()
    await settled()
    world.channel.forget(["pay"])
    world.transport.silent.pop(0).set()
    await settled()
    assert (world.done, world.channel.outstanding) == ([], 0)


def test_a_transaction_without_partitions_is_done_at_once() -> None:
    done: list[bool] = []
    channel = MarkerChannel(Transport(), lambda: Image(), VirtualClock(0), stand_in=lambda _: None)  # type: ignore[arg-type, return-value]
    empty = TransactionMetadata(
        transactional_id="pay",
        producer_id=7,
        timeout_ms=1,
        state=TransactionState.PREPARE_ABORT,
        last_update_ms=0,
    )
    channel.send(empty, coordinator_epoch=1, done=lambda: done.append(True))
    assert done == [True]


async def test_requests_have_a_size(world: World) -> None:
    many = [TopicPartition("many", number) for number in range(1500)]
    world.image.leaders = dict.fromkeys(many, 1)
    world.send("large", *many)
    await settled()
    assert [len(markers[0].partitions) for _, markers in world.transport.sent] == [1000, 500]
    assert world.done == ["large"]


async def test_a_partition_without_a_leader_gets_its_marker_from_whoever_can_write_it(world: World) -> None:
    world.image.leaders = {PARTITIONS[0]: 0, PARTITIONS[1]: -1}
    world.send("pay", *PARTITIONS[:2])
    await settled()
    assert [broker for broker, _ in world.transport.sent] == [0]
    assert world.done == []
    world.stand_ins[PARTITIONS[1]] = 9
    for number in range(3):  # others keep the channel busy
        world.send(f"other {number}", PARTITIONS[0])
        world.clock.move(LEADERLESS_SECONDS / 3)
        await settled()
    del world.transport.sent[1:4]
    assert [(broker, [one.partitions for one in markers]) for broker, markers in world.transport.sent[1:]] == [
        (9, [(PARTITIONS[1],)])
    ]
    assert world.done[-1] == "pay"


async def test_what_waits_for_a_dead_leader_costs_the_others_nothing(world: World) -> None:
    """Each of their transactions would be dearer than the one before."""
    world.transport.silent[0] = asyncio.Event()
    for number in range(500):
        world.send(f"waiting {number}", PARTITIONS[0])
        world.send(f"without a leader {number}", TopicPartition("lost", number))
        world.image.leaders[TopicPartition("lost", number)] = -1
    await settled()
    before = world.image.lookups
    for number in range(10):
        world.send(f"quick {number}", PARTITIONS[1])
        await settled()
    assert world.done == [f"quick {number}" for number in range(10)]
    assert world.image.lookups - before <= 20
    world.transport.silent[0].set()
    for number in range(500):
        world.image.leaders[TopicPartition("lost", number)] = 1
    world.channel.metadata_changed()
    await settled()
    assert (len(world.done), world.channel.outstanding) == (1_010, 0)
