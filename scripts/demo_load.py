"""A producer that writes to every partition of a topic all the time, and knows when each record was acknowledged."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from demo_stage import DemoFailed, wait_for

_PAUSE_SECONDS = 0.002
# A client that waits between its attempts would count as a pause of the broker.
_IMPATIENT = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,  # that a broker is away is what is shown
}


class Load:
    """A block in which numbered records are written, idempotent and with acks=all, each partition in its turn."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._bootstrap, self._topic, self._partitions = bootstrap, topic, partitions
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 0, **_IMPATIENT}
        )
        self._times: dict[int, list[float]] = defaultdict(list)
        self._numbers: dict[int, list[int]] = defaultdict(list)
        self._problem = ""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    @property
    def acknowledged(self) -> int:
        """How many records."""
        return sum(map(len, self._numbers.values()))

    def leader_of(self, partition: int) -> int:
        """The broker that leads it now."""
        partitions = self._producer.list_topics(self._topic, timeout=10).topics[self._topic].partitions
        return int(partitions[partition].leader)

    def wait_acknowledged(self, records: int, partitions: Sequence[int] | None = None) -> None:
        """Until so many more records are acknowledged, at least one in each of the partitions."""
        wanted = range(self._partitions) if partitions is None else partitions
        before = {number: len(self._times[number]) for number in wanted}

        def is_done() -> bool:
            if self._problem:
                raise DemoFailed(self._problem)
            more = [len(self._times[number]) - count for number, count in before.items()]
            return min(more) > 0 and sum(more) >= records * len(more) // self._partitions

        wait_for(is_done, "records to be acknowledged", within=60)

    def longest_pause(self, partition: int) -> float:
        """The longest time between two acknowledgements of a partition, in seconds."""
        times = [*self._times[partition]]
        return max((later - earlier for earlier, later in pairwise(times)), default=0.0)

    def check(self) -> None:
        """Read the topic from its beginning: every record has to be there once, and in order. Raises DemoFailed."""
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "unused", "enable.auto.commit": False, "log_level": 0}
        )
        read: dict[int, list[int]] = defaultdict(list)
        consumer.assign([TopicPartition(self._topic, number, 0) for number in range(self._partitions)])
        deadline = time.monotonic() + 30
        try:
            while sum(map(len, read.values())) < self.acknowledged and time.monotonic() < deadline:
                for message in consumer.consume(1000, timeout=0.5):
                    if message.error() is None:
                        read[message.partition() or 0].append(int(message.value() or b"-1"))
        finally:
            consumer.close()
        if read != self._numbers:
            wrong = [number for number in range(self._partitions) if read[number] != self._numbers[number]]
            raise DemoFailed(f"partitions {wrong} of {self._topic} are not what was acknowledged")

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _write(self) -> None:
        number = 0
        while not self._is_over.wait(_PAUSE_SECONDS):
            self._send(number)
            number += 1
        if self._producer.flush(30):
            self._problem = "not every record was acknowledged"

    def _send(self, number: int) -> None:
        partition = number % self._partitions
        self._producer.produce(self._topic, value=b"%d" % number, partition=partition, on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        partition = message.partition() or 0
        if error is not None:
            self._problem = f"a record of partition {partition} was not acknowledged: {error}"
            return
        self._times[partition].append(time.monotonic())
        self._numbers[partition].append(int(message.value() or b"-1"))
