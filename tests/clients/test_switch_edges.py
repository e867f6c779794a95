"""Unusual topics that become diskless: empty, expired, all local, all remote, deleted meanwhile, trimmed afterwards."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker import BrokerProcess, running_broker
from tests.clients.drivers import DRIVERS, Driver, driver_name
from tests.clients.switching import (
    DISKLESS_ONLY,
    HYBRID,
    boundaries,
    described_state,
    switch,
    switch_all,
    wait_state,
    wait_switched,
)
from tests.clients.tiering import (
    QUICK,
    SECONDS,
    TIERED,
    alter,
    create,
    earliest,
    first_local_offset,
    kafka_admin,
    local_logs,
    numbered,
    offset_of,
    produce,
    read,
    remote_logs,
    values,
    wait_tiered,
)
from tests.waiting import wait_until

PATIENCE_MS = 60_000  # longer than any test waits
RETAINING = {"inkless.retention.enforcement.interval.ms": "50"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("switches") / "data", {**QUICK, **RETAINING}) as broker:
        yield broker


@pytest.fixture
def admin(own: BrokerProcess) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": own.bootstrap}) as opened:  # closed before the broker ends
        yield opened


def delete_records(admin: AdminClient, topic: str, before: int) -> int:
    """The log start that DeleteRecords answers with; -1 stands for the end."""
    untyped: Any = admin
    wanted = TopicPartition(topic, 0, before)
    (future,) = untyped.delete_records([wanted]).values()
    return int(future.result(SECONDS).low_watermark)


def latest(admin: AdminClient, topic: str) -> int:
    return offset_of(admin, topic, kafka_admin.OffsetSpec.latest())


@pytest.mark.parametrize("driver", DRIVERS, ids=driver_name)
def test_an_empty_topic_that_was_never_tiered(
    own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str], driver: Driver
) -> None:
    topic = create(admin, unique_name(), {}, partitions=2)
    switch(admin, topic)
    wait_state(own, topic, DISKLESS_ONLY)
    assert boundaries(own, topic) == [0, 0]
    assert described_state(admin, topic) == DISKLESS_ONLY
    sent = numbered(0, 20)
    assert driver.produce(own.bootstrap, topic, sent, partition=1) == list(range(20))
    assert values(driver.consume(own.bootstrap, topic, 20, partition=1)) == list(range(20))


@pytest.mark.parametrize("configs", [{}, TIERED], ids=["classic", "tiered"])
def test_a_log_whose_records_are_all_deleted(
    own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str], configs: dict[str, str]
) -> None:
    topic = create(admin, unique_name(), configs)
    produce(own, topic, numbered(0, 60))
    assert delete_records(admin, topic, -1) == 60
    switch(admin, topic)
    assert wait_switched(own, topic) == [60]
    wait_state(own, topic, DISKLESS_ONLY)
    assert (earliest(admin, topic), latest(admin, topic)) == (60, 60)
    assert produce(own, topic, numbered(60, 10)) == list(range(60, 70))
    assert values(read(own, topic, 10, offset=60)) == list(range(60, 70))
    assert earliest(admin, topic) == 60


def test_records_that_are_all_in_the_active_segment_are_copied_after_the_switch(
    own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    topic = create(admin, unique_name(), {"remote.storage.enable": "true"})
    produce(own, topic, numbered(0, 60))
    assert remote_logs(own, topic) == []
    switch(admin, topic)
    assert wait_switched(own, topic) == [60]
    assert produce(own, topic, numbered(60, 10)) == list(range(60, 70))
    wait_state(own, topic, HYBRID)
    assert len(remote_logs(own, topic)) == 1
    assert values(read(own, topic, 70)) == list(range(70))


def test_a_log_that_only_remote_storage_has(
    own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    topic = create(admin, unique_name(), {**TIERED, "local.retention.ms": "1"})
    produce(own, topic, numbered(0, 60))
    wait_tiered(own, topic)
    switch(admin, topic)
    assert wait_switched(own, topic) == [60]
    wait_state(own, topic, HYBRID)
    wait_until(lambda: first_local_offset(own, topic) == 60, "the prefix to leave the disk")
    assert [path.stat().st_size for path in local_logs(own, topic)] == [0]
    produce(own, topic, numbered(60, 10))
    assert values(read(own, topic, 70)) == list(range(70))
    assert values(read(own, topic, 70, isolation="read_committed")) == list(range(70))
    assert earliest(admin, topic) == 0


def test_reads_of_remote_segments_that_are_under_way(
    own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    topic = create(admin, unique_name())
    produce(own, topic, numbered(0, 200))
    first_local = wait_tiered(own, topic)
    is_over = threading.Event()

    def keep_reading() -> int:
        rounds = 0
        while not is_over.is_set() or rounds == 0:
            assert values(read(own, topic, first_local)) == list(range(first_local))
            rounds += 1
        return rounds

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(keep_reading) for _ in range(2)]
        try:
            switch(admin, topic)
            wait_switched(own, topic)
            wait_state(own, topic, HYBRID)
        finally:
            is_over.set()
        assert all(reader.result(SECONDS) for reader in readers)


@pytest.mark.parametrize("min_bytes", [1, 100])
def test_a_consumer_that_waits_at_the_end_of_the_log_gets_the_first_record_behind_the_boundary(
    own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str], min_bytes: int
) -> None:
    topic = create(admin, unique_name())
    produce(own, topic, numbered(0, 10))
    consumer = Consumer(
        {
            "bootstrap.servers": own.bootstrap,
            "group.id": topic,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.min.bytes": min_bytes,
            "fetch.wait.max.ms": PATIENCE_MS,
            "socket.timeout.ms": 2 * PATIENCE_MS,
        }
    )
    with closing(consumer):
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert len(consumer.consume(10, timeout=SECONDS)) == 10
        switch(admin, topic)
        wait_switched(own, topic)
        produce(own, topic, numbered(10, 1))
        (message,) = consumer.consume(1, timeout=SECONDS)
        assert (message.error(), message.offset()) == (None, 10)


def test_a_topic_that_is_deleted_during_its_switch_and_created_again(
    own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    for configs in (TIERED, TIERED, {}):
        create(admin, name, configs)
        if configs:
            produce(own, name, numbered(0, 30))
            switch(admin, name)
        admin.delete_topics([name])[name].result(SECONDS)
    create(admin, name, TIERED)
    assert produce(own, name, numbered(500, 30)) == list(range(30))
    switch(admin, name)
    assert wait_switched(own, name) == [30]
    produce(own, name, numbered(530, 5))
    assert values(read(own, name, 35)) == list(range(500, 535))
    wait_state(own, name, HYBRID)


class TestDeleteRecords:
    def test_before_the_switch(self, own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str]) -> None:
        topic = create(admin, unique_name())
        produce(own, topic, numbered(0, 60))
        assert delete_records(admin, topic, 25) == 25
        switch(admin, topic)
        assert wait_switched(own, topic) == [60]
        produce(own, topic, numbered(60, 10))
        assert earliest(admin, topic) == 25
        assert values(read(own, topic, 45, offset=25)) == list(range(25, 70))
        wait_state(own, topic, HYBRID)

    def test_into_the_prefix_then_into_the_suffix_then_to_the_end(
        self, own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str]
    ) -> None:
        topic = create(admin, unique_name())
        produce(own, topic, numbered(0, 60))
        switch(admin, topic)
        assert wait_switched(own, topic) == [60]
        produce(own, topic, numbered(60, 30))
        wait_state(own, topic, HYBRID)
        assert delete_records(admin, topic, 35) == 35
        assert earliest(admin, topic) == 35
        assert values(read(own, topic, 55, offset=35)) == list(range(35, 90))
        assert boundaries(own, topic) == [60]
        assert delete_records(admin, topic, 75) == 75
        assert earliest(admin, topic) == 75
        assert values(read(own, topic, 15, offset=75)) == list(range(75, 90))
        wait_state(own, topic, DISKLESS_ONLY)
        wait_until(lambda: not remote_logs(own, topic), "the remote segments to go")
        assert delete_records(admin, topic, -1) == 90
        assert (earliest(admin, topic), latest(admin, topic)) == (90, 90)
        assert produce(own, topic, numbered(90, 1)) == [90]
        assert boundaries(own, topic) == [60]


class TestRetention:
    def test_by_size_counts_both_parts_and_takes_the_prefix_first(
        self, own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str]
    ) -> None:
        topic = create(admin, unique_name())
        produce(own, topic, numbered(0, 60))
        switch(admin, topic)
        assert wait_switched(own, topic) == [60]
        produce(own, topic, numbered(60, 60))
        wait_state(own, topic, HYBRID)
        alter(admin, topic, {"retention.bytes": "90000"})
        wait_until(lambda: earliest(admin, topic) > 0, "the first segments to go")
        start = earliest(admin, topic)
        assert 0 < start <= 40, "about 30 of 120 records are too many, and whole segments go"
        assert values(read(own, topic, 120 - start, offset=start)) == list(range(start, 120))
        alter(admin, topic, {"retention.bytes": "30000"})
        wait_state(own, topic, DISKLESS_ONLY)
        wait_until(lambda: earliest(admin, topic) > 60, "the first batches of the suffix to go")
        start = earliest(admin, topic)
        assert values(read(own, topic, 120 - start, offset=start)) == list(range(start, 120))
        wait_until(lambda: not remote_logs(own, topic), "the remote segments to go")

    def test_by_time_takes_the_prefix_and_then_the_suffix(
        self, own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str]
    ) -> None:
        topic = create(admin, unique_name(), {**TIERED, "retention.ms": "-1"})
        produce(own, topic, numbered(0, 60, start_ms=1_000_000))
        switch(admin, topic)
        assert wait_switched(own, topic) == [60]
        produce(own, topic, numbered(60, 10, start_ms=1_000_000))
        produce(own, topic, numbered(70, 10))
        wait_state(own, topic, HYBRID)
        assert earliest(admin, topic) == 0
        alter(admin, topic, {"retention.ms": "3600000"})
        wait_state(own, topic, DISKLESS_ONLY)
        wait_until(lambda: earliest(admin, topic) == 70, "the old records of the suffix to go")
        assert values(read(own, topic, 10, offset=70)) == list(range(70, 80))
        assert (latest(admin, topic), boundaries(own, topic)) == (80, [60])


def test_a_prefix_that_is_not_copied_yet_expires_too(
    own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    topic = create(admin, unique_name(), {"remote.storage.enable": "true", "retention.ms": "-1"})
    produce(own, topic, numbered(0, 20, start_ms=1_000_000))
    switch(admin, topic)
    alter(admin, topic, {"retention.ms": "3600000"})
    wait_state(own, topic, DISKLESS_ONLY)
    assert (earliest(admin, topic), latest(admin, topic), boundaries(own, topic)) == (20, 20, [20])


def test_two_hundred_topics_at_once(tmp_path: Path) -> None:
    """In the order of the requests, at most five at a time."""
    names = [f"topic-{number:03}" for number in range(200)]
    written = names[::20]
    with running_broker(tmp_path / "data", QUICK) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topics = [kafka_admin.NewTopic(name, 1, 1, config={"remote.storage.enable": "true"}) for name in names]
        for future in admin.create_topics(topics).values():
            future.result(SECONDS)
        for name in written:
            produce(broker, name, numbered(0, 3))
        switch_all(admin, names)
        for name in reversed(names):
            found = wait_state(broker, name, HYBRID, DISKLESS_ONLY)
            assert found["state"] == (HYBRID if name in written else DISKLESS_ONLY)
            assert [partition["b0"] for partition in found["partitions"]] == [3 if name in written else 0]
        assert produce(broker, written[-1], numbered(0, 1)) == [3]
        with closing(sqlite3.connect(broker.data_dir / "metadata.db")) as database:
            switched = [name for (name,) in database.execute("SELECT topic_name FROM inkless_log ORDER BY log_id")]
        assert sorted(switched) == names
        overtaken = [sum(other < name for other in switched[place:]) for place, name in enumerate(switched)]
        assert max(overtaken) < 5, "at most four that were requested before a topic were still under way"
