"""Transactional ids of one partition: what is answered when, and what another coordinator goes on with."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.coordinators.runtime import KeyValue, ReadBatch, ReadRecord, Timers, WriteDone, WriteResult
from strandline.coordinators.transactions.metadata import TransactionMetadata
from strandline.coordinators.transactions.rules import Step
from strandline.coordinators.transactions.shard import TransactionShard
from strandline.coordinators.transactions.states import TransactionState
from strandline.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    InvalidProducerIdMapping,
    InvalidTxnState,
    NotCoordinator,
    NotEnoughReplicas,
    ProducerFenced,
)
from strandline.model import ProducerAndEpoch, TopicPartition
from strandline.testing.clock import VirtualClock
from tests.coordinators.steps import take_all

S = TransactionState
A, B = TopicPartition("a", 0), TopicPartition("b", 1)


@dataclass
class Sink:
    """A log whose writes end when the test says so."""

    waiting: deque[tuple[Sequence[KeyValue], WriteDone]] = field(default_factory=deque)
    records: list[KeyValue] = field(default_factory=list)

    def write(self, records: Sequence[KeyValue], done: WriteDone) -> None:
        self.waiting.append((records, done))

    def finish(self, *, accept: bool = True, is_lost: bool = True) -> None:
        """The oldest write ends. One that failed may be in the log nevertheless."""
        records, done = self.waiting.popleft()
        if accept or not is_lost:
            self.records += records
        done(WriteResult(None, len(self.records)) if accept else WriteResult(NotEnoughReplicas("told to fail")))

    def finish_all(self) -> None:
        while self.waiting:
            self.finish()


@dataclass
class Markers:
    """What is to be marked, by transactional id."""

    sent: dict[str, tuple[TransactionMetadata, int, Callable[[], None]]] = field(default_factory=dict)

    @property
    def outstanding(self) -> int:
        return len(self.sent)

    def send(self, transaction: TransactionMetadata, *, coordinator_epoch: int, done: Callable[[], None]) -> None:
        self.sent[transaction.transactional_id] = (transaction, coordinator_epoch, done)

    def forget(self, transactional_ids: Collection[str]) -> None:
        for transactional_id in transactional_ids:
            self.sent.pop(transactional_id, None)

    def write(self, transactional_id: str) -> TransactionMetadata:
        transaction, _, done = self.sent.pop(transactional_id)
        done()
        return transaction


class World:
    def __init__(self) -> None:
        self.sink, self.markers, self.clock = Sink(), Markers(), VirtualClock(1_000_000)
        self.timers = Timers(self.clock)
        self.shard = self.new_shard()
        take_all(self.shard.loaded())
        self.answers: list[object] = []

    def new_shard(self) -> TransactionShard:
        return TransactionShard(self.sink, self.markers, self.clock, self.timers, epoch=lambda: 5)

    def reload(self) -> None:
        """Another broker takes over, and reads what is in the log."""
        error = NotCoordinator("gone")
        while self.sink.waiting:
            _, done = self.sink.waiting.popleft()
            done(WriteResult(error))
        take_all(self.shard.unloaded(error))
        self.shard = self.new_shard()
        for key, value in self.sink.records:
            self.shard.replay(ReadBatch(records=(ReadRecord(0, key, value),)))
        take_all(self.shard.loaded())

    def init(self, *, new_producer_id: int = 7, timeout_ms: int = 1_000) -> None:
        self.shard.init_producer_id(
            "pay", self.answers.append, expected=None, timeout_ms=timeout_ms, new_producer_id=new_producer_id
        )

    def add(self, epoch: int, *partitions: TopicPartition) -> None:
        self.shard.add_partitions("pay", ProducerAndEpoch(7, epoch), partitions, self.answers.append, client_version=2)

    def end(self, epoch: int, *, is_commit: bool = True) -> None:
        producer = ProducerAndEpoch(7, epoch)
        self.shard.end("pay", producer, self.answers.append, is_commit=is_commit, client_version=2)

    def state(self) -> TransactionState:
        return self.shard.transactions["pay"].state

    def last(self) -> TransactionMetadata:
        assert isinstance(self.answers[-1], TransactionMetadata), self.answers[-1]
        return self.answers[-1]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def opened(world: World) -> World:
    """A transaction of producer 7, epoch 0, in two partitions."""
    world.init()
    world.sink.finish()
    world.clock.move(0.001)
    world.add(0, A, B)
    world.sink.finish()
    world.answers.clear()
    return world


def test_a_new_id_needs_a_producer_id(world: World) -> None:
    world.init(new_producer_id=-1)
    assert world.answers == [Step.NEEDS_PRODUCER_ID]
    world.init()
    assert len(world.answers) == 1, "answered before it is committed"
    world.init()
    assert isinstance(world.answers[-1], ConcurrentTransactions)
    world.sink.finish()
    assert (world.last().producer_id, world.last().producer_epoch) == (7, 0)


def test_the_end_is_answered_when_it_is_decided_and_completed_when_markers_are_there(opened: World) -> None:
    opened.end(0)
    assert opened.answers == []
    opened.sink.finish()
    assert (opened.last().state, opened.last().producer_epoch) == (S.PREPARE_COMMIT, 1)
    transaction, coordinator_epoch, _ = opened.markers.sent["pay"]
    assert (transaction.partitions, coordinator_epoch) == (frozenset({A, B}), 5)
    opened.add(1, A)
    assert isinstance(opened.answers[-1], ConcurrentTransactions)
    opened.markers.write("pay")
    assert opened.state() is S.PREPARE_COMMIT
    opened.sink.finish()
    assert opened.state() is S.COMPLETE_COMMIT
    opened.add(1, A)
    opened.sink.finish()
    assert opened.last().partitions == frozenset({A})


def test_what_is_not_written_has_not_happened(opened: World) -> None:
    opened.end(0)
    opened.sink.finish(accept=False)
    assert isinstance(opened.answers[-1], CoordinatorNotAvailable)
    assert (opened.state(), opened.markers.sent) == (S.ONGOING, {})
    opened.end(0, is_commit=False)
    opened.sink.finish()
    assert opened.last().state is S.PREPARE_ABORT


def test_a_second_producer_fences_the_first_and_aborts_its_transaction(opened: World) -> None:
    opened.init()
    opened.sink.finish()
    assert isinstance(opened.answers[-1], ConcurrentTransactions)
    assert opened.markers.write("pay").producer_epoch == 1
    opened.sink.finish()
    assert opened.state() is S.COMPLETE_ABORT
    opened.init()
    opened.sink.finish()
    assert opened.last().producer_epoch == 2
    opened.end(0)
    assert isinstance(opened.answers[-1], ProducerFenced)


def test_a_transaction_that_takes_too_long_is_aborted(opened: World) -> None:
    opened.clock.move(1)
    take_all(opened.shard.abort_timed_out())
    assert not opened.sink.waiting
    opened.clock.move(0.001)
    take_all(opened.shard.abort_timed_out())
    opened.sink.finish()
    assert opened.markers.write("pay").state is S.PREPARE_ABORT
    opened.sink.finish()
    opened.end(0)
    assert isinstance(opened.answers[-1], InvalidTxnState)
    opened.add(0, A)
    assert isinstance(opened.answers[-1], ProducerFenced)


def test_a_completion_that_is_not_written_is_written_again_soon_and_then_less_often(opened: World) -> None:
    opened.end(0)
    opened.sink.finish()
    opened.markers.write("pay")
    waited = []
    for _ in range(9):
        opened.sink.finish(accept=False)
        assert (opened.state(), len(opened.sink.waiting)) == (S.PREPARE_COMMIT, 0)
        deadline = opened.timers.next_deadline()
        assert deadline is not None
        waited.append(round((deadline - opened.clock.monotonic()) * 1000))
        opened.clock.move(deadline - opened.clock.monotonic())
        assert opened.timers.run_due() == 1
    assert waited == [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]
    opened.sink.finish()
    assert (opened.state(), len(opened.timers)) == (S.COMPLETE_COMMIT, 0)


def test_several_completions_that_failed_share_a_retry(opened: World) -> None:
    for name, producer_id in (("b", 8), ("c", 9)):
        opened.shard.init_producer_id(
            name, opened.answers.append, expected=None, timeout_ms=1_000, new_producer_id=producer_id
        )
        opened.sink.finish()
        producer = ProducerAndEpoch(producer_id, 0)
        opened.shard.add_partitions(name, producer, [A], opened.answers.append, client_version=2)
        opened.sink.finish()
        opened.shard.end(name, producer, opened.answers.append, is_commit=True, client_version=2)
        opened.sink.finish()
    for name in ("b", "c"):
        opened.markers.write(name)
        opened.sink.finish(accept=False)
    assert len(opened.timers) == 1
    opened.clock.move(0.05)
    opened.timers.run_due()
    opened.sink.finish_all()
    assert [opened.shard.transactions[name].state for name in ("b", "c")] == [S.COMPLETE_COMMIT] * 2


def test_nothing_is_completed_for_another_coordinator(opened: World) -> None:
    opened.end(0)
    opened.sink.finish()
    opened.markers.write("pay")
    opened.sink.finish(accept=False)
    opened.reload()
    assert len(opened.timers) == 0


def test_another_coordinator_goes_on_with_what_is_decided(opened: World) -> None:
    opened.end(0)
    opened.sink.finish()
    opened.reload()
    assert opened.markers.write("pay").partitions == frozenset({A, B})
    opened.sink.finish()
    assert opened.state() is S.COMPLETE_COMMIT
    opened.end(0)  # the answer was lost
    assert (opened.last().state, opened.last().producer_epoch) == (S.COMPLETE_COMMIT, 1)


def test_an_answer_that_came_too_late_changes_nothing(opened: World) -> None:
    opened.end(0)
    opened.sink.finish()
    _, _, done = opened.markers.sent["pay"]
    opened.reload()
    done()
    assert not opened.sink.waiting
    assert opened.state() is S.PREPARE_COMMIT


def test_ids_that_nobody_uses_are_forgotten(opened: World) -> None:
    opened.end(0)
    opened.sink.finish()
    opened.markers.write("pay")
    opened.sink.finish()
    opened.clock.move(100)
    take_all(opened.shard.expire(100_000))
    assert not opened.sink.waiting
    opened.clock.move(0.001)
    take_all(opened.shard.expire(100_000))
    opened.add(1, A)
    assert isinstance(opened.answers[-1], ConcurrentTransactions)
    opened.sink.finish()
    assert opened.shard.transactions == {}
    opened.add(1, A)
    assert isinstance(opened.answers[-1], InvalidProducerIdMapping)
    opened.reload()
    assert opened.shard.transactions == {}


class Chaos(World):
    """Random requests of the current producer, on a log that may refuse, and say so although it has the record."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[int, TransactionState] = {}
        self.ended: dict[int, TransactionState] = {}
        self.steps: dict[str, Callable[[], None]] = {
            "init": self.init,
            "add": lambda: self.add(self.epoch, A),
            "commit": lambda: self.decide(is_commit=True),
            "abort": lambda: self.decide(is_commit=False),
            "write": lambda: self.finish(accept=True),
            "refuse": lambda: self.finish(accept=False),
            "refuse late": lambda: self.finish(accept=False, is_lost=False),
            "mark": self.mark,
            "wait": self.wait,
            "reload": self.reload,
        }

    @property
    def epoch(self) -> int:
        known = self.shard.transactions.get("pay")
        return 0 if known is None else known.producer_epoch

    def decide(self, *, is_commit: bool) -> None:
        def hear(answer: object) -> None:
            if isinstance(answer, TransactionMetadata) and answer.state.is_prepared:
                self.told[answer.producer_epoch] = answer.state

        self.shard.end("pay", ProducerAndEpoch(7, self.epoch), hear, is_commit=is_commit, client_version=2)

    def finish(self, *, accept: bool, is_lost: bool = True) -> None:
        if self.sink.waiting:
            self.sink.finish(accept=accept, is_lost=is_lost)

    def mark(self) -> None:
        if self.markers.sent:
            marked = self.markers.write("pay")
            assert self.ended.setdefault(marked.producer_epoch, marked.state) is marked.state, "two different ends"

    def wait(self) -> None:
        self.clock.move(6)
        self.timers.run_due()
        take_all(self.shard.abort_timed_out())

    def settle(self) -> None:
        for _ in range(10):
            self.sink.finish_all()
            self.mark()
            self.wait()


@settings(max_examples=400)
@given(st.lists(st.sampled_from([*Chaos().steps, "write", "mark"]), min_size=5, max_size=60))
def test_whatever_happens_every_decided_transaction_ends_as_decided(steps: list[str]) -> None:
    """A client that was told its transaction is committed never sees it aborted; and nothing stays half ended."""
    world = Chaos()
    for step in steps:
        world.steps[step]()
    world.settle()
    assert all(transaction.state.is_complete for transaction in world.shard.transactions.values())
    for bumped, state in world.told.items():
        assert world.ended[bumped] is state
    before = {key: transaction.value() for key, transaction in world.shard.transactions.items()}
    world.reload()
    after = {key: transaction.value() for key, transaction in world.shard.transactions.items()}
    assert after == before or "refuse late" in steps
