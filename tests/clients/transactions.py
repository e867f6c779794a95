"""A broker with quick timeouts of transactions, and what consumers of each isolation level read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from strandline.wire.client import Client
from tests.broker import TIERS, Broker, broker_for_clients
from tests.waiting import wait_until
from tests.wirelevel.transactional import end_of, last_stable_offset, unfinished

SECONDS = 30.0
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"

TRANSACTION_SETTINGS: Mapping[str, str] = {
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}


# A module of tests takes one of these as its `broker`.


@pytest.fixture(scope="module")
def transactional_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_for_clients(tmp_path_factory.mktemp("broker") / "data", TRANSACTION_SETTINGS) as running:
        yield running


@pytest.fixture(scope="module", params=sorted(TIERS))
def transactional_broker_of_tier(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    settings = {**TRANSACTION_SETTINGS, **TIERS[request.param]}
    with broker_for_clients(tmp_path_factory.mktemp("broker") / "data", settings) as running:
        yield running


def client_of(bootstrap: str) -> Client:
    host, port = bootstrap.split(",")[0].rsplit(":", 1)
    return Client.connect(host, int(port))


def transactional_producer(bootstrap: str, transactional_id: str, **settings: object) -> Producer:
    """A producer of librdkafka that has its epoch."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 1, **settings}
    )
    producer.init_transactions(SECONDS)
    return producer


def read_topic(bootstrap: str, topic: str, *, partitions: int = 1, isolation: str = COMMITTED) -> list[list[bytes]]:
    """The values of each partition up to its end, or its last stable offset, as a consumer of librdkafka sees them."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    found: list[list[bytes]] = [[] for _ in range(partitions)]
    at_end: set[int] = set()

    def is_read() -> bool:
        for message in consumer.consume(500, 0.2):
            number = message.partition()
            assert number is not None
            if message.error() is None:
                found[number].append(message.value() or b"")
            else:
                at_end.add(number)
        return len(at_end) == partitions

    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        wait_until(is_read, within=SECONDS, step=0.0, what=f"the end of {topic}")
    finally:
        consumer.close()
    return found


def wait_settled(client: Client, topic: str, partitions: int = 1) -> None:
    """Until no transaction is open on the broker, and nothing holds back the consumers of a topic."""
    wait_until(lambda: not unfinished(client), within=SECONDS, what="all transactions to be complete")
    for number in range(partitions):
        assert last_stable_offset(client, topic, number) == end_of(client, topic, number), number
