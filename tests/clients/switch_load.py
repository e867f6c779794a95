"""Producers and members of consumer groups of three client libraries, and the verdict on what they did and saw."""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiokafka
import kafka
from confluent_kafka import Consumer, KafkaError, KafkaException

from strandline.clock import SystemClock
from tests.crash.writers import SECONDS, Place, Writer

_ACKNOWLEDGED_MS = 40_000
_CLIENT_ERRORS = (KafkaException, kafka.errors.KafkaError, aiokafka.errors.KafkaError, OSError, ValueError)


@dataclass(slots=True)
class KafkaPythonWriter(Writer):
    """A `Writer` of kafka-python."""

    def _run(self) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap.split(","),
            enable_idempotence=True,
            linger_ms=5,
            retry_backoff_ms=20,
            delivery_timeout_ms=_ACKNOWLEDGED_MS,
            request_timeout_ms=_ACKNOWLEDGED_MS // 2,
        )
        with closing(producer):
            number = 0
            while not self._stopping.is_set():
                value = f"{self.name} {number} ".ljust(self.record_size, ".")
                future = producer.send(self.topic, value.encode(), partition=number % self.partitions)
                future.add_callback(self._placed, value)
                future.add_errback(self._refused, value)
                number += 1
                self._stopping.wait(self.pause)
            producer.flush(SECONDS)
        answered = len(self.acknowledged) + len(self.failures)
        if answered != number:
            self.failures.append(f"{number - answered} records were neither acknowledged nor refused")

    def _placed(self, value: str, answer: Any) -> None:
        self.acknowledged[value] = Place(answer.partition, answer.offset)

    def _refused(self, value: str, error: object) -> None:
        self.failures.append(f"{value!r}: {error!r}")


@dataclass(slots=True)
class AioKafkaWriter(Writer):
    """A `Writer` of aiokafka."""

    def _run(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=True,
            linger_ms=5,
            retry_backoff_ms=20,
            request_timeout_ms=_ACKNOWLEDGED_MS,
        )
        clock = SystemClock()
        async with producer, asyncio.TaskGroup() as tasks:
            number = 0
            while not self._stopping.is_set():
                value = f"{self.name} {number} ".ljust(self.record_size, ".")
                future = await producer.send(self.topic, value.encode(), partition=number % self.partitions)
                tasks.create_task(self._collect(value, future))
                number += 1
                await clock.sleep(self.pause)

    async def _collect(self, value: str, future: Any) -> None:
        try:
            answer = await future
        except aiokafka.errors.KafkaError as error:
            self.failures.append(f"{value!r}: {error!r}")
        else:
            self.acknowledged[value] = Place(answer.partition, answer.offset)


@dataclass(slots=True)
class Member(ABC):
    """A member of a consumer group in a thread of its own. It commits by itself, also when it loses partitions."""

    bootstrap: str
    topic: str
    group: str
    isolation: str = "read_uncommitted"
    received: list[tuple[Place, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> Member:
        self._thread = threading.Thread(target=self._guarded, name=self.group)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Commit, leave the group and end."""
        self._stopping.set()
        assert self._thread is not None
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), f"a member of {self.group} does not end"

    def _guarded(self) -> None:
        try:
            self._run()
        except _CLIENT_ERRORS as error:  # what a client lets through is an error that it does not retry
            self.errors.append(repr(error))

    @abstractmethod
    def _run(self) -> None:
        """Join, and receive until `_stopping`."""


@dataclass(slots=True)
class ConfluentMember(Member):
    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "isolation.level": self.isolation,
                "check.crcs": True,
                "error_cb": self._told,
                "log_level": 2,
                "reconnect.backoff.max.ms": 100,
            }
        )
        with closing(consumer):
            consumer.subscribe([self.topic])
            while not self._stopping.is_set():
                message = consumer.poll(0.05)
                if message is None:
                    continue
                error, partition, offset = message.error(), message.partition(), message.offset()
                if error is not None or partition is None or offset is None:
                    self.errors.append(str(error))
                else:
                    self.received.append((Place(partition, offset), (message.value() or b"").decode()))

    def _told(self, error: KafkaError) -> None:
        if error.fatal() or not error.retriable():
            self.errors.append(str(error))


@dataclass(slots=True)
class KafkaPythonMember(Member):
    def _run(self) -> None:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap.split(","),
            group_id=self.group,
            auto_offset_reset="earliest",
            isolation_level=self.isolation,
            check_crcs=True,
        )
        with closing(consumer):
            consumer.partitions_for_topic(self.topic)  # whoever joins before he knows them may be given none
            consumer.subscribe([self.topic])
            while not self._stopping.is_set():
                # A poll that ends while the group rebalances may leave the client in that state for ever.
                patience_ms = 200 if consumer.assignment() else 10_000
                for records in consumer.poll(timeout_ms=patience_ms).values():
                    self.received += [(Place(one.partition, one.offset), one.value.decode()) for one in records]


@dataclass(slots=True)
class AioKafkaMember(Member):
    def _run(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            auto_offset_reset="earliest",
            isolation_level=self.isolation,
            check_crcs=True,
        )
        async with consumer:
            while not self._stopping.is_set():
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    self.received += [(Place(one.partition, one.offset), one.value.decode()) for one in records]


WRITERS: tuple[type[Writer], ...] = (Writer, KafkaPythonWriter, AioKafkaWriter)
MEMBERS: tuple[type[Member], ...] = (ConfluentMember, KafkaPythonMember, AioKafkaMember)


def unread(groups: Mapping[str, Sequence[Member]], writers: Sequence[Writer]) -> dict[str, list[Place]]:
    """What groups have not read of that which was acknowledged; the first places of each."""
    written = {place for writer in writers for place in writer.acknowledged.values()}
    missing = {
        group: written.difference(place for member in members for place, _ in member.received)
        for group, members in groups.items()
    }
    return {group: sorted(places)[:5] for group, places in missing.items() if places}


def faults_of(members: Sequence[Member], found: dict[Place, str]) -> list[str]:
    """What is wrong with that which a group has read; `found` is everything that is in the topic."""
    faults = [f"error: {error}" for member in members for error in member.errors]
    times = Counter(place for member in members for place, _ in member.received)
    faults += [f"read {count} times: {place}" for place, count in times.items() if count > 1]
    faults += [f"not read: {place}" for place in found if place not in times]
    for member in members:
        last: dict[int, int] = defaultdict(lambda: -1)
        for place, value in member.received:
            if found.get(place) != value:
                faults.append(f"another value at {place}: {value!r}")
            if place.offset <= last[place.partition]:
                faults.append(f"out of order: {place}")
            last[place.partition] = place.offset
    return faults


def is_dense(found: dict[Place, str]) -> bool:
    """Whether the offsets of each partition leave no gap and begin at 0."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for place in sorted(found):
        offsets[place.partition].append(place.offset)
    return all(given == list(range(len(given))) for given in offsets.values())


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(f"{record.name}: {record.getMessage()}")


@contextmanager
def logged_errors() -> Iterator[list[str]]:
    """What the libraries in Python log as errors inside the block."""
    handler = _Errors()
    loggers = [logging.getLogger(name) for name in ("kafka", "aiokafka")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield handler.messages
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
