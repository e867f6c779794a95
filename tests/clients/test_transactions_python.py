"""Transactions with aiokafka and kafka-python: commits, aborts, offsets, fencing, a client that crashed."""

from __future__ import annotations

from collections.abc import Callable

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
import pytest
from kafka.structs import OffsetAndMetadata as KafkaPythonOffset
from kafka.structs import TopicPartition as KafkaPythonPartition

from strandline.wire.client import Client
from tests.broker import Broker
from tests.clients.conftest import TopicMaker
from tests.clients.transactions import (
    COMMITTED,
    UNCOMMITTED,
    read_topic,
    transactional_broker,
    wait_settled,
)
from tests.waiting import wait_until
from tests.wirelevel.transactional import GROUP_COORDINATOR, fetch_offset, unfinished, wait_for_coordinator

Name = Callable[[], str]

broker = transactional_broker
TIMEOUT_MS = 20_000


# aiokafka


async def test_aiokafka_commits_and_aborts(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name
) -> None:
    topic = new_topic(2)
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=unique_name())
    await producer.start()
    try:
        for number in range(6):
            await producer.begin_transaction()
            for partition in range(2):
                await producer.send_and_wait(topic, b"%d" % number, partition=partition)
            if number % 3 == 1:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
    finally:
        await producer.stop()
    wait_settled(client, topic, 2)
    assert read_topic(broker.bootstrap, topic, partitions=2) == [[b"0", b"2", b"3", b"5"]] * 2
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=broker.bootstrap, isolation_level=COMMITTED, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        seen = [(await consumer.getone()).value for _ in range(8)]
        assert sorted(seen) == sorted([b"0", b"2", b"3", b"5"] * 2)
    finally:
        await consumer.stop()


async def test_aiokafka_sends_offsets(broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name) -> None:
    topic, group = new_topic(), unique_name()
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=unique_name())
    await producer.start()
    place = aiokafka.TopicPartition(topic, 0)
    try:
        for offset, is_commit in ((3, True), (9, False)):
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"x", partition=0)
            await producer.send_offsets_to_transaction({place: offset}, group)
            assert fetch_offset(client, group, topic, stable=True)[0].name == "UNSTABLE_OFFSET_COMMIT"
            await (producer.commit_transaction() if is_commit else producer.abort_transaction())
            wait_until(lambda: not unfinished(client), what="the markers")
            assert fetch_offset(client, group, topic, stable=True)[1] == 3
    finally:
        await producer.stop()
    wait_settled(client, topic)


async def test_aiokafka_is_fenced(broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name) -> None:
    topic, name = new_topic(), unique_name()
    first = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name)
    second = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name)
    await first.start()
    try:
        await first.begin_transaction()
        await first.send_and_wait(topic, b"first", partition=0)
        await second.start()
        try:
            async with second.transaction():
                await second.send_and_wait(topic, b"second", partition=0)
        finally:
            await second.stop()
        with pytest.raises(aiokafka.errors.ProducerFenced):
            await first.commit_transaction()
    finally:
        await first.stop()
    wait_settled(client, topic)
    assert read_topic(broker.bootstrap, topic) == [[b"second"]]


async def test_aiokafka_begins_again_after_a_crash(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name
) -> None:
    """Nobody has ended the transaction of the producer that is gone."""
    topic, name = new_topic(), unique_name()
    crashed = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name)
    crashed.init_transactions()
    crashed.begin_transaction()
    crashed.send(topic, b"lost", partition=0).get(20)
    again = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name)
    await again.start()
    try:
        wait_settled(client, topic)
        async with again.transaction():
            await again.send_and_wait(topic, b"kept", partition=0)
    finally:
        await again.stop()
        crashed.close(timeout=0)
    wait_settled(client, topic)
    assert read_topic(broker.bootstrap, topic) == [[b"kept"]]
    assert read_topic(broker.bootstrap, topic, isolation=UNCOMMITTED) == [[b"lost", b"kept"]]


# kafka-python


def test_kafka_python_commits_and_aborts(
    broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name
) -> None:
    topic, group = new_topic(2), unique_name()
    wait_for_coordinator(client, group, kind=GROUP_COORDINATOR)
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=unique_name())
    try:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            for partition in range(2):
                producer.send(topic, b"%d" % number, partition=partition)
            producer.flush(20)
            offsets = {KafkaPythonPartition(topic, 0): KafkaPythonOffset(number, "", -1)}
            producer.send_offsets_to_transaction(offsets, group)
            if number % 3 == 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    finally:
        producer.close(timeout=5)
    wait_settled(client, topic, 2)
    assert read_topic(broker.bootstrap, topic, partitions=2) == [[b"0", b"1", b"3", b"4"]] * 2
    assert fetch_offset(client, group, topic, stable=True)[1] == 4
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        isolation_level=COMMITTED,
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_MS,
    )
    try:
        seen = [next(consumer).value for _ in range(8)]
        assert sorted(seen) == sorted([b"0", b"1", b"3", b"4"] * 2)
    finally:
        consumer.close()


def test_kafka_python_is_fenced(broker: Broker, client: Client, new_topic: TopicMaker, unique_name: Name) -> None:
    topic, name = new_topic(), unique_name()
    first, second = (kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name) for _ in range(2))
    try:
        first.init_transactions()
        first.begin_transaction()
        first.send(topic, b"first", partition=0).get(20)
        second.init_transactions()
        second.begin_transaction()
        second.send(topic, b"second", partition=0).get(20)
        second.commit_transaction()
        with pytest.raises(kafka.errors.KafkaError):
            first.commit_transaction()
    finally:
        first.close(timeout=0)
        second.close(timeout=5)
    wait_settled(client, topic)
    assert read_topic(broker.bootstrap, topic) == [[b"second"]]
