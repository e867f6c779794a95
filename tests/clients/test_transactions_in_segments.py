"""Transactions over many segments: tiered, compacted, and after a crash, consumers see what was committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient

from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, SMALL, TIERED, create, first_local_offset, wait_tiered
from tests.clients.transactions import TRANSACTION_SETTINGS, client_of, read_topic
from tests.waiting import wait_until
from tests.wirelevel.transactional import (
    RawTransactionalProducer,
    end_of,
    last_stable_offset,
    open_producers,
    read_values,
)

E = ErrorCode
Name = Callable[[], str]
ROUNDS = 60
KINDS = pytest.mark.parametrize("is_new", [False, True], ids=["version-1", "version-2"])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {**QUICK, **TRANSACTION_SETTINGS, "log.cleaner.backoff.ms": "100"}
    with running_broker(tmp_path_factory.mktemp("segments") / "data", settings) as running:
        yield running


def value_of(number: int, word: bytes) -> bytes:
    return b"%d %b " % (number, word) + b"x" * 900


def write(producer: RawTransactionalProducer, topic: str, value: bytes) -> None:
    if not producer.is_new:
        wait_until(lambda: producer.add((topic, 0)) == [E.NONE])
    wait_until(lambda: producer.write(topic, value) is E.NONE)


def write_rounds(client: Client, topic: str, name: str, *, is_new: bool) -> list[bytes]:
    """Transactions that are committed and aborted in turn, inside a long one that is aborted; what counts."""
    producer = RawTransactionalProducer(client, name, is_new=is_new).initialised()
    long = RawTransactionalProducer(client, f"{name}-long", is_new=is_new).initialised()
    committed = []
    for number in range(ROUNDS):
        is_kept = number % 3 != 1
        write(producer, topic, value_of(number, b"kept" if is_kept else b"dropped"))
        if is_kept:
            committed.append(value_of(number, b"kept"))
        if number % 5 == 0:
            write(long, topic, value_of(number, b"long"))
        assert producer.end(commit=is_kept) is E.NONE
    assert last_stable_offset(client, topic) == 1
    assert long.end(commit=False) is E.NONE
    wait_until(lambda: last_stable_offset(client, topic) == end_of(client, topic), what="the end of the long one")
    return committed


@KINDS
def test_tiered_segments_are_read_committed(
    broker: BrokerProcess, admin: AdminClient, client: Client, unique_name: Name, is_new: bool
) -> None:
    topic = create(admin, unique_name(), {**TIERED, "retention.ms": "-1"})
    wait_until(lambda: end_of(client, topic) == 0)
    committed = write_rounds(client, topic, unique_name(), is_new=is_new)
    assert read_values(client, topic) == committed
    assert wait_tiered(broker, topic) > 20
    assert read_values(client, topic) == committed
    assert read_topic(broker.bootstrap, topic) == [committed]


def test_an_open_transaction_keeps_its_segments_local(
    broker: BrokerProcess, admin: AdminClient, client: Client, unique_name: Name
) -> None:
    topic, other = (create(admin, unique_name(), {**TIERED, "retention.ms": "-1"}) for _ in range(2))
    wait_until(lambda: end_of(client, topic) == end_of(client, other) == 0)
    opened = RawTransactionalProducer(client, unique_name(), is_new=True).initialised()
    write(opened, topic, b"open")
    quick = RawTransactionalProducer(client, unique_name(), is_new=True).initialised()
    for number in range(ROUNDS):
        write(quick, topic, value_of(number, b"quick"))
        write(quick, other, value_of(number, b"quick"))
    assert quick.end(commit=True) is E.NONE
    assert wait_tiered(broker, other) > 20
    assert first_local_offset(broker, topic) == 0, "nothing above the last stable offset is copied"
    assert opened.end(commit=True) is E.NONE
    assert wait_tiered(broker, topic) > 20
    assert read_values(client, topic) == [b"open", *(value_of(number, b"quick") for number in range(ROUNDS))]


@KINDS
def test_everything_is_the_same_after_a_crash(
    broker: BrokerProcess, admin: AdminClient, unique_name: Name, is_new: bool
) -> None:
    topic = create(admin, unique_name(), SMALL)
    with client_of(broker.bootstrap) as client:
        wait_until(lambda: end_of(client, topic) == 0)
        committed = write_rounds(client, topic, unique_name(), is_new=is_new)
        opened = RawTransactionalProducer(client, unique_name(), is_new=is_new).initialised()
        write(opened, topic, b"open")
        before = (last_stable_offset(client, topic), end_of(client, topic))
    broker.kill()
    broker.start()
    with client_of(broker.bootstrap) as client:
        wait_until(lambda: read_values(client, topic) == committed, what="the log to be led again")
        assert (last_stable_offset(client, topic), end_of(client, topic)) == before
        assert open_producers(client, topic) == [opened.producer_id]
        opened.client = client
        wait_until(lambda: opened.write(topic, b"more") is E.NONE)
        wait_until(lambda: opened.end(commit=True) is E.NONE)
        wait_until(lambda: read_values(client, topic) == [*committed, b"open", b"more"])


def test_compaction_keeps_the_newest_committed_record(admin: AdminClient, client: Client, unique_name: Name) -> None:
    """All records have one key: what was aborted does not replace what was committed, and goes."""
    configs = {"cleanup.policy": "compact", "internal.segment.bytes": "5000", "min.cleanable.dirty.ratio": "0.01"}
    topic = create(admin, unique_name(), configs)
    wait_until(lambda: end_of(client, topic) == 0)
    committed = write_rounds(client, topic, unique_name(), is_new=True)
    aborted = RawTransactionalProducer(client, unique_name(), is_new=True).initialised()
    for number in range(20):
        write(aborted, topic, value_of(number, b"aborted"))
    assert aborted.end(commit=False) is E.NONE
    wait_until(lambda: last_stable_offset(client, topic) == end_of(client, topic))
    wait_until(lambda: len(read_values(client, topic, isolation=0)) < 30, what="the log to be compacted")
    assert read_values(client, topic)[-1] == committed[-1]
    assert set(read_values(client, topic)) <= set(committed)
