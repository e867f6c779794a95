"""Idempotent producers over connections that break: every record once, in order.

A proxy stands between the clients and the broker, which advertises the proxy's address. It loses requests and
responses; the producers repeat what was not acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiokafka
import kafka
import pytest
from confluent_kafka import KafkaError, Message, Producer

from strandline.wire.api import ApiKey
from tests.broker import BrokerProcess, free_port, running_broker
from tests.clients.drivers import ConfluentDriver
from tests.proxy import Fate, Proxy
from tests.wirelevel.raw import connected, create_topic

RECORDS = 3000
FATES = (Fate.LOSE_RESPONSE, Fate.LOSE_REQUEST, Fate.CUT_RESPONSE)


def break_often(api_key: int, count: int) -> Fate:
    """Every seventh Produce breaks its connection, each time in another way; the first one passes."""
    if api_key == ApiKey.PRODUCE and count % 7 == 3:
        return FATES[count % len(FATES)]
    return Fate.PASS


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy(break_often) as proxy:
        yield proxy


@pytest.fixture
def broker(proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The proxy's clients reach the listener OUTSIDE; the test itself looks through a listener of its own."""
    outside, inside = free_port(), free_port()
    settings = {
        "listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside}",
        "advertised.listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{proxy.port}",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
    with running_broker(tmp_path_factory.mktemp("broker") / "data", settings, port=inside) as running:
        proxy.forward_to(outside)
        with connected(running.bootstrap) as connection:
            create_topic(connection, "numbers")
        yield running


def assert_each_number_once(broker: BrokerProcess, proxy: Proxy) -> None:
    received = ConfluentDriver().consume(broker.bootstrap, "numbers", RECORDS)
    assert [int(record.value or b"-1") for record in received] == list(range(RECORDS))
    assert [record.offset for record in received] == list(range(RECORDS))
    assert proxy.broken >= 3, "the proxy broke too little to prove anything"


def test_confluent_over_broken_connections(broker: BrokerProcess, proxy: Proxy) -> None:
    failures: list[str] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error.str())

    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{proxy.port}",
            "enable.idempotence": True,
            "max.in.flight.requests.per.connection": 5,
            "batch.num.messages": 20,
            "linger.ms": 0,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 10,
        }
    )
    for number in range(RECORDS):
        producer.produce("numbers", b"%d" % number, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert failures == []
    assert_each_number_once(broker, proxy)


def test_kafka_python_over_broken_connections(broker: BrokerProcess, proxy: Proxy) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=f"127.0.0.1:{proxy.port}",
        enable_idempotence=True,
        batch_size=500,
        reconnect_backoff_ms=10,
        reconnect_backoff_max_ms=50,
        retry_backoff_ms=10,
    )
    try:
        futures = [producer.send("numbers", b"%d" % number, partition=0) for number in range(RECORDS)]
        for future in futures:
            future.get(60)
    finally:
        producer.close()
    assert_each_number_once(broker, proxy)


async def test_aiokafka_over_broken_connections(broker: BrokerProcess, proxy: Proxy) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=f"127.0.0.1:{proxy.port}", enable_idempotence=True, max_batch_size=500, retry_backoff_ms=10
    )
    async with asyncio.timeout(100), producer:
        futures = [await producer.send("numbers", b"%d" % number, partition=0) for number in range(RECORDS)]
        await asyncio.gather(*futures)
    await asyncio.to_thread(assert_each_number_once, broker, proxy)
