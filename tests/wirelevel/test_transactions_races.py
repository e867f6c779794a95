"""Requests about one transaction that come at the same time: one of them counts, everywhere, and nothing hangs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from tests.broker import TIERS, Broker, broker_for_clients, running_broker
from tests.clients.transactions import TRANSACTION_SETTINGS, client_of
from tests.waiting import wait_until
from tests.wirelevel.raw import connected, create_topic
from tests.wirelevel.transactional import (
    GROUP_COORDINATOR,
    RawTransactionalProducer,
    end_of,
    fetch_offset,
    last_stable_offset,
    open_producers,
    read_values,
    unfinished,
    wait_for_coordinator,
)

E = ErrorCode
PARTITIONS = 5
ROUNDS = 8
KINDS = pytest.mark.parametrize("is_new", [False, True], ids=["version-1", "version-2"])

_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=["classic", pytest.param("diskless", marks=pytest.mark.long)])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {**TRANSACTION_SETTINGS, **TIERS[request.param]}
    with broker_for_clients(tmp_path_factory.mktemp("broker") / "data", settings) as running:
        yield running


@pytest.fixture
def clients(broker: Broker) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        yield [stack.enter_context(client_of(broker.bootstrap)) for _ in range(4)]


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"races-{next(_numbers)}"
    with connected(broker.bootstrap) as connection:
        create_topic(connection, name, partitions=PARTITIONS)
    return name


def twin(producer: RawTransactionalProducer, client: Client) -> RawTransactionalProducer:
    """The same producer, over another connection."""
    return RawTransactionalProducer(
        client,
        producer.transactional_id,
        is_new=producer.is_new,
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        sequences=dict(producer.sequences),
    )


def begun(client: Client, topic: str, *, is_new: bool) -> RawTransactionalProducer:
    producer = RawTransactionalProducer(client, f"races-{next(_numbers)}", is_new=is_new).initialised()
    if not is_new:
        assert set(producer.add(*((topic, number) for number in range(PARTITIONS)))) == {E.NONE}
    for number in range(PARTITIONS):
        assert producer.write(topic, producer.transactional_id.encode(), partition=number) is E.NONE
    return producer


def at_once(*calls: Callable[[], ErrorCode]) -> list[ErrorCode]:
    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result() for future in [threads.submit(call) for call in calls]]


def seen_everywhere(client: Client, topic: str, value: bytes) -> bool:
    """Whether a transaction is seen, which is the same in all partitions."""
    wait_until(lambda: not unfinished(client), what="all markers")
    seen = set()
    for number in range(PARTITIONS):
        assert open_producers(client, topic, number) == []
        assert last_stable_offset(client, topic, number) == end_of(client, topic, number)
        seen.add(value in read_values(client, topic, number))
    assert len(seen) == 1
    return seen.pop()


@KINDS
def test_a_commit_and_an_abort_at_once(clients: list[Client], topic: str, is_new: bool) -> None:
    for _ in range(ROUNDS):
        producer = begun(clients[0], topic, is_new=is_new)
        first, second = twin(producer, clients[0]), twin(producer, clients[1])
        codes = at_once(lambda at=first: at.end(commit=True), lambda at=second: at.end(commit=False))  # type: ignore[misc]
        assert codes.count(E.NONE) == 1, codes
        assert set(codes) - {E.NONE} <= {E.INVALID_TXN_STATE, E.CONCURRENT_TRANSACTIONS, E.PRODUCER_FENCED}
        assert seen_everywhere(clients[0], topic, producer.transactional_id.encode()) is (codes[0] is E.NONE)


@KINDS
def test_a_commit_while_another_producer_takes_over(clients: list[Client], topic: str, is_new: bool) -> None:
    for _ in range(ROUNDS):
        producer = begun(clients[0], topic, is_new=is_new)
        rival = RawTransactionalProducer(clients[1], producer.transactional_id, is_new=is_new)
        committed, _ = at_once(lambda at=producer: at.end(commit=True), lambda at=rival: at.init())  # type: ignore[misc]
        rival.initialised()
        seen = seen_everywhere(clients[0], topic, producer.transactional_id.encode())
        assert seen is (committed is E.NONE)
        assert producer.add((topic, 0)) == [E.PRODUCER_FENCED]


@KINDS
def test_batches_while_the_transaction_ends(clients: list[Client], topic: str, is_new: bool) -> None:
    """They are part of it, or refused; none begins another one that nobody ends."""
    for number in range(ROUNDS):
        producer = begun(clients[0], topic, is_new=is_new)
        ender, *writers = (twin(producer, client) for client in clients)
        late = b"late %d" % number
        codes = at_once(
            lambda at=ender, kept=number % 2 == 0: at.end(commit=kept),  # type: ignore[misc]
            *(partial(writer.write, topic, late, partition=where) for where, writer in enumerate(writers)),
        )
        assert codes[0] is E.NONE
        assert seen_everywhere(clients[0], topic, producer.transactional_id.encode()) is (number % 2 == 0)
        for where, code in enumerate(codes[1:]):
            is_seen = number % 2 == 0 and code is E.NONE
            assert (late in read_values(clients[0], topic, where)) is is_seen


@KINDS
def test_groups_while_the_transaction_ends(clients: list[Client], topic: str, is_new: bool) -> None:
    group = f"races-{next(_numbers)}"
    wait_for_coordinator(clients[0], group, kind=GROUP_COORDINATOR)
    for number in range(ROUNDS):
        producer = begun(clients[0], topic, is_new=is_new)
        if not is_new:
            assert producer.add_group(group) is E.NONE
        ender, writer = twin(producer, clients[0]), twin(producer, clients[1])
        at_once(
            lambda at=ender: at.end(commit=True),  # type: ignore[misc]
            lambda at=writer, offset=number: at.commit_offset(group, topic, offset),  # type: ignore[misc]
        )
        wait_until(lambda: not unfinished(clients[0]), what="all markers")
        assert fetch_offset(clients[0], group, topic, stable=True)[0] is E.NONE, "an offset that is never stable"


def test_an_id_that_nobody_uses_is_forgotten(tmp_path: Path) -> None:
    settings = {
        **TRANSACTION_SETTINGS,
        "transactional.id.expiration.ms": "500",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    }
    with running_broker(tmp_path / "data", settings) as own:
        with connected(own.bootstrap) as connection:
            create_topic(connection, "t", partitions=PARTITIONS)
        with client_of(own.bootstrap) as client:
            opened, idle = begun(client, "t", is_new=True), begun(client, "t", is_new=False)
            assert idle.end(commit=True) is E.NONE
            wait_until(lambda: idle.state() == "TRANSACTIONAL_ID_NOT_FOUND", what="the id to be forgotten")
            assert opened.state() == "Ongoing"
            assert idle.add(("t", 0)) == [E.INVALID_PRODUCER_ID_MAPPING]
            assert idle.end(commit=True) is E.INVALID_PRODUCER_ID_MAPPING
        own.kill()
        own.start()
        with client_of(own.bootstrap) as client:
            idle.client = opened.client = client
            wait_until(lambda: opened.state() == "Ongoing", what="the open one to be loaded")
            assert idle.state() == "TRANSACTIONAL_ID_NOT_FOUND"
            again = RawTransactionalProducer(client, idle.transactional_id).initialised()
            assert again.producer_id != idle.producer_id
