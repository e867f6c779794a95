"""Switches that wait, are aborted, and outlive restarts of the broker in every state."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.broker import BrokerProcess, running_broker
from tests.clients.drivers import DRIVERS, Driver, driver_name
from tests.clients.switch_load import is_dense
from tests.clients.switching import (
    DISKLESS_ONLY,
    HYBRID,
    MIGRATING,
    ONE_AT_A_TIME,
    abort,
    boundaries,
    described_state,
    hold_queue,
    is_waiting,
    status,
    switch,
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
    kafka_admin,
    numbered,
    produce,
    read,
    remote_logs,
    values,
)
from tests.crash.writers import Writer, judge, read_all, wait_for_more
from tests.waiting import wait_until


@dataclass(frozen=True, slots=True)
class Queue:
    """A broker on which topic `switched` was switched; then `front` keeps all others waiting."""

    broker: BrokerProcess
    admin: AdminClient

    def pending(self, name: str, configs: Mapping[str, str] = TIERED, *, partitions: int = 1, records: int = 30) -> str:
        """A topic whose switch waits."""
        create(self.admin, name, configs, partitions=partitions)
        if records:
            produce(self.broker, name, numbered(0, records))
        switch(self.admin, name)
        wait_until(lambda: is_waiting(self.broker, name), f"{name} to wait for its turn")
        return name

    def go_on(self) -> None:
        """Let the next one have its turn."""
        self.admin.delete_topics(["front"])["front"].result(SECONDS)


@contextmanager
def queueing(directory: Path) -> Iterator[Queue]:
    with running_broker(directory / "data", {**QUICK, **ONE_AT_A_TIME}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        create(admin, "switched")
        produce(broker, "switched", numbered(0, 10))
        switch(admin, "switched")
        wait_state(broker, "switched", HYBRID)
        hold_queue(broker, admin)
        yield Queue(broker, admin)


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with queueing(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def long_queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """In which nobody ever has his turn."""
    with queueing(tmp_path_factory.mktemp("queue")) as running:
        yield running


# Aborting


@pytest.mark.parametrize("driver", DRIVERS, ids=driver_name)
def test_an_aborted_switch_leaves_topic_and_clients_as_they_were(
    long_queue: Queue, unique_name: Callable[[], str], driver: Driver
) -> None:
    broker, admin = long_queue.broker, long_queue.admin
    topic = long_queue.pending(unique_name(), partitions=2)
    writer = Writer(broker.bootstrap, topic, "writer", 2, pause=0.002)
    writer.start()
    try:
        wait_for_more([writer], 50)
        abort(admin, topic)
        wait_for_more([writer], 50)
        switch(admin, topic)
        wait_for_more([writer], 50)
        abort(admin, topic)
        wait_for_more([writer], 50)
    finally:
        writer.stop()
    assert writer.failures == []
    found = {place: value for place, value in read_all(broker.bootstrap, topic, 2).items() if value[0] == "w"}
    assert judge([writer], found).is_clean
    assert (described_state(admin, topic), status(broker, topic)["partitions"]) == ("TIERED_ONLY", [])
    offsets = driver.produce(broker.bootstrap, topic, numbered(0, 10), partition=1)
    received = driver.consume(broker.bootstrap, topic, 10, partition=1, offset=offsets[0])
    assert [record.offset for record in received] == offsets
    assert not [line for line in broker.log_text.splitlines() if topic in line and "became diskless" in line]


def test_a_switch_that_is_aborted_while_it_happens_is_aborted_or_happens(tmp_path: Path) -> None:
    """Either is asked for before the other is answered."""
    with running_broker(tmp_path / "data", QUICK) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        other = AdminClient({"bootstrap.servers": broker.bootstrap})
        writers = []
        for number in range(4):
            topic = create(admin, f"topic-{number}", partitions=3)
            writers.append(Writer(broker.bootstrap, topic, "writer", 3, pause=0.01))
        try:
            for writer in writers:
                writer.start()
            for writer in writers:
                wait_for_more([writer], 30)
            with ThreadPoolExecutor(2) as pool:
                outcomes = [
                    pool.submit(is_done, one, writer.topic, value)
                    for writer in writers
                    for _ in range(10)
                    for one, value in ((admin, "true"), (other, "false"))
                ]
            assert sum(outcome.result() for outcome in outcomes) >= len(writers)
            for writer in writers:
                is_done(admin, writer.topic, "true")
                assert all(boundary > 0 for boundary in wait_switched(broker, writer.topic))
                wait_for_more([writer], 30)
        finally:
            for writer in writers:
                writer.stop()
        for writer in writers:
            assert writer.failures == []
            found = read_all(broker.bootstrap, writer.topic, 3)
            verdict = judge([writer], found)
            assert verdict.is_clean, str(verdict)
            assert is_dense(found)


def is_done(admin: AdminClient, topic: str, value: str) -> bool:
    """Set diskless.enable. False if it is too late for that, or was changed at the same time."""
    try:
        alter(admin, topic, {"diskless.enable": value})
    except KafkaException as error:
        if "is diskless already" in str(error) or "Try again" in str(error):
            return False
        raise
    return True


def test_a_switch_that_has_its_boundary_cannot_be_aborted(long_queue: Queue) -> None:
    with pytest.raises(KafkaException, match=r"diskless\.enable of switched cannot become false"):
        abort(long_queue.admin, "switched")
    assert boundaries(long_queue.broker, "switched") == [10]
    assert described_state(long_queue.admin, "switched") == HYBRID


def test_an_aborted_switch_may_be_asked_for_again_and_goes_to_the_end_of_the_queue(
    long_queue: Queue, unique_name: Callable[[], str]
) -> None:
    first, second = long_queue.pending(unique_name()), long_queue.pending(unique_name())

    def place(topic: str) -> int:
        return int(status(long_queue.broker, topic)["queue_position"])

    assert place(first) < place(second)
    abort(long_queue.admin, first)
    switch(long_queue.admin, first)
    assert place(first) > place(second)
    for topic in (first, second):
        abort(long_queue.admin, topic)


# Topics that change while they wait


def test_partitions_that_are_added_during_a_switch_are_born_diskless(queue: Queue) -> None:
    broker, admin = queue.broker, queue.admin
    topic = queue.pending("growing", partitions=2)
    admin.create_partitions([kafka_admin.NewPartitions(topic, 4)])[topic].result(SECONDS)
    wait_until(lambda: boundaries(broker, topic) == [-1, -1, 0, 0], "the new partitions to be diskless")
    assert produce(broker, topic, numbered(100, 5), partition=3) == list(range(5))
    assert produce(broker, topic, numbered(30, 5)) == list(range(30, 35))
    queue.go_on()
    wait_until(lambda: boundaries(broker, topic) == [35, 0, 0, 0], "the old ones to have their boundaries")
    assert produce(broker, topic, numbered(35, 5)) == list(range(35, 40))
    assert produce(broker, topic, numbered(105, 5), partition=3) == list(range(5, 10))
    assert values(read(broker, topic, 40)) == list(range(40))
    assert values(read(broker, topic, 10, partition=3)) == list(range(100, 110))


def test_a_topic_that_is_deleted_while_it_waits_leaves_its_place(queue: Queue) -> None:
    broker, admin = queue.broker, queue.admin
    gone, after = queue.pending("gone"), queue.pending("after")
    admin.delete_topics([gone])[gone].result(SECONDS)
    queue.go_on()
    assert wait_switched(broker, after) == [30]
    create(admin, gone)
    assert produce(broker, gone, numbered(0, 3)) == [0, 1, 2]
    assert described_state(admin, gone) == "TIERED_ONLY"


def test_topics_are_switched_in_the_order_of_the_requests(queue: Queue) -> None:
    names = [queue.pending(f"topic-{number}", records=1) for number in (3, 1, 2)]
    queue.go_on()
    for name in names:
        assert wait_switched(queue.broker, name) == [1]
    with closing(sqlite3.connect(queue.broker.data_dir / "metadata.db")) as database:
        switched = [name for (name,) in database.execute("SELECT topic_name FROM inkless_log ORDER BY log_id")]
    assert [name for name in switched if name in names] == names


# Restarts


def test_a_restart_while_the_switch_is_pending(queue: Queue) -> None:
    broker, topic = queue.broker, queue.pending("waiting")
    broker.restart()
    wait_until(lambda: is_waiting(broker, topic), "the switch to wait again")
    assert produce(broker, topic, numbered(30, 10)) == list(range(30, 40))
    assert boundaries(broker, topic) == [-1]
    queue.go_on()
    assert wait_switched(broker, topic) == [40]
    assert produce(broker, topic, numbered(40, 10)) == list(range(40, 50))
    assert values(read(broker, topic, 50)) == list(range(50))


def test_a_restart_after_an_abort(queue: Queue) -> None:
    broker, topic = queue.broker, queue.pending("aborted")
    abort(queue.admin, topic)
    broker.restart()
    assert produce(broker, topic, numbered(30, 10)) == list(range(30, 40))
    queue.go_on()
    assert described_state(queue.admin, topic) == "TIERED_ONLY"
    assert values(read(broker, topic, 40)) == list(range(40))


def test_restarts_in_every_state_after_the_boundary(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", {**QUICK, "remote.log.manager.task.interval.ms": "3600000"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic = create(admin, "t", {**TIERED, "retention.ms": "-1"})
        produce(broker, topic, numbered(0, 50, start_ms=1_000_000))
        switch(admin, topic)
        assert wait_switched(broker, topic) == [50]
        produce(broker, topic, numbered(50, 5))

        broker.restart()  # before everything is copied, or just after: a broker copies once when it starts
        assert described_state(admin, topic) in (MIGRATING, HYBRID)
        assert produce(broker, topic, numbered(55, 5)) == list(range(55, 60))
        assert values(read(broker, topic, 60)) == list(range(60))

        broker.stop()
        broker.settings = QUICK  # copying goes on where it was
        broker.start()
        wait_state(broker, topic, HYBRID)
        assert remote_logs(broker, topic)
        broker.restart()
        assert described_state(admin, topic) == HYBRID
        assert produce(broker, topic, numbered(60, 5)) == list(range(60, 65))
        assert values(read(broker, topic, 65)) == list(range(65))
        assert boundaries(broker, topic) == [50]

        broker.settings = {**QUICK, "inkless.retention.enforcement.interval.ms": "50"}
        broker.restart()
        alter(admin, topic, {"retention.ms": "3600000"})
        wait_state(broker, topic, DISKLESS_ONLY)
        broker.restart()
        assert described_state(admin, topic) == DISKLESS_ONLY
        assert earliest(admin, topic) == 50
        assert produce(broker, topic, numbered(65, 5)) == list(range(65, 70))
        assert values(read(broker, topic, 20, offset=50)) == list(range(50, 70))
