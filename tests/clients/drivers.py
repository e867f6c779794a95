"""The same small tasks done by three client libraries: write these records, read those back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol

import aiokafka
import kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WAIT_SECONDS = 30.0

Headers = tuple[tuple[str, bytes | None], ...]


class Sent(NamedTuple):
    """A record as the application gave it to the client. Without a timestamp the client takes its own clock."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None


class Received(NamedTuple):
    """A record as the application got it from the client."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Driver(Protocol):
    """One client library. Every call makes a client, uses it and closes it."""

    name: str
    writes_null_headers: bool

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], *, partition: int = 0, codec: str = "none"
    ) -> list[int]:
        """Write the records with acks=all and an idempotent producer; the offsets that the broker gave them."""

    def consume(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        offset: int = 0,
        isolation: str = "read_uncommitted",
    ) -> list[Received]:
        """Read exactly `count` records from `offset` on. Fails if they do not arrive."""


class ConfluentDriver:
    name = "confluent-kafka"
    writes_null_headers = True

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], *, partition: int = 0, codec: str = "none"
    ) -> list[int]:
        offsets: list[int] = []
        errors: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is not None or offset is None:
                errors.append(error or KafkaError(KafkaError.UNKNOWN))
            else:
                offsets.append(offset)

        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "linger.ms": 50,
                "message.max.bytes": 20_000_000,
                "delivery.timeout.ms": 30_000,
            }
        )
        for record in records:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=partition,
                headers=list(record.headers),
                on_delivery=on_delivery,
                timestamp=record.timestamp or 0,  # 0: now
            )
        left = producer.flush(WAIT_SECONDS)
        if errors:
            raise KafkaException(errors[0])
        assert left == 0, f"{left} records were not acknowledged"
        return offsets

    def consume(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        offset: int = 0,
        isolation: str = "read_uncommitted",
    ) -> list[Received]:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "auto.offset.reset": "error",
                "check.crcs": True,
            }
        )
        with closing(consumer):
            consumer.assign([TopicPartition(topic, partition, offset)])
            received: list[Received] = []
            while len(received) < count:
                messages = consumer.consume(count - len(received), timeout=WAIT_SECONDS)
                assert messages, f"got {len(received)} of {count} records"
                received += [_from_confluent(message) for message in messages]
            return received


def _from_confluent(message: Message) -> Received:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    headers: Any = message.headers() or []
    return Received(partition, offset, message.timestamp()[1], message.key(), message.value(), tuple(headers))


class KafkaPythonDriver:
    name = "kafka-python"
    writes_null_headers = False

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], *, partition: int = 0, codec: str = "none"
    ) -> list[int]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
            max_request_size=20_000_000,
        )
        with closing(producer):
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            return [future.get(WAIT_SECONDS).offset for future in futures]

    def consume(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        offset: int = 0,
        isolation: str = "read_uncommitted",
    ) -> list[Received]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            isolation_level=isolation,
            auto_offset_reset="none",
            check_crcs=True,
        )
        with closing(consumer):
            assigned = kafka.TopicPartition(topic, partition)
            consumer.assign([assigned])
            consumer.seek(assigned, offset)
            received: list[Received] = []
            while len(received) < count:
                polled = consumer.poll(timeout_ms=WAIT_SECONDS * 1000, max_records=count - len(received))
                assert polled, f"got {len(received)} of {count} records"
                received += [_from_python_client(record) for records in polled.values() for record in records]
            return received


def _from_python_client(record: Any) -> Received:
    headers = tuple((key, value) for key, value in record.headers)
    return Received(record.partition, record.offset, record.timestamp, record.key, record.value, headers)


class AioKafkaDriver:
    name = "aiokafka"
    writes_null_headers = True

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], *, partition: int = 0, codec: str = "none"
    ) -> list[int]:
        return asyncio.run(self._produce(bootstrap, topic, records, partition, codec))

    async def _produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], partition: int, codec: str
    ) -> list[int]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
            max_request_size=20_000_000,
        )
        async with asyncio.timeout(WAIT_SECONDS), producer:
            futures = [
                await producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            return [(await future).offset for future in futures]

    def consume(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        offset: int = 0,
        isolation: str = "read_uncommitted",
    ) -> list[Received]:
        return asyncio.run(self._consume(bootstrap, topic, count, partition, offset, isolation))

    async def _consume(
        self, bootstrap: str, topic: str, count: int, partition: int, offset: int, isolation: str
    ) -> list[Received]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            isolation_level=isolation,
            auto_offset_reset="none",
            check_crcs=True,
        )
        async with asyncio.timeout(WAIT_SECONDS), consumer:
            assigned = aiokafka.TopicPartition(topic, partition)
            consumer.assign([assigned])
            consumer.seek(assigned, offset)
            return [_from_python_client(await consumer.getone()) for _ in range(count)]


DRIVERS: tuple[Driver, ...] = (ConfluentDriver(), KafkaPythonDriver(), AioKafkaDriver())


def driver_name(driver: Driver) -> str:
    """For test ids."""
    return driver.name
