"""Idempotent producers that write through crashes, and the verdict on what a consumer finds afterwards."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.waiting import wait_until

SECONDS = 60.0


class Place(NamedTuple):
    """Where the broker said that it put a record."""

    partition: int
    offset: int


@dataclass(slots=True)
class Writer:
    """One producer in a thread of its own. Values are `<name> <number>`, each partition gets every n-th of them."""

    bootstrap: str
    topic: str
    name: str
    partitions: int
    record_size: int = 100
    keys: int = 0  # how many different keys; without any, records have none
    pause: float = 0.0  # seconds after each record
    acknowledged: dict[str, Place] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self.name)
        self._thread.start()

    def stop(self) -> None:
        """Write nothing new, and wait until everything written is acknowledged or has failed."""
        self._stopping.set()
        assert self._thread is not None
        self._thread.join(SECONDS + 10)
        assert not self._thread.is_alive(), f"{self.name} does not end"

    def _run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 50,
                "queue.buffering.max.messages": 2000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 2,
            }
        )
        number = 0
        while not self._stopping.is_set():
            value = f"{self.name} {number} ".ljust(self.record_size, ".")
            try:
                producer.produce(
                    self.topic,
                    value,
                    self.key_of(value) if self.keys else None,
                    partition=number % self.partitions,
                    on_delivery=self._delivered,
                )
                number += 1
            except BufferError:
                producer.poll(0.05)
            producer.poll(0)
            if self.pause:
                self._stopping.wait(self.pause)
        left = producer.flush(SECONDS)
        if left:
            self.failures.append(f"{left} records were neither acknowledged nor refused")

    def key_of(self, value: str) -> str:
        name, number, *_ = value.split()
        return f"{name} {int(number) % self.keys}"

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value, partition, offset = message.value(), message.partition(), message.offset()
        if error is not None:
            self.failures.append(f"{value!r}: {error.str()}")
        elif value is not None and partition is not None and offset is not None:
            self.acknowledged[value.decode()] = Place(partition, offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What went wrong. All four must be empty."""

    lost: Sequence[str]
    misplaced: Sequence[str]
    doubled: Sequence[str]
    reordered: Sequence[str]

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.misplaced or self.doubled or self.reordered)

    def __str__(self) -> str:
        counts = f"{len(self.lost)} lost, {len(self.misplaced)} at another offset than acknowledged"
        counts += f", {len(self.doubled)} doubled, {len(self.reordered)} reordered"
        examples = [*self.lost[:3], *self.misplaced[:3], *self.doubled[:3], *self.reordered[:3]]
        return f"{counts}; for example {examples}"


def read_all(bootstrap: str, topic: str, partitions: int) -> dict[Place, str]:
    """Every record of the topic, by its place."""
    found: dict[Place, str] = {}
    settings = {"bootstrap.servers": bootstrap, "group.id": "verifier", "enable.auto.commit": False}
    settings["auto.offset.reset"] = "error"  # rather than go on at the end
    with closing(Consumer({**settings, "check.crcs": True, "enable.partition.eof": True, "log_level": 2})) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        at_end: set[int | None] = set()
        while len(at_end) < partitions:
            message = consumer.poll(SECONDS)
            assert message is not None, f"the broker stopped answering after {len(found)} records"
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                at_end.add(partition)
                continue
            if error is not None or partition is None or offset is None:
                raise KafkaException(error)
            found[Place(partition, offset)] = (message.value() or b"").decode()
    return found


def judge(writers: Sequence[Writer], found: dict[Place, str]) -> Verdict:
    """Compare what was acknowledged with what is there."""
    present = set(found.values())
    acknowledged = {value: place for writer in writers for value, place in writer.acknowledged.items()}
    lost = [value for value in acknowledged if value not in present]
    # Offset -1 or similar is never acknowledged: the place in the acknowledgement must be the real one.
    misplaced = [value for value, place in acknowledged.items() if value in present and found.get(place) != value]
    doubled = [value for value, count in Counter(found.values()).items() if count > 1]
    return Verdict(lost=lost, misplaced=misplaced, doubled=doubled, reordered=_reordered(found))


def _reordered(found: dict[Place, str]) -> list[str]:
    """Records that stand behind a later one of the same producer in the same partition."""
    latest: dict[tuple[int, str], int] = {}
    reordered: list[str] = []
    for place in sorted(found):
        name, number, *_ = found[place].split()
        if int(number) < latest.get((place.partition, name), -1):
            reordered.append(found[place])
        latest[place.partition, name] = max(int(number), latest.get((place.partition, name), -1))
    return reordered


def wait_for_more(writers: Sequence[Writer], count: int, *, alive: Callable[[], bool] = lambda: True) -> None:
    """Return when `count` more records have been acknowledged, or the broker is no longer alive."""
    start = sum(len(writer.acknowledged) for writer in writers)

    def progressed() -> bool:
        return not alive() or sum(len(writer.acknowledged) for writer in writers) >= start + count

    wait_until(progressed, within=SECONDS, what=f"{count} more acknowledged records")
