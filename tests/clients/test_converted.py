"""Clients of diskless topics whose records are converted into remote segments, before, meanwhile and afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker import BrokerProcess, running_broker
from tests.clients.drivers import DRIVERS, Driver, driver_name
from tests.clients.switching import HYBRID, switch, wait_state
from tests.clients.tiering import (
    QUICK,
    SECONDS,
    TIERED,
    alter,
    create,
    earliest,
    kafka_admin,
    numbered,
    offset_of,
    produce,
    read,
    remote_logs,
    values,
)
from tests.files import files_below
from tests.moments import T0
from tests.pipeline.world import convert
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

DISKLESS = {"diskless.enable": "true", "retention.ms": "-1"}
# Nothing is served from memory, and objects go as soon as no row needs them.
BARE = {
    **QUICK,
    "inkless.consume.cache.max.bytes": "0",
    "inkless.file.cleaner.interval.ms": "100",
    "inkless.file.cleaner.retention.period.ms": "0",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path / "data", BARE) as running:
        yield running


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap}) as opened:  # closed before the broker ends
        yield opened


def wal_objects(broker: BrokerProcess) -> int:
    return len(files_below(broker.data_dir / "objects" / "wal"))


def offset_at(bootstrap: str, topic: str, timestamp: int) -> int:
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})) as consumer:
        return consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=SECONDS)[0].offset


def check_offsets(broker: BrokerProcess, topic: str, *, count: int, first: int = 0) -> None:
    """What ListOffsets answers on a topic with one record in each millisecond from T0 on."""
    spec = kafka_admin.OffsetSpec
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})  # one that knows nothing from before a restart
    assert earliest(admin, topic) == first
    assert offset_of(admin, topic, spec.latest()) == count
    assert offset_of(admin, topic, spec.max_timestamp()) == count - 1
    for offset in (first, first + 1, (first + count) // 2, count - 1):
        assert offset_at(broker.bootstrap, topic, T0 + offset) == offset


def test_the_log_is_the_same_before_and_after_conversion_and_a_restart(
    broker: BrokerProcess, admin: AdminClient
) -> None:
    topic = create(admin, "orders", DISKLESS)
    produce(broker, topic, numbered(0, 40, start_ms=T0))

    def check(count: int) -> None:
        for driver in DRIVERS:
            everything = driver.consume(broker.bootstrap, topic, count, isolation="read_committed")
            assert (values(everything), [one.offset for one in everything]) == (2 * (list(range(count)),))
            for offset in (5, 33, count - 3):
                assert values(driver.consume(broker.bootstrap, topic, 3, offset=offset)) == [*range(offset, offset + 3)]
        check_offsets(broker, topic, count=count)

    check(40)
    assert [*convert(broker.bootstrap, topic).boundaries.values()] == [40]
    wait_until(lambda: wal_objects(broker) == 0, "the WAL objects to go")
    check(40)
    produce(broker, topic, numbered(40, 20, start_ms=T0))
    check(60)
    convert(broker.bootstrap, topic)
    produce(broker, topic, numbered(60, 10, start_ms=T0))
    assert len(remote_logs(broker, topic)) >= 2
    broker.restart()
    check(70)


def test_consumers_notice_nothing_while_records_are_converted(broker: BrokerProcess, admin: AdminClient) -> None:
    """They wait at the end, or come later and begin at the beginning, while others write and objects go."""
    topic = create(admin, "orders", DISKLESS)
    rounds, count = 4, 60

    def consume(driver: Driver) -> list[int]:
        return values(driver.consume(broker.bootstrap, topic, rounds * count))

    with ThreadPoolExecutor(2 * len(DRIVERS)) as pool:
        reading = [(driver_name(driver), pool.submit(consume, driver)) for driver in DRIVERS]
        for number in range(rounds):
            produce(broker, topic, numbered(number * count, count))
            if number == rounds // 2:
                reading += [(driver_name(driver), pool.submit(consume, driver)) for driver in DRIVERS]
            assert [*convert(broker.bootstrap, topic).boundaries.values()] == [(number + 1) * count]
        for name, received in reading:
            assert received.result(SECONDS) == [*range(rounds * count)], name


def test_deleted_records_are_gone_from_the_converted_part_too(broker: BrokerProcess, admin: AdminClient) -> None:
    topic = create(admin, "orders", DISKLESS)
    produce(broker, topic, numbered(0, 20, start_ms=T0))
    convert(broker.bootstrap, topic)
    produce(broker, topic, numbered(20, 20, start_ms=T0))
    convert(broker.bootstrap, topic)
    produce(broker, topic, numbered(40, 10, start_ms=T0))
    assert len(remote_logs(broker, topic)) == 2
    for before in (25, 45):
        untyped = kafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap})
        deleted = untyped.delete_records([TopicPartition(topic, 0, before)])
        assert [one.result(SECONDS).low_watermark for one in deleted.values()] == [before]
        check_offsets(broker, topic, count=50, first=before)
        assert values(read(broker, topic, 50 - before, offset=before)) == [*range(before, 50)]
    wait_until(lambda: not remote_logs(broker, topic), "the segments to go")
    broker.restart()
    check_offsets(broker, topic, count=50, first=45)
    assert values(read(broker, topic, 5, offset=45)) == [45, 46, 47, 48, 49]


def test_a_switched_topic_has_three_parts(broker: BrokerProcess, admin: AdminClient) -> None:
    topic = create(admin, "orders", {**TIERED, "retention.ms": "-1"})
    produce(broker, topic, numbered(0, 50, start_ms=T0))
    switch(admin, topic)
    wait_state(broker, topic, HYBRID)
    produce(broker, topic, numbered(50, 30, start_ms=T0))
    convert(broker.bootstrap, topic)
    produce(broker, topic, numbered(80, 10, start_ms=T0))

    def check() -> None:
        for driver in DRIVERS:
            everything = driver.consume(broker.bootstrap, topic, 90, isolation="read_committed")
            assert [one.offset for one in everything] == values(everything) == [*range(90)]
        for offset in (10, 49, 50, 79, 80):
            assert values(read(broker, topic, 3, offset=offset)) == [offset, offset + 1, offset + 2]
        check_offsets(broker, topic, count=90)

    check()
    broker.restart()
    check()


def test_converted_segments_outlive_the_prefix_and_its_leader(broker: BrokerProcess, admin: AdminClient) -> None:
    """The log of the prefix is empty then, and knows only the epoch of its newest leader."""
    topic = create(admin, "switched", {**TIERED, "retention.ms": "-1"})
    other = create(admin, "other", {**TIERED, "retention.ms": "-1"})
    for name in (topic, other):
        produce(broker, name, numbered(0, 50))
    switch(admin, topic)
    wait_state(broker, topic, HYBRID)
    produce(broker, topic, numbered(50, 50))
    convert(broker.bootstrap, topic)
    untyped = kafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    deleted = untyped.delete_records([TopicPartition(topic, 0, 60)])
    assert [one.result(SECONDS).low_watermark for one in deleted.values()] == [60]
    wait_until(lambda: len(remote_logs(broker, topic)) == 1, "the prefix to go")
    broker.restart()
    alter(admin, other, {"retention.ms": "1"})
    wait_until(lambda: not remote_logs(broker, other), "expiration to have run")
    produce(broker, topic, numbered(100, 10))
    assert values(read(broker, topic, 50, offset=60)) == [*range(60, 110)]
    assert len(remote_logs(broker, topic)) == 1
    assert earliest(admin, topic) == 60


def test_a_topic_that_is_created_again_has_nothing_of_the_old_one(broker: BrokerProcess, admin: AdminClient) -> None:
    topic = create(admin, "orders", DISKLESS)
    produce(broker, topic, numbered(0, 20, start_ms=T0))
    convert(broker.bootstrap, topic)
    assert values(read(broker, topic, 20)) == [*range(20)]
    admin.delete_topics([topic])[topic].result(SECONDS)
    create(admin, topic, DISKLESS)
    produce(broker, topic, numbered(100, 20, start_ms=T0))
    assert values(read(broker, topic, 20)) == [*range(100, 120)]
    convert(broker.bootstrap, topic)
    assert values(read(broker, topic, 20)) == [*range(100, 120)]
