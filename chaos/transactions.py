"""Ends transactions of librdkafka's producer, and says what is known of their outcome."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from chaos.history import Append, Attempt, Begun, Outcome, Promise, Read
from chaos.stage import CALL_SECONDS, TRANSACTION_SECONDS, Stage, error_of
from chaos.values import payload_of, value_in

_PATIENCE_SECONDS = 45.0
_FLUSH_SECONDS = 2.0


@dataclass(slots=True)
class Transaction:
    """All values that it is to append, where the broker put those that were sent, and what was read meanwhile."""

    appends: list[Append] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    commit_at: float | None = None
    sent: int = 0

    def send(self, producer: Producer, one: Append) -> None:
        """Send one of its values. Raises KafkaException and BufferError; then the producer does not have it."""
        producer.produce(one.topic, value=payload_of(one.value), partition=one.partition, on_delivery=self._on_delivery)
        self.sent += 1

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        value, offset = message.value(), message.offset()
        if error is None and value is not None and offset is not None:
            self.offsets[value_in(value)] = offset

    @property
    def is_acknowledged(self) -> bool:
        """Whether the broker has said where each value that was sent is."""
        return len(self.offsets) == self.sent

    def begun(self, stage: Stage, writer: str) -> Begun:
        """What to write down before."""
        promise = Promise.TRANSACTIONAL
        return Begun(
            at=stage.now, client=writer, writer=writer, promise=promise, appends=self.appends, reads=self.reads
        )

    def ended(self, stage: Stage, writer: str, outcome: Outcome, error: KafkaError | None) -> Attempt:
        """What to write down afterwards."""
        return Attempt(
            at=stage.now,
            writer=writer,
            promise=Promise.TRANSACTIONAL,
            outcome=outcome,
            appends=[replace(one, offset=self.offsets.get(one.value)) for one in self.appends],
            reads=self.reads,
            commit_at=self.commit_at,
            error=None if error is None else error.name(),
        )


@dataclass(slots=True)
class TransactionalProducer:
    """A transactional id, and the producer that has it now. One that cannot go on is replaced."""

    stage: Stage
    name: str
    producer: Producer | None = None

    def ready(self) -> Producer | None:
        """A producer that may begin; None if there is none yet, and the caller asks again."""
        if self.producer is not None:
            return self.producer
        producer = Producer(
            {
                "bootstrap.servers": self.stage.bootstrap,
                "client.id": self.name,
                "transactional.id": self.name,
                "transaction.timeout.ms": int(TRANSACTION_SECONDS * 1000),
                "delivery.timeout.ms": int(TRANSACTION_SECONDS * 1000),
                "linger.ms": 2,
                "log_level": 0,
            }
        )
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            self.stage.step("init_transactions")
            try:
                producer.init_transactions(CALL_SECONDS)
            except KafkaException as exception:
                error = error_of(exception)
                if error.retriable() and time.monotonic() < deadline and not self.stage.stop.is_set():
                    continue
                self.stage.client_ended(self.name, "init_transactions", error)
                return None
            self.producer = producer
            return producer

    def replace(self, operation: str, error: KafkaError) -> None:
        """Give up the producer; the next one of the same id ends what it has left open."""
        self.stage.client_ended(self.name, operation, error)
        if self.producer is not None:
            self.producer.purge()
        self.producer = None

    def discard(self) -> None:
        """Go on with another producer, whose epoch is the next one, although this one has not failed.

        If a connection breaks and the transaction is then aborted, librdkafka takes what it had sent for never sent,
        and gives its sequences to the next values: the broker, ours or Kafka's, takes those for repetitions.
        """
        if self.producer is not None:
            self.producer.purge()
        self.producer = None

    def commit(self, producer: Producer) -> tuple[Outcome, KafkaError | None]:
        """Commit. Unknown if no answer came, or one after which nobody can say."""
        error = self._insist("commit_transaction", producer.commit_transaction)
        if error is None:
            return Outcome.COMMITTED, None
        if not error.txn_requires_abort():
            self.replace("commit_transaction", error)
            return Outcome.UNKNOWN, error
        # librdkafka is sure that it was not committed only if the coordinator agrees to abort it.
        refused = self._insist("abort_transaction", producer.abort_transaction)
        if refused is None:
            return Outcome.ABORTED, error
        self.replace("abort_transaction", refused)
        return Outcome.UNKNOWN, error

    def abort(self, producer: Producer) -> KafkaError | None:
        """Abort what nobody has asked to commit: it is aborted, whatever the answer is."""
        error = self._insist("abort_transaction", producer.abort_transaction)
        if error is not None:
            self.replace("abort_transaction", error)
        return error

    def _insist(self, name: str, call: Callable[[float], None]) -> KafkaError | None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            self.stage.step(name)
            try:
                call(CALL_SECONDS)
            except KafkaException as exception:
                error = error_of(exception)
                if not error.retriable() or time.monotonic() > deadline:
                    return error
            else:
                return None


def attempt(
    own: TransactionalProducer,
    producer: Producer,
    transaction: Transaction,
    fill: Callable[[], None],
    *,
    commits: bool,
) -> Outcome:
    """One transaction from begin to end; what it is about to do and what becomes of it are written down."""
    own.stage.recorder.write(transaction.begun(own.stage, own.name))
    error: KafkaError | None = None
    try:
        own.stage.step("begin_transaction")
        producer.begin_transaction()
        own.stage.step("produce")
        fill()
    except KafkaException as exception:
        error = error_of(exception)
        commits = False
        if error.fatal():
            own.replace(own.stage.doing, error)
    outcome = Outcome.ABORTED
    if commits:
        transaction.commit_at = own.stage.now
        outcome, error = own.commit(producer)
    elif own.producer is not None:
        own.stage.step("flush")
        producer.flush(_FLUSH_SECONDS)
        if transaction.is_acknowledged:
            own.abort(producer)
    if outcome is Outcome.ABORTED and not transaction.is_acknowledged:
        own.discard()
    own.stage.recorder.write(transaction.ended(own.stage, own.name, outcome, error))
    return outcome
