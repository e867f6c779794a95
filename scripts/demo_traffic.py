"""A producer and a consumer that run in the background of the demo, and the account of what they wrote and read."""

from __future__ import annotations

import threading
from collections import Counter
from types import TracebackType

from confluent_kafka import Consumer, KafkaError, Message, Producer
from demo_clients import STATIONS
from demo_stage import Broker, DemoFailed, wait_for

RECORDS_AT_ONCE, PAUSE_SECONDS = 15, 0.01


class Traffic:
    """A block in which an idempotent producer writes to a topic and a consumer reads it, from offset 0 on.

    Records are numbered: every number that was acknowledged has to be read once, and nothing else.
    """

    def __init__(self, broker: Broker, topic: str, partitions: int, *, group: str) -> None:
        self._topic, self._partitions = topic, partitions
        where = {"bootstrap.servers": broker.bootstrap}
        self._producer = Producer({**where, "enable.idempotence": True, "linger.ms": 5})
        reading = {"group.id": group, "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
        self._consumer = Consumer({**where, **reading})
        self._acknowledged: set[int] = set()
        self._read: Counter[int] = Counter()
        self._ends: dict[int, int] = {}
        self._problems: list[str] = []
        self._is_written, self._is_left = threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._produce, self._consume)]
        self._sent = 0

    @property
    def acknowledged(self) -> int:
        """How many records were acknowledged so far."""
        return len(self._acknowledged)

    @property
    def read(self) -> int:
        """How many records were read so far, those that came twice counted twice."""
        return self._read.total()

    @property
    def lost(self) -> int:
        """How many records were acknowledged, and not read."""
        return len(self._acknowledged - self._read.keys())

    @property
    def duplicated(self) -> int:
        """How many records were read that had been read before."""
        return self._read.total() - len(self._read)

    def fill(self, records: int, size: int) -> None:
        """Write this many records of a size, and see them acknowledged: the history of the topic."""
        for _ in range(records):
            self._send(b"." * size)
            self._producer.poll(0)
        if self._producer.flush(30):
            raise DemoFailed("not every record of the history was acknowledged")
        self.check()

    def check(self) -> None:
        """Raises DemoFailed if one of the two clients has met an error, or an offset was left out."""
        if self._problems:
            raise DemoFailed(self._problems[0])

    def stop(self) -> None:
        """End the producer, and let the consumer read everything that was acknowledged."""
        self._is_written.set()
        self._threads[0].join()
        wait_for(
            lambda: bool(self._problems) or self.lost == 0, "the consumer to read everything that was acknowledged"
        )
        self.check()

    def __enter__(self) -> Traffic:
        self._consumer.subscribe([self._topic])
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_written.set()
        self._is_left.set()
        for thread in self._threads:
            thread.join()
        self._consumer.close()

    def _produce(self) -> None:
        while not self._is_written.wait(PAUSE_SECONDS):
            for _ in range(RECORDS_AT_ONCE):
                self._send()
            self._producer.poll(0)
        if self._producer.flush(30):
            self._problems.append("not every record was acknowledged")

    def _send(self, trace: bytes = b"") -> None:
        number, self._sent = self._sent, self._sent + 1
        self._producer.produce(
            self._topic,
            key=STATIONS[number % len(STATIONS)],
            value=b"%d %s" % (number, trace),
            partition=number % self._partitions,
            on_delivery=self._delivered,
        )

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._acknowledged.add(_number(message))
        else:
            self._problems.append(f"a record was not acknowledged: {error}")

    def _consume(self) -> None:
        while not self._is_left.is_set():
            for message in self._consumer.consume(500, timeout=0.1):
                partition, offset = message.partition() or 0, message.offset() or 0
                expected = self._ends.setdefault(partition, 0)
                if (error := message.error()) is not None:
                    self._problems.append(f"the consumer got an error: {error}")
                elif offset != expected:
                    self._problems.append(f"offset {offset} of partition {partition} came instead of {expected}")
                else:
                    self._ends[partition] = offset + 1
                    self._read[_number(message)] += 1


def _number(message: Message) -> int:
    return int((message.value() or b"-1").split(b" ")[0])
