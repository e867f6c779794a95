"""Diskless topics as real clients see them, where they differ from classic ones or live beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.broker import BrokerProcess, running_broker
from tests.clients.drivers import DRIVERS, ConfluentDriver, Driver, Sent
from tests.files import files_below
from tests.waiting import wait_until

SECONDS = 30.0
kafka_admin: Any = confluent_kafka.admin  # its stubs leave most of it out
QUICK_CLEANING = {
    "inkless.file.cleaner.interval.ms": "50",
    "inkless.file.cleaner.retention.period.ms": "0",
    "inkless.retention.enforcement.interval.ms": "50",
    "log.retention.check.interval.ms": "50",
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("diskless") / "data", QUICK_CLEANING) as broker:
        yield broker


@pytest.fixture
def own_admin(own: BrokerProcess) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": own.bootstrap}) as opened:  # closed before the broker ends
        yield opened


def create(admin: AdminClient, name: str, partitions: int = 1, factor: int = 1, **configs: str) -> str:
    config = {key.replace("_", "."): value for key, value in configs.items()}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=factor, config=config)
    admin.create_topics([topic])[name].result(SECONDS)
    return name


def refusal(call: Callable[[], Any]) -> KafkaError:
    with pytest.raises(KafkaException) as caught:
        call()
    error = caught.value.args[0]
    assert isinstance(error, KafkaError)
    return error


def wal_objects(broker: BrokerProcess) -> list[Path]:
    return files_below(broker.data_dir / "objects" / "wal")


def read_all(broker: BrokerProcess, count: int, *topics: str) -> dict[str, list[bytes]]:
    """The first `count` records of the topics, by topic."""
    found: dict[str, list[bytes]] = {topic: [] for topic in topics}
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "-".join(topics), "auto.offset.reset": "earliest"}
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(list(topics))

        def is_complete() -> bool:
            for message in consumer.consume(1000, timeout=0.2):
                assert message.error() is None, message.error()
                found[str(message.topic())].append(message.value() or b"")
            return sum(map(len, found.values())) >= count

        wait_until(is_complete, what=f"{count} records of {topics}")
    return found


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: type(driver).__name__)
def test_every_client_writes_and_reads(
    own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str], driver: Driver
) -> None:
    topic = create(own_admin, unique_name(), diskless_enable="true")
    sent = [Sent(b"value %d" % number, key=b"key") for number in range(100)]
    driver.produce(own.bootstrap, topic, sent)
    assert read_all(own, 100, topic) == {topic: [record.value for record in sent]}
    assert not list((own.data_dir / "logs").glob(f"{topic}-*")), "no broker's disk keeps a diskless topic"


def test_one_producer_and_one_group_on_topics_of_both_kinds(
    own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    classic = create(own_admin, unique_name(), partitions=3)
    diskless = create(own_admin, unique_name(), partitions=3, diskless_enable="true")
    failures: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": own.bootstrap, "enable.idempotence": True, "linger.ms": 20})
    for number in range(600):
        producer.produce(
            (classic, diskless)[number % 2],
            b"%d" % number,
            partition=number % 3,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(SECONDS) == 0
    assert not failures
    found = read_all(own, 600, classic, diskless)
    assert sorted(map(int, found[classic])) == list(range(0, 600, 2))
    assert sorted(map(int, found[diskless])) == list(range(1, 600, 2))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acks(
    own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str], acks: str
) -> None:
    topic = create(own_admin, unique_name(), diskless_enable="true")
    producer = Producer({"bootstrap.servers": own.bootstrap, "acks": acks, "enable.idempotence": False})
    for number in range(50):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(SECONDS) == 0
    assert read_all(own, 50, topic) == {topic: [b"%d" % number for number in range(50)]}


def test_records_survive_a_restart_and_are_read_from_the_object_store(
    tmp_path: Path, unique_name: Callable[[], str]
) -> None:
    with running_broker(tmp_path / "data") as broker:
        topic = create(AdminClient({"bootstrap.servers": broker.bootstrap}), unique_name(), diskless_enable="true")
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"before %d" % n) for n in range(500)])
        assert broker.stop() == 0
        broker.start()
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"after")])
        assert read_all(broker, 501, topic) == {topic: [*(b"before %d" % n for n in range(500)), b"after"]}


def test_a_killed_broker_keeps_what_it_acknowledged(tmp_path: Path, unique_name: Callable[[], str]) -> None:
    with running_broker(tmp_path / "data") as broker:
        topic = create(AdminClient({"bootstrap.servers": broker.bootstrap}), unique_name(), diskless_enable="true")
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"%d" % n) for n in range(100)])
        broker.kill()
        broker.start()
        assert read_all(broker, 100, topic) == {topic: [b"%d" % n for n in range(100)]}


def test_the_times_of_log_append_time_are_those_of_the_commit(
    own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    topic = create(own_admin, unique_name(), diskless_enable="true", message_timestamp_type="LogAppendTime")
    delivered: list[tuple[int, int]] = []
    producer = Producer({"bootstrap.servers": own.bootstrap})
    producer.produce(topic, b"x", timestamp=1000, on_delivery=lambda _, message: delivered.append(message.timestamp()))
    assert producer.flush(SECONDS) == 0
    with closing(Consumer({"bootstrap.servers": own.bootstrap, "group.id": "unused"})) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(SECONDS)
        assert message is not None
        kind, time = message.timestamp()
        assert kind == 2  # LogAppendTime
        assert time > 1_000_000
        assert [answer[1] for answer in delivered] == [time]


def test_a_deleted_topic_leaves_nothing_behind(tmp_path: Path, unique_name: Callable[[], str]) -> None:
    """The objects of the last diskless topic are deleted with it."""
    with running_broker(tmp_path / "data", QUICK_CLEANING) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic = create(admin, unique_name(), diskless_enable="true")
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"x" * 1000) for _ in range(100)])
        assert wal_objects(broker)
        admin.delete_topics([topic])[topic].result(SECONDS)
        wait_until(lambda: not wal_objects(broker), what="the objects of a deleted topic to go")
        again = create(admin, topic, diskless_enable="true")
        ConfluentDriver().produce(broker.bootstrap, again, [Sent(b"new")])
        assert read_all(broker, 1, again) == {again: [b"new"]}


def test_a_deletion_that_a_crash_cut_short_is_finished_after_the_restart(
    tmp_path: Path, unique_name: Callable[[], str]
) -> None:
    """The broker cleans up although no diskless topic is left."""
    with running_broker(tmp_path / "data", {"inkless.file.cleaner.interval.ms": "600000"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic = create(admin, unique_name(), diskless_enable="true")
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"x")])
        admin.delete_topics([topic])[topic].result(SECONDS)
        broker.kill()
        assert wal_objects(broker)
    with running_broker(tmp_path / "data", QUICK_CLEANING) as broker:
        wait_until(lambda: not wal_objects(broker), what="the objects of a deleted topic to go")


def test_retention_deletes_old_records_and_their_objects(
    own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    topic = create(own_admin, unique_name(), diskless_enable="true", retention_ms="1000")
    old = [Sent(b"old", timestamp=1_790_000_000_000) for _ in range(10)]
    ConfluentDriver().produce(own.bootstrap, topic, old)
    with closing(Consumer({"bootstrap.servers": own.bootstrap, "group.id": "unused"})) as consumer:
        partition = TopicPartition(topic, 0)
        wait_until(
            lambda: consumer.get_watermark_offsets(partition, timeout=SECONDS) == (10, 10),
            what="old records to go",
        )


def test_a_topic_stays_what_it_is(own: BrokerProcess, own_admin: AdminClient, unique_name: Callable[[], str]) -> None:
    diskless = create(own_admin, unique_name(), diskless_enable="true")
    for changes in ({"diskless.enable": "false"}, {"cleanup.policy": "compact"}):
        assert refusal(lambda: alter(own_admin, diskless, changes)).code() == KafkaError.INVALID_CONFIG  # noqa: B023
    alter(own_admin, diskless, {"retention.ms": "60000"})


def alter(admin: AdminClient, topic: str, changes: dict[str, str]) -> None:
    entries = [
        kafka_admin.ConfigEntry(name, value, incremental_operation=kafka_admin.AlterConfigOpType.SET)
        for name, value in changes.items()
    ]
    resource = kafka_admin.ConfigResource(kafka_admin.ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def test_what_a_diskless_topic_cannot_be(own_admin: AdminClient, unique_name: Callable[[], str]) -> None:
    compacted = refusal(lambda: create(own_admin, unique_name(), diskless_enable="true", cleanup_policy="compact"))
    assert compacted.code() == KafkaError.INVALID_CONFIG
    assert "cannot be compacted" in compacted.str()
    replicated = refusal(lambda: create(own_admin, unique_name(), factor=3, diskless_enable="true"))
    assert replicated.code() == KafkaError.INVALID_REPLICATION_FACTOR


def test_a_broker_stops_although_a_read_of_an_object_hangs(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            create(admin, "hanging", diskless_enable="true")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("hanging", b"a record")
        assert producer.flush(SECONDS) == 0
        assert broker.stop() == 0
        for path in wal_objects(broker):
            path.unlink()
            os.mkfifo(path)  # whoever opens it waits for a writer
        broker.start()
        with closing(Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "hanging"})) as consumer:
            consumer.assign([TopicPartition("hanging", 0, 0)])
            assert consumer.poll(2) is None
            assert broker.stop() == 0
        assert "the broker does not wait for them" in broker.log_text
