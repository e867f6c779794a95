"""Exactly-once copiers: members of a group whose copies and offsets are committed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, TopicPartition

from chaos.history import Append, Outcome, Read
from chaos.reading import close, consumer_settings, reads_of
from chaos.stage import CALL_SECONDS, Stage
from chaos.transactions import Transaction, TransactionalProducer, attempt
from chaos.values import COPIERS, Place, list_topic, topic_of_copies, value_of

_AT_ONCE = 40
_ABORTS = 0.05


def copy(stage: Stage, name: str) -> None:
    """Consume, transform, produce. After anything but a commit, begin again from the offsets of the group."""
    own, dice, numbers = TransactionalProducer(stage, name), stage.dice(name), stage.numbers()
    while not stage.stop.is_set():
        if own.ready() is None:
            continue
        settings = {**consumer_settings(stage, name), "group.id": COPIERS, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, "session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000})
        try:
            consumer.subscribe([list_topic(tier) for tier in stage.tiers])
            is_going = True
            while is_going and not stage.stop.is_set():
                stage.step("consume")
                reads = reads_of(stage, name, consumer.consume(_AT_ONCE, 0.5))
                if reads:
                    is_going = _copy(own, consumer, reads, numbers, commits=dice.random() >= _ABORTS)
        finally:
            close(stage, consumer)


def _copy(
    own: TransactionalProducer,
    consumer: Consumer,
    reads: Sequence[Read],
    numbers: Iterator[int],
    *,
    commits: bool,
) -> bool:
    """One transaction; whether it was committed."""
    producer = own.producer
    assert producer is not None
    next_offsets: dict[Place, int] = {}
    transaction = Transaction(reads=[*reads])
    for read in reads:
        value = value_of(own.name, next(numbers), (read.offset, read.value))
        transaction.appends.append(Append(topic=topic_of_copies(read.topic), partition=read.partition, value=value))
        next_offsets[read.topic, read.partition] = read.offset + 1

    def fill() -> None:
        for one in transaction.appends:
            transaction.send(producer, one)
        offsets = [TopicPartition(topic, number, offset) for (topic, number), offset in next_offsets.items()]
        metadata = consumer.consumer_group_metadata()
        own.stage.step("send_offsets_to_transaction")
        producer.send_offsets_to_transaction(offsets, metadata, CALL_SECONDS)

    return attempt(own, producer, transaction, fill, commits=commits) is Outcome.COMMITTED
