"""Consumers of every kind on a topic that is mostly in remote storage, in a directory and on an S3 server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker import BrokerProcess, free_port, running_broker
from tests.clients.drivers import DRIVERS, Driver, driver_name
from tests.clients.tiering import (
    QUICK,
    SECONDS,
    TIERED,
    create,
    earliest,
    first_local_offset,
    numbered,
    produce,
    read,
    values,
    wait_tiered,
)
from tests.crash.tiered_store import s3_settings
from tests.s3 import start_s3
from tests.waiting import wait_until

COUNT = 400
START_MS = 1_700_000_000_000
TOPIC = "numbers"


@pytest.fixture(scope="module", params=["directory", "s3"])
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with COUNT records, nine of ten in remote storage alone."""
    storage = {}
    if request.param == "s3":
        s3 = start_s3()
        storage = s3_settings(s3, f"s3://{s3.new_bucket()}/some/prefix")
    with running_broker(tmp_path_factory.mktemp("tiered") / "data", {**QUICK, **storage}) as broker:
        create(AdminClient({"bootstrap.servers": broker.bootstrap}), TOPIC, {**TIERED, "retention.ms": "-1"})
        produce(broker, TOPIC, numbered(0, COUNT, start_ms=START_MS))
        assert wait_tiered(broker, TOPIC) >= COUNT * 0.9
        yield broker


def offset_at(driver: str, bootstrap: str, timestamp: int) -> int:
    """The offset of the first record at or after a time, as a client finds it."""
    if driver == "confluent-kafka":
        with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})) as consumer:
            return consumer.offsets_for_times([TopicPartition(TOPIC, 0, timestamp)], timeout=SECONDS)[0].offset
    if driver == "kafka-python":
        with closing(kafka.KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
            key = kafka.TopicPartition(TOPIC, 0)
            return int(consumer.offsets_for_times({key: timestamp})[key].offset)
    return asyncio.run(_offset_at(bootstrap, timestamp))


async def _offset_at(bootstrap: str, timestamp: int) -> int:
    async with asyncio.timeout(SECONDS), aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        key = aiokafka.TopicPartition(TOPIC, 0)
        return int((await consumer.offsets_for_times({key: timestamp}))[key].offset)


@pytest.mark.parametrize("driver", DRIVERS, ids=driver_name)
def test_everything_is_read_from_the_beginning_and_from_any_time(own: BrokerProcess, driver: Driver) -> None:
    assert values(driver.consume(own.bootstrap, TOPIC, COUNT)) == list(range(COUNT))
    for number in (0, 137, COUNT - 1):
        offset = offset_at(driver.name, own.bootstrap, START_MS + number)
        assert offset == number
        rest = driver.consume(own.bootstrap, TOPIC, min(COUNT - number, 50), offset=offset)
        assert values(rest) == list(range(number, min(number + 50, COUNT)))


def test_a_storage_that_never_was_there_harms_only_what_needs_it(tmp_path: Path) -> None:
    s3 = s3_settings(start_s3(), "s3://nowhere/prefix", port=free_port())
    with running_broker(tmp_path / "data", {**QUICK, **s3}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        create(admin, TOPIC)
        create(admin, "plain", {})
        for topic in (TOPIC, "plain"):
            assert produce(broker, topic, numbered(0, 100)) == list(range(100))
        away = "the remote storage of tiered topics is away"
        wait_until(lambda: away in broker.log_text, "a line in the log")
        line = next(line for line in broker.log_text.splitlines() if away in line)
        assert s3["rsm.config.storage.s3.endpoint.url"] in line
        assert "s3://nowhere/prefix" in line
        for topic in (TOPIC, "plain"):
            assert values(read(broker, topic, 100)) == list(range(100))
        assert (earliest(admin, TOPIC), first_local_offset(broker, TOPIC)) == (0, 0)
