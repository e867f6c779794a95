"""A writer with a real client, librdkafka with its default settings: what an application notices."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from bench.cluster.recording import Writer

_QUEUED: Final = 1_000_000  # an outage of a minute must not fill the queue of the client
_FLUSH_SECONDS: Final = 60.0
_VALUE: Final = bytes(100)


class ClientWriter(Writer):
    """One producer, acks=all, which sends at once. An error is one that it does not try to mend by itself."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, interval: float) -> None:
        super().__init__(partitions)
        self._bootstrap, self._topic, self._partitions, self._interval = bootstrap, topic, partitions, interval
        self._stop = threading.Event()

    def _ask_to_stop(self) -> None:
        self._stop.set()

    def _work(self) -> None:
        settings = {"acks": "all", "linger.ms": 0, "queue.buffering.max.messages": _QUEUED, "log_level": 0}
        producer = Producer({"bootstrap.servers": self._bootstrap, **settings})
        # By partition: a message that was refused does not always know its own.
        on_delivery: list[Callable[[KafkaError | None, Message], None]] = [
            partial(self._on_delivery, number) for number in range(self._partitions)
        ]
        next_at = time.monotonic()
        while not self._stop.is_set():
            for number in range(self._partitions):
                producer.produce(self._topic, _VALUE, partition=number, on_delivery=on_delivery[number])
            next_at = max(next_at + self._interval, time.monotonic())
            producer.poll(0)
            while (left := next_at - time.monotonic()) > 0:
                producer.poll(left)  # returns after the first events: acknowledgements are noted when they come
        left_over = producer.flush(_FLUSH_SECONDS)
        if left_over:
            raise TimeoutError(f"{left_over} records were neither acknowledged nor refused in {_FLUSH_SECONDS:g} s.")

    def _on_delivery(self, partition: int, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.recording.acknowledge(partition)
        else:
            self.recording.fail(error.name())
