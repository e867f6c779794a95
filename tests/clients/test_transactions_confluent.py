"""Transactions with librdkafka: commits, aborts, offsets, fencing, timeouts, many partitions and many producers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from strandline.wire.client import Client
from tests.broker import Broker
from tests.clients.conftest import TopicMaker
from tests.clients.transactions import (
    COMMITTED,
    SECONDS,
    UNCOMMITTED,
    read_topic,
    transactional_broker,
    transactional_producer,
    wait_settled,
)
from tests.waiting import wait_until
from tests.wirelevel.transactional import fetch_offset, transaction_state, unfinished

Name = Callable[[], str]

broker = transactional_broker


def write(producer: Producer, topic: str, *values: bytes, partition: int = 0) -> None:
    for value in values:
        producer.produce(topic, value=value, partition=partition)


def code_of(refusal: pytest.ExceptionInfo[KafkaException]) -> int:
    error: KafkaError = refusal.value.args[0]
    return error.code()


def test_commits_and_aborts(broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name) -> None:
    topic = new_topic()
    producer = transactional_producer(broker.bootstrap, unique_name())
    for number in range(10):
        producer.begin_transaction()
        write(producer, topic, b"%d" % number, b"%d again" % number)
        if number % 2:
            producer.flush(SECONDS)  # else librdkafka drops what it has not sent yet
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)
    wait_settled(client, topic)
    expected = [[b"%d" % n, b"%d again" % n] for n in range(10)]
    assert read_topic(broker.bootstrap, topic) == [[v for pair in expected[::2] for v in pair]]
    assert read_topic(broker.bootstrap, topic, isolation=UNCOMMITTED) == [[v for pair in expected for v in pair]]


def test_an_open_transaction_is_hidden(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name
) -> None:
    topic = new_topic()
    producer = transactional_producer(broker.bootstrap, unique_name())
    producer.begin_transaction()
    write(producer, topic, b"x")
    producer.flush(SECONDS)
    assert read_topic(broker.bootstrap, topic) == [[]]
    assert read_topic(broker.bootstrap, topic, isolation=UNCOMMITTED) == [[b"x"]]
    producer.commit_transaction(SECONDS)
    wait_settled(client, topic)
    assert read_topic(broker.bootstrap, topic) == [[b"x"]]


def test_a_second_producer_with_the_same_id_fences_the_first(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name
) -> None:
    topic, name = new_topic(), unique_name()
    first = transactional_producer(broker.bootstrap, name)
    first.begin_transaction()
    write(first, topic, b"first")
    first.flush(SECONDS)
    second = transactional_producer(broker.bootstrap, name)
    second.begin_transaction()
    write(second, topic, b"second")
    second.commit_transaction(SECONDS)
    with pytest.raises(KafkaException) as refusal:
        first.commit_transaction(SECONDS)
    assert refusal.value.args[0].fatal()
    assert code_of(refusal) in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
    wait_settled(client, topic)
    assert read_topic(broker.bootstrap, topic) == [[b"second"]]


def test_a_transaction_that_takes_too_long_is_aborted(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name
) -> None:
    topic, name = new_topic(), unique_name()
    slow = transactional_producer(broker.bootstrap, name, **{"transaction.timeout.ms": 1000})
    slow.begin_transaction()
    write(slow, topic, b"slow")
    slow.flush(SECONDS)
    wait_until(lambda: transaction_state(client, name) == "CompleteAbort", what="the transaction to time out")
    with pytest.raises(KafkaException):
        slow.commit_transaction(SECONDS)
    wait_settled(client, topic)
    assert read_topic(broker.bootstrap, topic) == [[]]
    again = transactional_producer(broker.bootstrap, name)
    again.begin_transaction()
    write(again, topic, b"again")
    again.commit_transaction(SECONDS)
    wait_settled(client, topic)
    assert read_topic(broker.bootstrap, topic) == [[b"again"]]


def test_a_timeout_beyond_the_limit_is_refused(broker: Broker, unique_name: Name) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": unique_name(), "transaction.timeout.ms": 900_001}
    )
    with pytest.raises(KafkaException) as refusal:
        producer.init_transactions(SECONDS)
    assert code_of(refusal) == KafkaError.INVALID_TRANSACTION_TIMEOUT


def test_many_partitions_in_one_transaction(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name
) -> None:
    partitions = 150
    topic = new_topic(partitions)
    producer = transactional_producer(broker.bootstrap, unique_name())
    for word in (b"kept", b"dropped", b"kept too"):
        producer.begin_transaction()
        for number in range(partitions):
            write(producer, topic, word, partition=number)
        producer.flush(SECONDS)
        if word == b"dropped":
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)
    wait_settled(client, topic, partitions)
    assert read_topic(broker.bootstrap, topic, partitions=partitions) == [[b"kept", b"kept too"]] * partitions


def test_many_producers_at_the_same_time(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name
) -> None:
    producers, partitions, transactions = 6, 8, 12
    topic, name = new_topic(partitions), unique_name()

    def run(which: int) -> None:
        producer = transactional_producer(broker.bootstrap, f"{name}-{which}")
        for number in range(transactions):
            producer.begin_transaction()
            is_kept = (which + number) % 3 != 0
            for partition in range(partitions):
                write(producer, topic, b"%d %d %d" % (which, number, is_kept), partition=partition)
            if is_kept:
                producer.commit_transaction(SECONDS)
            else:
                producer.flush(SECONDS)
                producer.abort_transaction(SECONDS)

    with ThreadPoolExecutor(producers) as threads:
        list(threads.map(run, range(producers)))
    wait_settled(client, topic, partitions)
    expected = [[b"%d %d 1" % (w, n) for n in range(transactions) if (w + n) % 3] for w in range(producers)]
    for found in read_topic(broker.bootstrap, topic, partitions=partitions):
        assert [[v for v in found if v.startswith(b"%d " % w)] for w in range(producers)] == expected


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_records_and_offsets_in_one_transaction(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name, protocol: str
) -> None:
    source, target, group = new_topic(2), new_topic(2), unique_name()
    plain = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(40):
        write(plain, source, b"%d" % number, partition=number % 2)
    assert plain.flush(SECONDS) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "isolation.level": COMMITTED,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = transactional_producer(broker.bootstrap, unique_name())
    try:
        consumer.subscribe([source])
        copied = 0
        rounds = 0
        while copied < 40:
            messages = [one for one in consumer.consume(7, 1.0) if one.error() is None]
            if not messages:
                continue
            rounds += 1
            producer.begin_transaction()
            for message in messages:
                write(producer, target, message.value() or b"", partition=message.partition() or 0)
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), SECONDS
            )
            if rounds == 2:
                producer.flush(SECONDS)
                producer.abort_transaction(SECONDS)
                for partition in consumer.committed(consumer.assignment(), SECONDS):
                    partition.offset = max(partition.offset, 0)
                    consumer.seek(partition)
            else:
                producer.commit_transaction(SECONDS)
                copied += len(messages)
        committed = consumer.committed([TopicPartition(source, 0), TopicPartition(source, 1)], SECONDS)
        assert [one.offset for one in committed] == [20, 20]
    finally:
        consumer.close()
    wait_settled(client, target, 2)
    expected = [[b"%d" % number for number in range(40) if number % 2 == partition] for partition in range(2)]
    assert read_topic(broker.bootstrap, target, partitions=2) == expected


def test_offsets_of_an_open_transaction_are_not_stable(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name
) -> None:
    topic, group = new_topic(), unique_name()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    producer = transactional_producer(broker.bootstrap, unique_name())
    try:
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(0.1) is None and consumer.assignment(), within=SECONDS, what="an assignment")
        producer.begin_transaction()
        offsets = [TopicPartition(topic, 0, 5)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)
        assert fetch_offset(client, group, topic, stable=True)[0].name == "UNSTABLE_OFFSET_COMMIT"
        assert fetch_offset(client, group, topic)[1] == -1
        producer.commit_transaction(SECONDS)
        wait_until(lambda: not unfinished(client), what="the markers")
        assert fetch_offset(client, group, topic, stable=True)[1] == 5
    finally:
        consumer.close()


def test_offsets_of_a_member_that_was_replaced_are_refused(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name
) -> None:
    topic, group = new_topic(), unique_name()
    old = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    producer = transactional_producer(broker.bootstrap, unique_name())
    old.subscribe([topic])
    wait_until(lambda: old.poll(0.1) is None and old.assignment(), within=SECONDS, what="an assignment")
    metadata = old.consumer_group_metadata()
    old.close()
    producer.begin_transaction()
    with pytest.raises(KafkaException) as refusal:
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 5)], metadata, SECONDS)
    assert refusal.value.args[0].txn_requires_abort()
    producer.abort_transaction(SECONDS)
    wait_until(lambda: not unfinished(client), what="the markers")
    assert fetch_offset(client, group, topic, stable=True)[1] == -1


def test_idempotent_producers_are_not_affected(
    broker: Broker, admin: AdminClient, new_topic: TopicMaker, unique_name: Name
) -> None:
    topic = new_topic()
    producer = transactional_producer(broker.bootstrap, unique_name())
    producer.begin_transaction()
    write(producer, topic, b"transactional")
    producer.flush(SECONDS)
    plain = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    write(plain, topic, *(b"%d" % number for number in range(1000)))
    assert plain.flush(SECONDS) == 0
    assert len(read_topic(broker.bootstrap, topic, isolation=UNCOMMITTED)[0]) == 1001
    assert read_topic(broker.bootstrap, topic) == [[]], "they come behind the open transaction"
    producer.abort_transaction(SECONDS)
    expected = [b"%d" % number for number in range(1000)]
    wait_until(lambda: read_topic(broker.bootstrap, topic) == [expected], what="the end of the transaction")
