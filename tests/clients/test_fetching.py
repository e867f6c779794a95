"""Reading: where to start, how long to wait, how partitions share a response, what transactions hide."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import confluent_kafka.admin
import kafka
import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.broker import Broker
from tests.clients.conftest import TopicMaker, has_leaders
from tests.clients.drivers import DRIVERS, AioKafkaDriver, ConfluentDriver, KafkaPythonDriver, Sent
from tests.moments import T0
from tests.waiting import wait_until

SECONDS = 30.0
OffsetSpec: Any = confluent_kafka.admin.OffsetSpec  # type: ignore[attr-defined]


def confluent_consumer(broker: Broker, **settings: object) -> Consumer:
    defaults = {"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False}
    return Consumer({**defaults, **{name.replace("_", "."): value for name, value in settings.items()}})


def test_offsets_by_time(broker: Broker, new_topic: TopicMaker) -> None:
    """The first record at or after the time, though create times are out of order."""
    topic = new_topic()
    for start in (0, 10, 20):  # three batches
        times = [T0 + 1000 * (start + step) for step in (2, 1, 5, 3)]
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"x", timestamp=time) for time in times])

    expected = {T0: 0, T0 + 1000: 0, T0 + 2000: 0, T0 + 3000: 2, T0 + 5000: 2, T0 + 5001: 4, T0 + 25_000: 10}
    with closing(confluent_consumer(broker)) as consumer:
        for time, offset in expected.items():
            [answer] = consumer.offsets_for_times([TopicPartition(topic, 0, time)], timeout=SECONDS)
            assert answer.offset == offset, f"for {time}"
        [answer] = consumer.offsets_for_times([TopicPartition(topic, 0, T0 + 25_001)], timeout=SECONDS)
        assert answer.offset == OFFSET_END

    with closing(kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap)) as other:
        partition = kafka.TopicPartition(topic, 0)
        found = other.offsets_for_times({partition: T0 + 12_500})[partition]
        assert (found.offset, found.timestamp) == (6, T0 + 15_000)
        assert other.offsets_for_times({partition: T0 + 99_000})[partition] is None
        assert other.beginning_offsets([partition]) == {partition: 0}
        assert other.end_offsets([partition]) == {partition: 12}


def test_list_offsets_of_every_kind(broker: Broker, admin: AdminClient, new_topic: TopicMaker) -> None:
    topic = new_topic()
    records = [Sent(b"x", timestamp=T0 + shift) for shift in (0, 9000, 3000)]
    ConfluentDriver().produce(broker.bootstrap, topic, records)
    partition = TopicPartition(topic, 0)

    def ask(spec: Any) -> tuple[int, int]:
        answer = admin.list_offsets({partition: spec}, request_timeout=SECONDS)[partition].result(SECONDS)
        return answer.offset, answer.timestamp

    assert ask(OffsetSpec.earliest()) == (0, -1)
    assert ask(OffsetSpec.latest()) == (3, -1)
    assert ask(OffsetSpec.max_timestamp()) == (1, T0 + 9000)
    assert ask(OffsetSpec.for_timestamp(T0 + 1)) == (1, T0 + 9000)
    assert ask(OffsetSpec.for_timestamp(T0 + 9001)) == (-1, -1)


def test_seek_back_and_forth(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic()
    ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"%d" % number) for number in range(100)])

    with closing(kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, consumer_timeout_ms=20_000)) as consumer:
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        for target in (90, 3, 50, 49):
            consumer.seek(partition, target)
            assert next(consumer).value == b"%d" % target
        consumer.seek_to_beginning(partition)
        assert next(consumer).offset == 0
        consumer.seek_to_end(partition)
        assert consumer.position(partition) == 100


@pytest.mark.parametrize(("reset", "offset"), [("earliest", 0), ("latest", OFFSET_END)])
def test_an_offset_out_of_range_is_reset(broker: Broker, new_topic: TopicMaker, reset: str, offset: int) -> None:
    topic = new_topic()
    ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"first")])
    with closing(confluent_consumer(broker, auto_offset_reset=reset)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 1000)])
        if reset == "earliest":
            message = consumer.poll(SECONDS)
            assert message is not None
            assert message.value() == b"first"
            return
        assert consumer.poll(0.5) is None
        wait_until(lambda: consumer.poll(0.1) is None and consumer.position([TopicPartition(topic, 0)]), what="a reset")
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"second")])
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.value() == b"second"


def test_an_offset_out_of_range_is_an_error_without_reset(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic()
    with closing(confluent_consumer(broker, auto_offset_reset="error")) as consumer:
        consumer.assign([TopicPartition(topic, 0, 1000)])
        message = consumer.poll(SECONDS)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError._AUTO_OFFSET_RESET


def test_a_waiting_fetch_is_woken_by_a_write(broker: Broker, new_topic: TopicMaker) -> None:
    """Long poll: the consumer asks once, with a wait far longer than this test may take, and is answered at once."""
    topic = new_topic()
    waits = {"fetch.wait.max.ms": 60_000, "socket.timeout.ms": 100_000, "fetch.min.bytes": 1}
    with closing(Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", **waits})) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert consumer.poll(1.0) is None  # now the fetch waits in the broker
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"wake up")])
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.value() == b"wake up"


def test_a_fetch_waits_for_min_bytes(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap, fetch_min_bytes=50_000, fetch_max_wait_ms=25_000, request_timeout_ms=60_000
    )
    with closing(consumer):
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"x" * 1000)])
        assert consumer.poll(timeout_ms=1000) == {}
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"x" * 1000) for _ in range(60)])
        polled = consumer.poll(timeout_ms=20_000)
        assert len(polled[partition]) == 61


def test_partitions_share_a_response_fairly(broker: Broker, new_topic: TopicMaker) -> None:
    """In another system the first partitions of a request took the whole response."""
    topic = new_topic(partitions=4)
    with closing(kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=5)) as producer:
        sent = [producer.send(topic, b"x" * 1000, partition=partition) for partition in range(4) for _ in range(400)]
        for future in sent:
            future.get(SECONDS)

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        fetch_max_bytes=60_000,
        max_partition_fetch_bytes=50_000,
        max_poll_records=100,
        consumer_timeout_ms=20_000,
    )
    with closing(consumer):
        partitions = [kafka.TopicPartition(topic, partition) for partition in range(4)]
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        seen = Counter(next(consumer).partition for _ in range(800))
    assert set(seen) == {0, 1, 2, 3}
    assert min(seen.values()) >= 50, f"half of the records were read, so many of each partition: {seen}"


def test_incremental_fetch_sessions_over_many_partitions(broker: Broker, new_topic: TopicMaker) -> None:
    """kafka-python keeps a fetch session; partitions join it, leave it and move while records trickle in."""
    topic = new_topic(partitions=60)
    partitions = [kafka.TopicPartition(topic, number) for number in range(60)]
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap, enable_incremental_fetch_sessions=True, fetch_max_wait_ms=100
    )
    with closing(consumer), closing(kafka.KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
        seen: Counter[tuple[int, bytes]] = Counter()

        def write_and_read(round_number: int, assigned: list[kafka.TopicPartition]) -> None:
            value = b"round %d" % round_number
            for future in [producer.send(topic, value, partition=number) for number in range(60)]:
                future.get(SECONDS)
            wanted = {(one.partition, value) for one in assigned}

            def read() -> bool:
                for partition, records in consumer.poll(timeout_ms=200).items():
                    seen.update((partition.partition, record.value) for record in records)
                return wanted <= set(seen)

            wait_until(read, within=SECONDS, what=f"records of round {round_number}")

        for number, assigned in enumerate((partitions, partitions[:20], partitions[10:50], partitions)):
            consumer.assign(assigned)
            for one in assigned:
                consumer.seek(one, number)
            write_and_read(number, assigned)
            write_and_read(number + 100, assigned)
    rounds = Counter(value for _, value in seen)
    assert rounds[b"round 0"] == 60


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_both_isolation_levels_read_plain_records(broker: Broker, new_topic: TopicMaker, isolation: str) -> None:
    topic = new_topic()
    for writer in DRIVERS:
        writer.produce(broker.bootstrap, topic, [Sent(b"%d" % number) for number in range(20)])
    for reader in DRIVERS:
        received = reader.consume(broker.bootstrap, topic, 60, isolation=isolation)
        assert [record.offset for record in received] == list(range(60)), f"read by {reader.name}"


@pytest.mark.parametrize("writer", [ConfluentDriver(), KafkaPythonDriver(), AioKafkaDriver()], ids=lambda d: d.name)
def test_writing_creates_the_topic(
    broker: Broker, admin: AdminClient, unique_name: Callable[[], str], writer: ConfluentDriver
) -> None:
    topic = unique_name()
    assert writer.produce(broker.bootstrap, topic, [Sent(b"first")]) == [0]
    assert has_leaders(admin, topic, 1)


def test_reading_does_not_create_a_topic_unless_asked(
    broker: Broker, admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    topic = unique_name()
    with closing(confluent_consumer(broker)) as consumer:
        consumer.subscribe([topic])
        message = consumer.poll(SECONDS)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert topic not in admin.list_topics(timeout=SECONDS).topics


def test_a_reader_keeps_up_with_a_writer(broker: Broker, new_topic: TopicMaker) -> None:
    """Reads at the end of the log while it grows: nothing missing, nothing twice, in order."""
    topic = new_topic(partitions=2)
    total = 20_000

    def write() -> None:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 1})
        for number in range(total):
            while True:
                try:
                    producer.produce(topic, b"%d" % number, partition=number % 2)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        assert producer.flush(SECONDS) == 0

    writer = threading.Thread(target=write)
    writer.start()
    with closing(confluent_consumer(broker)) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(2)])
        values: dict[int, list[int]] = {0: [], 1: []}
        for _ in range(total):
            message = consumer.poll(SECONDS)
            assert message is not None
            if (error := message.error()) is not None:
                raise KafkaException(error)
            values[message.partition() or 0].append(int(message.value() or b""))
    writer.join()
    assert values == {0: list(range(0, total, 2)), 1: list(range(1, total, 2))}


def test_a_deleted_topic_is_unknown_to_a_reader(broker: Broker, admin: AdminClient, new_topic: TopicMaker) -> None:
    topic = new_topic()
    ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"old life")])
    admin.delete_topics([topic])[topic].result(SECONDS)
    wait_until(lambda: topic not in admin.list_topics(timeout=SECONDS).topics, what="the topic to be gone")

    wait_until(lambda: _created(admin, topic), what="the topic to be created anew")
    wait_until(lambda: has_leaders(admin, topic, 1), what="leaders")
    assert ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"new life")]) == [0]
    assert [record.value for record in ConfluentDriver().consume(broker.bootstrap, topic, 1)] == [b"new life"]


def _created(admin: AdminClient, topic: str) -> bool:
    try:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(SECONDS)
    except KafkaException as failure:
        if failure.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True
