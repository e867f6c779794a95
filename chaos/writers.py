"""Clients that append: producers with transactions over several partitions, idempotent ones, and plain ones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from chaos.history import Append, Attempt, Begun, Outcome, Promise
from chaos.reading import Tail
from chaos.stage import GRACE_SECONDS, Stage, error_of
from chaos.transactions import Transaction, TransactionalProducer, attempt
from chaos.values import Place, payload_of, value_in, value_of

_ABORTS = 0.2
_DELAYS = 0.1
_READS = 0.5
FLUSH_SECONDS = 120.0
"""How long a producer without transactions has for what is left when it ends. No fault takes that long."""


def write_transactions(stage: Stage, name: str) -> None:
    """Transactions of one to six values. Some read, one of five is aborted on purpose, some stay open for a while."""
    own, dice, numbers = TransactionalProducer(stage, name), stage.dice(name), stage.numbers()
    tail = Tail(stage, name)
    try:
        while not stage.stop.is_set():
            producer = own.ready()
            if producer is not None:
                script = _Script(stage, dice)
                values = [
                    Append(topic=topic, partition=partition, value=value_of(name, next(numbers)))
                    for topic, partition in script.places
                ]
                transaction = Transaction(appends=values)
                play = partial(script.play, transaction, producer, tail)
                attempt(own, producer, transaction, play, commits=script.commits)
                stage.stop.wait(dice.uniform(0.01, 0.1))
    finally:
        tail.close()


class _Script:
    """What one transaction does, by chance."""

    def __init__(self, stage: Stage, dice: random.Random) -> None:
        self.commits = dice.random() >= _ABORTS
        self.places: list[Place] = [dice.choice(stage.places) for _ in range(dice.randint(1, 6))]
        self._stage = stage
        self._read_before = dice.randrange(len(self.places)) if dice.random() < _READS else None
        self._delay = dice.uniform(0.1, 2.0) if dice.random() < _DELAYS else 0.0

    def play(self, transaction: Transaction, producer: Producer, tail: Tail) -> None:
        """Append the values, and read in between. Raises KafkaException."""
        for number, one in enumerate(transaction.appends):
            if number == self._read_before:
                transaction.reads += tail.read()
                self._stage.step("produce")
            transaction.send(producer, one)
        if self._delay:
            self._stage.stop.wait(self._delay)


SETTINGS: Mapping[Promise, Mapping[str, str | int | bool]] = {
    Promise.IDEMPOTENT: {"enable.idempotence": True},
    Promise.PLAIN: {"enable.idempotence": False, "acks": "all"},
}


def append(stage: Stage, name: str, promise: Promise) -> None:
    """A producer without transactions. Each one that ends is followed by another, with its own values."""
    for number in stage.numbers():
        if stage.stop.is_set():
            return
        _Producer(stage, name, f"{name}.{number}", promise).work()


class _Producer:
    """One producer from its first value to its end."""

    def __init__(self, stage: Stage, name: str, stream: str, promise: Promise) -> None:
        self._stage, self._name, self._stream, self._promise = stage, name, stream, promise
        self._ending: list[KafkaError] = []
        """Errors after which another producer takes over."""
        self._waiting: dict[str, Append] = {}
        self._producer = Producer(
            {
                "bootstrap.servers": stage.bootstrap,
                "client.id": stream,
                **SETTINGS[promise],
                "linger.ms": 2,
                "log_level": 0,
                "error_cb": self._on_error,
            }
        )

    def work(self) -> None:
        dice = self._stage.dice(self._stream)
        for values in self._values():
            if self._stage.stop.is_set() or self._ending:
                break
            places = [dice.choice(self._stage.places) for _ in values]
            self._append(
                [
                    Append(topic=topic, partition=partition, value=value)
                    for (topic, partition), value in zip(places, values, strict=True)
                ]
            )
            self._stage.stop.wait(dice.uniform(0.01, 0.1))
        self._stage.step("flush", FLUSH_SECONDS + GRACE_SECONDS)
        left = self._producer.flush(FLUSH_SECONDS)
        for sent in list(self._waiting.values()):
            self._write(sent, Outcome.UNKNOWN, f"{left} without a report")
        for error in self._ending[:1]:
            self._stage.client_ended(self._stream, "produce", error)

    def _values(self) -> Iterator[list[str]]:
        dice, numbers = self._stage.dice(f"sizes of {self._stream}"), itertools.count(1)
        while True:
            yield [value_of(self._stream, next(numbers)) for _ in range(dice.randint(1, 4))]

    def _append(self, values: list[Append]) -> None:
        stage = self._stage
        stage.recorder.write(
            Begun(at=stage.now, client=self._name, writer=self._stream, promise=self._promise, appends=values)
        )
        stage.step("produce")
        for one in values:
            self._waiting[one.value] = one
            try:
                self._producer.produce(
                    one.topic, value=payload_of(one.value), partition=one.partition, on_delivery=self._on_delivery
                )
            except KafkaException as exception:
                error = error_of(exception)
                self._write(one, Outcome.ABORTED, error.name())  # the client has refused it: it was never sent
                self._on_error(error)
        self._producer.poll(0)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        sent = self._waiting[value_in(message.value() or b"")]
        if error is None:
            self._write(replace(sent, offset=message.offset()), Outcome.COMMITTED, None)
        else:
            self._write(sent, Outcome.UNKNOWN, error.name())
            self._ending.append(error)

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._ending.append(error)

    def _write(self, sent: Append, outcome: Outcome, error: str | None) -> None:
        del self._waiting[sent.value]
        self._stage.recorder.write(
            Attempt(
                at=self._stage.now,
                writer=self._stream,
                promise=self._promise,
                outcome=outcome,
                appends=[sent],
                error=error,
            )
        )
