"""What the demo does with an unmodified Kafka client: make topics, produce, consume, and check what arrived."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from demo_stage import Broker, DemoFailed

STATIONS = ("brest", "cuxhaven", "dover", "esbjerg", "fort-de-france", "galway")


class Reading(NamedTuple):
    """A record of the demo."""

    station: str
    number: int


def create_topic(broker: Broker, topic: str, partitions: int, **settings: str) -> None:
    """Make a topic; the names of settings have underscores for dots."""
    config = {name.replace("_", "."): value for name, value in settings.items()}
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([new])[topic].result(timeout=15)


def delete_topic(broker: Broker, topic: str) -> None:
    """Delete a topic."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(timeout=15)


def produce(broker: Broker, topic: str, first: int, count: int, *, producers: int = 1, trace_bytes: int = 0) -> None:
    """Write records with the numbers from `first` on, keyed by their stations, and see them acknowledged.

    Several producers share the stations among them and write at the same time. A trace is what makes a record large,
    also where it is compressed.
    """
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    config = {
        "bootstrap.servers": broker.bootstrap,
        "enable.idempotence": True,
        "compression.type": "lz4",
        "linger.ms": 5 if producers == 1 else 50,
        "batch.size": 65_536 if trace_bytes else 1_000_000,
    }
    clients = [Producer(config) for _ in range(producers)]
    for client in clients:
        client.list_topics(topic, timeout=10)  # connects
    for number in range(first, first + count):
        station = number % len(STATIONS)
        client = clients[station % producers]
        client.produce(
            topic,
            key=STATIONS[station],
            value=f'{{"n": {number}, "cm": {300 + (number * 37) % 250}{_trace(trace_bytes)}}}',
            headers={"sensor": "a"},
            on_delivery=delivered,
        )
        client.poll(0)
    if any([client.flush(30) for client in clients]) or failures:
        raise DemoFailed(f"not every record was acknowledged: {failures[:1]}")


def consume(broker: Broker, topic: str, group: str, count: int) -> list[Reading]:
    """Read so many records as the only member of a group, and commit."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
        }
    )
    read: list[Reading] = []
    deadline = time.monotonic() + 40
    try:
        consumer.subscribe([topic])
        while len(read) < count:
            if time.monotonic() > deadline:
                raise DemoFailed(f"only {len(read)} of {count} records arrived")
            for message in consumer.consume(min(count - len(read), 500), timeout=1):
                if (error := message.error()) is not None:
                    raise DemoFailed(f"the consumer got an error: {error}")
                read.append(Reading(str(message.key() or b"", "utf-8"), _number(message.value())))
        consumer.commit(offsets=consumer.position(consumer.assignment()), asynchronous=False)
    finally:
        consumer.close()
    return read


def check_all_arrived(read: Sequence[Reading], count: int) -> None:
    """Every record has to arrive once, and each station's in the order they were sent."""
    if sorted(reading.number for reading in read) != list(range(count)):
        raise DemoFailed("records were lost or came twice")
    last: dict[str, int] = {}
    for station, number in read:
        if number <= last.get(station, -1):
            raise DemoFailed(f"record {number} of {station} arrived after {last[station]}")
        last[station] = number


def _trace(length: int) -> str:
    return f', "trace": "{os.urandom(length // 2).hex()}"' if length else ""


def _number(value: bytes | None) -> int:
    return int(str(value, "utf-8").split(",")[0].split(":")[1]) if value else -1
