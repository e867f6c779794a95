"""Idempotent producers across the boundary: the control plane knows what the log knew of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient

from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from tests.broker import BrokerProcess, running_broker
from tests.clients.switching import switch, wait_switched
from tests.clients.tiering import QUICK, create
from tests.clients.transactions import TRANSACTION_SETTINGS
from tests.wirelevel.asking import Asked, ask_for_offset, ask_to_fetch, ask_to_produce, client_of, offsets_in
from tests.wirelevel.raw import batch
from tests.wirelevel.transactional import RawTransactionalProducer

LATEST = -1
KEPT = 5  # batches of each producer that are remembered


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("producers") / "data", {**QUICK, **TRANSACTION_SETTINGS}) as broker:
        yield broker


@pytest.fixture
def topic(own: BrokerProcess, unique_name: Callable[[], str]) -> str:
    """With eight batches of producer 77, two records each, and one batch of producer 78."""
    name = create(AdminClient({"bootstrap.servers": own.bootstrap}), unique_name(), {"remote.storage.enable": "true"})
    with client_of(own) as client:
        for number in range(8):
            assert send(client, name, 2 * number) == Asked(0, 2 * number, 0)
        assert send(client, name, 0, producer=78) == Asked(0, 16, 0)
    return name


def send(client: Client, topic: str, sequence: int, *, producer: int = 77, epoch: int = 1) -> Asked:
    records = batch(b"x", b"y", producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    return ask_to_produce(client, topic, records)


@pytest.fixture
def switched(own: BrokerProcess, topic: str) -> str:
    switch(AdminClient({"bootstrap.servers": own.bootstrap}), topic)
    assert wait_switched(own, topic) == [18]
    return topic


@pytest.fixture
def client(own: BrokerProcess) -> Iterator[Client]:
    with client_of(own) as opened:
        yield opened


def test_a_batch_that_was_acknowledged_below_the_boundary_is_a_duplicate_above_it(
    client: Client, switched: str
) -> None:
    for number in range(8 - KEPT, 8):
        answer = send(client, switched, 2 * number)
        assert (answer.error, answer.offset) == (0, 2 * number), "the offset of the first time"
    assert (send(client, switched, 0, producer=78).error, ask_for_offset(client, switched, LATEST).offset) == (0, 18)


def test_sequences_go_on_where_they_were(client: Client, switched: str) -> None:
    assert send(client, switched, 16) == Asked(0, 18, 0)
    assert send(client, switched, 2, producer=78) == Asked(0, 20, 0)
    assert send(client, switched, 18) == Asked(0, 22, 0)
    assert send(client, switched, 14).offset == 14, "still a duplicate of one below the boundary"
    assert offsets_in(ask_to_fetch(client, switched, 18, wait_ms=10_000)) == list(range(18, 24))


def test_a_gap_or_an_old_epoch_is_refused_as_before(client: Client, switched: str) -> None:
    assert send(client, switched, 18).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, switched, 16, epoch=0).error == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(client, switched, 5, epoch=2).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, switched, 0, epoch=2) == Asked(0, 18, 0)
    assert ask_for_offset(client, switched, LATEST).offset == 20


def test_an_old_epoch_in_a_transaction_of_somebody_else(client: Client, switched: str) -> None:
    """As on classic topics: that it is over counts for more than whose it is."""
    stranger = RawTransactionalProducer(client, f"stranger-{switched}").initialised()
    stranger.producer_id, stranger.epoch = 77, 0
    assert stranger.write(switched, b"bad") is ErrorCode.INVALID_PRODUCER_EPOCH
    stranger.epoch = 1
    assert stranger.write(switched, b"bad", sequence=16) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert ask_for_offset(client, switched, LATEST).offset == 18


def test_producers_are_remembered_over_a_restart(own: BrokerProcess, switched: str) -> None:
    own.restart()
    with client_of(own) as client:
        assert send(client, switched, 14).offset == 14
        assert send(client, switched, 16) == Asked(0, 18, 0)
