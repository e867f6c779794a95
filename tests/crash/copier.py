"""Copies a topic exactly once, as a process of its own that may be killed: `python -m tests.crash.copier`.

Records and the offsets that they came from are written in one transaction. It goes on through everything a client may
go on after; when it may not, it ends, and whoever started it starts it again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

SECONDS = 30.0
AT_ONCE = 25
ENDED = 3

# While librdkafka 2.16 forgets its brokers to find them again, it may forget to send a TxnOffsetCommit for good.
KEEPS_BROKERS = {"metadata.recovery.strategy": "none"}


@dataclass(frozen=True, slots=True)
class Copy:
    """What is copied, partition by partition."""

    bootstrap: str
    source: str
    target: str
    partitions: int
    name: str = "copier"
    """The consumer group, and the transactional id."""

    def arguments(self) -> list[str]:
        return [self.bootstrap, self.source, self.target, str(self.partitions), self.name]


@dataclass(slots=True)
class CopierProcess:
    """The process; it is started again when it has ended by itself."""

    copy: Copy
    log: Path
    starts: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.crash.copier", *self.copy.arguments()]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)
        self.starts += 1

    def look_after(self) -> None:
        """Start it again if it has ended, which it does only where a client has to."""
        assert self.process is not None
        code = self.process.poll()
        if code is not None:
            assert code in (ENDED, -9), f"the copier ended with {code}: {self.log.read_text()[-4000:]}"
            self.start()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def main(copy: Copy) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": copy.bootstrap,
            "group.id": copy.name,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            **KEEPS_BROKERS,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": copy.bootstrap,
            "transactional.id": copy.name,
            "transaction.timeout.ms": 5000,
            "linger.ms": 1,
            "retry.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            **KEEPS_BROKERS,
        }
    )
    insist(lambda: producer.init_transactions(SECONDS))
    go_back(consumer, copy)
    while True:
        messages = [one for one in consumer.consume(AT_ONCE, 0.2) if one.error() is None]
        if messages:
            try:
                copy_once(consumer, producer, copy, messages)
            except KafkaException as refusal:
                if not refusal.args[0].txn_requires_abort():
                    raise
                insist(lambda: producer.abort_transaction(SECONDS))
                go_back(consumer, copy)


def copy_once(consumer: Consumer, producer: Producer, copy: Copy, messages: list[Message]) -> None:
    producer.begin_transaction()
    ends: dict[int, int] = {}
    for message in messages:
        number, offset = message.partition(), message.offset()
        assert number is not None
        assert offset is not None
        producer.produce(copy.target, value=message.value(), partition=number)
        ends[number] = offset + 1
    offsets = [TopicPartition(copy.source, number, offset) for number, offset in ends.items()]
    insist(lambda: producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS))
    insist(lambda: producer.commit_transaction(SECONDS))


def go_back(consumer: Consumer, copy: Copy) -> None:
    """To where the last transaction that counts has ended."""
    places = [TopicPartition(copy.source, number) for number in range(copy.partitions)]
    found = insist(lambda: consumer.committed(places, SECONDS))
    assert isinstance(found, list)
    for place in found:
        place.offset = max(place.offset, 0)
    consumer.assign(found)


def insist(call: object) -> object:
    """Call until it succeeds. Raises what cannot be repeated."""
    assert callable(call)
    while True:
        try:
            return call()
        except KafkaException as error:
            if not error.args[0].retriable() or error.args[0].txn_requires_abort():
                raise


if __name__ == "__main__":
    bootstrap, source, target, partitions, name = sys.argv[1:]
    try:
        main(Copy(bootstrap, source, target, int(partitions), name))
    except KafkaException as end:
        print(end, flush=True)
        os._exit(ENDED)  # librdkafka may wait for a dead broker if it is let go in good order
