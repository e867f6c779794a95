"""Transactions of a real producer are listed, described and aborted; one that hangs is found and aborted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.admin.commands.conftest import Command
from tests.admin.commands.transactions.late_write import leave_hanging
from tests.broker import Broker
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(90)
_NUMBERS = count()


@pytest.fixture
def name() -> str:
    """Of a topic or a transactional id that was never used, also on a broker that outlives this run."""
    return f"tx-{os.getpid()}-{next(_NUMBERS)}"


@pytest.fixture
def topic(ask: Command, name: str) -> str:
    assert ask("topics", "create", name, "-p", "2").status == 0
    return name


@pytest.fixture
def producer(broker: Broker, name: str) -> Iterator[Producer]:
    """A transactional producer whose transactional id is the name of the topic."""
    made = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "transaction.timeout.ms": 50_000})
    made.init_transactions(30)
    yield made
    made.purge()
    try:
        made.close()
    except KafkaException as error:
        if error.args[0].code() != KafkaError._FENCED:  # that is what one of the tests does to it
            raise


@pytest.fixture
def committed_values(broker: Broker) -> Callable[[str, int], list[bytes]]:
    """What a `read_committed` consumer reads of partition 0, until it has read so many records."""

    def read(topic: str, wanted: int) -> list[bytes]:
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            values: list[bytes] = []

            def have_all() -> bool:
                values.extend(message.value() or b"" for message in consumer.consume(10, timeout=0.5))
                return len(values) >= wanted

            wait_until(have_all, within=30, what=f"{wanted} committed records")
            return values
        finally:
            consumer.close()

    return read


def _begin(producer: Producer, topic: str) -> None:
    """Begin a transaction with a record in each partition."""
    producer.begin_transaction()
    for partition in range(2):
        producer.produce(topic, b"open", partition=partition)
    assert producer.flush(30) == 0


def test_a_transaction_from_begin_to_commit(ask: Command, producer: Producer, topic: str) -> None:
    assert ask("transactions", "describe", topic, "--json").json["state"] == "Empty"
    _begin(producer, topic)
    listed = {row["transactional_id"]: row for row in ask("transactions", "list", "--state", "Ongoing", "--json").json}
    described = ask("transactions", "describe", topic, "--json").json
    assert listed[topic]["producer_id"] == described["producer_id"]
    assert described["state"] == "Ongoing"
    assert described["timeout_ms"] == 50_000
    assert described["partitions"] == [[topic, 0], [topic, 1]]
    assert described["running_ms"] >= 0
    (row,) = ask("transactions", "describe-producers", "-t", topic, "-p", "1", "--json").json
    assert (row["producer_id"], row["start_offset"]) == (described["producer_id"], 0)
    refused = ask("transactions", "abort", "-t", topic, "-p", "1", "--start-offset", "0", "--yes")
    assert f"The transaction does not hang: it is of transactional id {topic}, which is Ongoing" in refused.err
    assert ask("transactions", "find-hanging", "-t", topic, "--max-transaction-timeout", "0", "--json").json == []
    producer.commit_transaction(30)
    wait_until(
        lambda: ask("transactions", "describe", topic, "--json").json["state"] == "CompleteCommit", what="the commit"
    )
    assert "has no transaction to abort: it is CompleteCommit." in ask("transactions", "abort", topic, "--yes").err
    (row,) = ask("transactions", "describe-producers", "-t", topic, "-p", "1", "--json").json
    assert row["start_offset"] is None


def test_aborting_a_transactional_id_fences_its_producer(
    ask: Command, broker: Broker, producer: Producer, topic: str, committed_values: Callable[[str, int], list[bytes]]
) -> None:
    _begin(producer, topic)
    assert (
        ask("transactions", "abort", topic, "--yes").out == f"The transaction of {topic} was aborted in 2 partitions.\n"
    )
    with pytest.raises(KafkaException) as fenced:
        producer.commit_transaction(30)
    assert fenced.value.args[0].fatal()
    plain = Producer({"bootstrap.servers": broker.bootstrap})
    plain.produce(topic, b"after", partition=0)
    assert plain.flush(30) == 0
    assert committed_values(topic, 1) == [b"after"]


def test_a_hanging_transaction_is_found_and_aborted(
    ask: Command, broker: Broker, topic: str, committed_values: Callable[[str, int], list[bytes]]
) -> None:
    plain = Producer({"bootstrap.servers": broker.bootstrap})
    plain.produce(topic, b"before", partition=0)
    assert plain.flush(30) == 0
    producer_id = leave_hanging(broker.bootstrap, f"{topic}-late", topic, partition=0)
    plain.produce(topic, b"after", partition=0)
    assert plain.flush(30) == 0

    (found,) = ask("transactions", "find-hanging", "--topic", topic, "--json").json
    assert (found["partition"], found["start_offset"], found["producer_id"]) == (0, 1, producer_id)
    assert found["why"] == f"the coordinator of {topic}-late (Empty) has nothing to end in this partition"
    assert topic in ask("transactions", "find-hanging").out
    done = ask("transactions", "abort", "-t", topic, "-p", "0", "--start-offset", "1", "--yes", "--json").json
    assert (done["aborted"], done["producer_id"]) == (True, producer_id)
    assert committed_values(topic, 2) == [b"before", b"after"]
    assert ask("transactions", "find-hanging", "--topic", topic, "--json").json == []
    again = ask("transactions", "abort", "-t", topic, "-p", "0", "--start-offset", "1", "--yes")
    assert f"No open transaction of {topic}-0 begins at offset 1." in again.err
