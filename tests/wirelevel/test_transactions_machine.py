"""Producers of both kinds, in any order, against a broker and a model: who is refused how, and what is seen.

The model knows nothing of logs and markers: a transactional id has an epoch and perhaps an open transaction, a
partition is a list of records, each of which is open, committed or aborted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from tests.broker import TIERS, BrokerProcess, running_broker
from tests.clients.transactions import TRANSACTION_SETTINGS, client_of
from tests.waiting import wait_until
from tests.wirelevel.raw import batch, connected, create_topic, produce
from tests.wirelevel.transactional import (
    GROUP_COORDINATOR,
    RawTransactionalProducer,
    end_of,
    fetch_offset,
    last_stable_offset,
    read_values,
    wait_for_coordinator,
)

E = ErrorCode
PARTITIONS = 2
IDS = 2

_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=["classic", pytest.param("diskless", marks=pytest.mark.long)])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {**TRANSACTION_SETTINGS, **TIERS[request.param]}
    with running_broker(tmp_path_factory.mktemp("broker") / "data", settings) as running:
        yield running


class Fate(Enum):
    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()


@dataclass(eq=False)
class ModelTransaction:
    """One transaction: where it may write, and what becomes of that."""

    fate: Fate = Fate.OPEN
    partitions: set[int] = field(default_factory=set)
    has_group: bool = False
    offset: tuple[int, int] | None = None
    """The offset that it commits, and when that was asked for."""


@dataclass
class ModelId:
    """One transactional id."""

    name: str
    epoch: int = -1
    last: ModelTransaction | None = None
    """The transaction that is open or was ended last; None after an initialisation."""

    @property
    def open(self) -> ModelTransaction | None:
        return self.last if self.last is not None and self.last.fate is Fate.OPEN else None

    def opened(self) -> ModelTransaction:
        if self.open is None:
            self.last = ModelTransaction()
        assert self.last is not None
        return self.last


@dataclass(eq=False)
class Handle:
    """A producer process that once had the id; perhaps a zombie."""

    id: ModelId
    raw: RawTransactionalProducer

    @property
    def is_current(self) -> bool:
        return self.raw.epoch == self.id.epoch


class Transactions(RuleBasedStateMachine):
    """Subclasses say which broker."""

    broker: BrokerProcess
    restarts: int = 0

    handles: Bundle[Handle] = Bundle("handles")

    def __init__(self) -> None:
        super().__init__()
        number = next(_numbers)
        self.client = self._connect()
        self.topic, self.group = f"machine-{number}", f"machine-{number}"
        self.ids = [ModelId(f"machine-{number}-{which}") for which in range(IDS)]
        self.logs: list[list[tuple[bytes, ModelTransaction | None]]] = [[] for _ in range(PARTITIONS)]
        self.committed: tuple[int, int] = (-1, -1)
        self.clock = itertools.count()
        self.left = self.restarts
        self.all_handles: list[Handle] = []
        with connected(self.broker.bootstrap) as connection:
            create_topic(connection, self.topic, partitions=PARTITIONS)
        wait_for_coordinator(self.client, self.group, kind=GROUP_COORDINATOR)

    def _connect(self) -> Client:
        return client_of(self.broker.bootstrap)

    def teardown(self) -> None:
        self.client.close()

    # Producers

    @rule(target=handles, which=st.integers(0, IDS - 1), is_new=st.booleans())
    def initialise(self, which: int, is_new: bool) -> Handle:
        """What is open is aborted with an epoch of its own."""
        known = self.ids[which]
        raw = RawTransactionalProducer(self.client, known.name, is_new=is_new).initialised()
        known.epoch += 1
        if known.open is not None:
            known.open.fate = Fate.ABORTED
            known.epoch += 1
        known.last = None
        assert raw.epoch == known.epoch
        handle = Handle(known, raw)
        self.all_handles.append(handle)
        return handle

    @rule(handle=handles, partition=st.integers(0, PARTITIONS - 1))
    def add(self, handle: Handle, partition: int) -> None:
        (code,) = handle.raw.add((self.topic, partition))
        if handle.is_current:
            assert code is E.NONE
            handle.id.opened().partitions.add(partition)
        else:
            assert code is E.PRODUCER_FENCED

    @rule(handle=handles)
    def add_group(self, handle: Handle) -> None:
        code = handle.raw.add_group(self.group)
        if handle.is_current:
            assert code is E.NONE
            handle.id.opened().has_group = True
        else:
            assert code is E.PRODUCER_FENCED

    @rule(handle=handles, partition=st.integers(0, PARTITIONS - 1), records=st.integers(1, 3))
    def write(self, handle: Handle, partition: int, records: int) -> None:
        values = [b"%d" % next(self.clock) for _ in range(records)]
        code = handle.raw.write(self.topic, *values, partition=partition)
        if not handle.is_current:
            assert code is E.INVALID_PRODUCER_EPOCH
            return
        if handle.raw.is_new:
            handle.id.opened().partitions.add(partition)
        if handle.id.open is None or partition not in handle.id.open.partitions:
            assert code is E.TRANSACTION_ABORTABLE
            return
        assert code is E.NONE
        self.logs[partition] += [(value, handle.id.open) for value in values]

    @rule(handle=handles)
    def commit_offset(self, handle: Handle) -> None:
        offset = next(self.clock)
        code = handle.raw.commit_offset(self.group, self.topic, offset)
        if not handle.is_current:
            assert code is E.INVALID_PRODUCER_EPOCH
            return
        if handle.raw.is_new:
            handle.id.opened().has_group = True
        if handle.id.open is None or not handle.id.open.has_group:
            assert code is E.TRANSACTION_ABORTABLE
            return
        assert code is E.NONE
        handle.id.open.offset = (offset, offset)

    @rule(handle=handles, commit=st.booleans(), is_lost=st.booleans())
    def end(self, handle: Handle, commit: bool, is_lost: bool) -> None:
        """With `is_lost`, a new producer does not get to know its next epoch."""
        sent = handle.raw.epoch
        code = handle.raw.end(commit=commit, keeps_epoch=is_lost)
        expected = self._end_new(handle.id, sent, commit) if handle.raw.is_new else self._end_old(handle, commit)
        assert code is expected
        if code is E.NONE and handle.raw.is_new and not is_lost:
            assert handle.is_current
        if code is E.NONE:
            self._wait_complete(handle.id)

    def _end_old(self, handle: Handle, commit: bool) -> ErrorCode:
        known = handle.id
        if not handle.is_current:
            return E.PRODUCER_FENCED
        if known.last is None:
            return E.INVALID_TXN_STATE
        if known.open is None:
            return E.NONE if _is(known.last, commit) else E.INVALID_TXN_STATE
        self._finish(known, commit)
        return E.NONE

    def _end_new(self, known: ModelId, sent: int, commit: bool) -> ErrorCode:
        if known.open is None and known.last is not None and sent + 1 == known.epoch:
            return E.NONE if _is(known.last, commit) else E.INVALID_TXN_STATE  # a repetition
        if sent != known.epoch:
            return E.PRODUCER_FENCED
        if known.open is not None:
            self._finish(known, commit)
        elif commit:
            return E.INVALID_TXN_STATE
        else:
            known.last = ModelTransaction(Fate.ABORTED)
        known.epoch += 1
        return E.NONE

    def _finish(self, known: ModelId, commit: bool) -> None:
        assert known.open is not None
        if commit and known.open.offset is not None:
            offset, asked = known.open.offset
            if asked > self.committed[1]:
                self.committed = (offset, asked)
        known.open.fate = Fate.COMMITTED if commit else Fate.ABORTED

    def _wait_complete(self, known: ModelId) -> None:
        raw = RawTransactionalProducer(self.client, known.name)
        assert known.last is not None
        state = "CompleteCommit" if known.last.fate is Fate.COMMITTED else "CompleteAbort"
        wait_until(lambda: raw.state() == state, what=f"{known.name} to be {state}; it is {raw.state()}")

    # Others

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def write_plainly(self, partition: int) -> None:
        value = b"%d" % next(self.clock)
        with connected(self.broker.bootstrap) as connection:
            assert produce(connection, self.topic, batch(value), partition=partition)[0] == E.NONE
        self.logs[partition].append((value, None))

    @precondition(lambda self: self.left > 0)
    @rule()
    def kill(self) -> None:
        self.left -= 1
        self.client.close()
        self.broker.kill()
        self.broker.start()
        self.client = self._connect()
        for handle in self.all_handles:
            handle.raw.client = self.client
        for known in self.ids:
            if known.epoch >= 0:
                raw = RawTransactionalProducer(self.client, known.name)
                wait_until(lambda at=raw: at.state()[0].isupper() and "_" not in at.state(), what="a coordinator")  # type: ignore[misc]
        wait_for_coordinator(self.client, self.group, kind=GROUP_COORDINATOR)

    # What is seen

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def read(self, partition: int) -> None:
        log = self.logs[partition]
        first_open = next((at for at, (_, owner) in enumerate(log) if _fate(owner) is Fate.OPEN), None)
        stable = log if first_open is None else log[:first_open]
        seen = [value for value, owner in stable if _fate(owner) is Fate.COMMITTED]
        assert read_values(self.client, self.topic, partition) == seen
        assert read_values(self.client, self.topic, partition, isolation=0) == [value for value, _ in log]
        is_stable = last_stable_offset(self.client, self.topic, partition) == end_of(self.client, self.topic, partition)
        assert is_stable is (first_open is None)

    @rule()
    def look_at_offsets(self) -> None:
        is_open = any(known.open is not None and known.open.offset is not None for known in self.ids)
        assert fetch_offset(self.client, self.group, self.topic) == (E.NONE, self.committed[0])
        code, _ = fetch_offset(self.client, self.group, self.topic, stable=True)
        assert code is (E.UNSTABLE_OFFSET_COMMIT if is_open else E.NONE)


def _fate(owner: ModelTransaction | None) -> Fate:
    return Fate.COMMITTED if owner is None else owner.fate


def _is(transaction: ModelTransaction, commit: bool) -> bool:
    return transaction.fate is (Fate.COMMITTED if commit else Fate.ABORTED)


def test_any_producers_in_any_order(broker: BrokerProcess) -> None:
    machine = type("TransactionsHere", (Transactions,), {"broker": broker})
    run_state_machine_as_test(machine, settings=settings(settings.default, stateful_step_count=40))


@pytest.mark.long
def test_any_producers_in_any_order_with_kills(broker: BrokerProcess) -> None:
    machine = type("TransactionsKilled", (Transactions,), {"broker": broker, "restarts": 2})
    run_state_machine_as_test(machine, settings=settings(settings.default, stateful_step_count=60))
