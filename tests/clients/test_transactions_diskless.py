"""librdkafka's transactions on diskless topics, with one broker and with two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strandline.wire.client import Client
from tests.broker import BrokerProcess, running_broker
from tests.clients.transactions import (
    TRANSACTION_SETTINGS,
    UNCOMMITTED,
    client_of,
    read_topic,
    transactional_producer,
    wait_settled,
)
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.postgres import start_postgres
from tests.waiting import wait_until
from tests.wirelevel.raw import connected, create_topic
from tests.wirelevel.transactional import end_of, last_stable_offset, open_producers, unfinished

PARTITIONS = 4


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("broker") / "data", TRANSACTION_SETTINGS) as running:
        yield running


def write(producer: Producer, topic: str, *values: bytes, partition: int = 0) -> None:
    for value in values:
        producer.produce(topic, value=value, partition=partition)
    assert producer.flush(SECONDS) == 0


def make(broker: BrokerProcess, topic: str, kind: str) -> None:
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic, message_timestamp_type=kind, diskless_enable="true")


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_commits_and_aborts(broker: BrokerProcess, client: Client, kind: str) -> None:
    topic = f"both-{kind}"
    make(broker, topic, kind)
    producer = transactional_producer(broker.bootstrap, topic)
    for number in range(10):
        producer.begin_transaction()
        write(producer, topic, b"%d" % number, b"%d again" % number)
        if number % 2:
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)
    wait_settled(client, topic)
    pairs = [[b"%d" % n, b"%d again" % n] for n in range(10)]
    assert read_topic(broker.bootstrap, topic) == [[value for pair in pairs[::2] for value in pair]]
    assert read_topic(broker.bootstrap, topic, isolation=UNCOMMITTED) == [[value for pair in pairs for value in pair]]


def test_an_open_transaction_is_hidden_and_shown_to_operators(broker: BrokerProcess, client: Client) -> None:
    make(broker, "open", "CreateTime")
    producer = transactional_producer(broker.bootstrap, "open")
    producer.begin_transaction()
    write(producer, "open", b"x")
    assert read_topic(broker.bootstrap, "open") == [[]]
    assert read_topic(broker.bootstrap, "open", isolation=UNCOMMITTED) == [[b"x"]]
    assert len(open_producers(client, "open")) == 1
    assert (last_stable_offset(client, "open"), end_of(client, "open")) == (0, 1)
    producer.commit_transaction(SECONDS)
    wait_settled(client, "open")
    assert read_topic(broker.bootstrap, "open") == [[b"x"]]


def test_a_transaction_that_takes_too_long_is_aborted(broker: BrokerProcess, client: Client) -> None:
    make(broker, "late", "CreateTime")
    producer = transactional_producer(broker.bootstrap, "late", **{"transaction.timeout.ms": 1_000})
    producer.begin_transaction()
    write(producer, "late", b"lost")
    wait_until(lambda: not open_producers(client, "late"), within=SECONDS, what="the timeout")
    wait_settled(client, "late")
    assert read_topic(broker.bootstrap, "late") == [[]]


# Two brokers


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    url = start_postgres().new_database()
    directory: Path = tmp_path_factory.mktemp("cluster")
    settings = {**TRANSACTION_SETTINGS, "strandline.objects.url": f"file://{directory / 'objects'}"}
    with running_cluster(directory, url, settings=settings) as running:
        yield running


def test_every_broker_shows_what_is_decided(cluster: BrokerCluster) -> None:
    """Partitions of a transaction are led by both brokers, and markers are written by both."""
    cluster.create("shared", partitions=PARTITIONS, via=1, config={"diskless.enable": "true"})
    assert set(cluster.leaders("shared", 1)) == {1, 2}
    bootstraps = [broker.bootstrap for broker in cluster.brokers.values()]
    producers = [transactional_producer(bootstraps[number % 2], f"shared-{number}") for number in range(3)]
    expected: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    for round_ in range(6):
        for number, producer in enumerate(producers):
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                write(producer, "shared", b"%d %d" % (round_, number), partition=partition)
        for number, producer in enumerate(producers):
            if (round_ + number) % 3 == 0:
                producer.abort_transaction(SECONDS)
            else:
                producer.commit_transaction(SECONDS)
    with client_of(bootstraps[0]) as one, client_of(bootstraps[1]) as other:
        for client in (one, other):
            wait_until(lambda at=client: not unfinished(at), within=SECONDS, what="all markers")  # type: ignore[misc]
    for partition in range(PARTITIONS):
        for round_ in range(6):
            expected[partition] += [b"%d %d" % (round_, n) for n in range(3) if (round_ + n) % 3]
    for bootstrap in bootstraps:
        assert read_topic(bootstrap, "shared", partitions=PARTITIONS) == expected
