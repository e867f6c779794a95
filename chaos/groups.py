"""Members of consumer groups of both protocols: what each is given is written down before it is committed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaException

from chaos.history import Delivery, Read
from chaos.reading import close, consumer_settings, reads_of
from chaos.stage import Stage, error_of
from chaos.values import CLASSIC_GROUP, CONSUMER_GROUP, Place, list_topic

_AT_ONCE = 500
_MEMBERSHIP_SECONDS = 40.0
_PROTOCOLS: Mapping[str, Mapping[str, str | int]] = {
    CLASSIC_GROUP: {"group.protocol": "classic", "session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000},
    CONSUMER_GROUP: {"group.protocol": "consumer"},
}


def consume_as_member(stage: Stage, name: str, group: str) -> None:
    """Join, read, commit and leave, again and again."""
    dice = stage.dice(name)
    while not stage.stop.is_set():
        settings = {**consumer_settings(stage, name), "group.id": group, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, **_PROTOCOLS[group]})
        try:
            consumer.subscribe([list_topic(tier) for tier in stage.tiers])
            until = stage.now + dice.uniform(0.2, 1.0) * _MEMBERSHIP_SECONDS
            while stage.now < until and not stage.stop.is_set():
                stage.step("consume")
                deliver(stage, name, group, reads_of(stage, name, consumer.consume(_AT_ONCE, 0.5)))
                if not _commit(stage, name, consumer):
                    break  # another member may have the partitions now: begin where the group is
        finally:
            close(stage, consumer)


def deliver(stage: Stage, name: str, group: str, reads: Sequence[Read]) -> None:
    """Write down what a member was given."""
    records: dict[Place, list[tuple[int, str]]] = defaultdict(list)
    for one in reads:
        records[one.topic, one.partition].append((one.offset, one.value))
    for (topic, partition), found in records.items():
        stage.recorder.write(
            Delivery(at=stage.now, group=group, member=name, topic=topic, partition=partition, records=found)
        )


def _commit(stage: Stage, name: str, consumer: Consumer) -> bool:
    stage.step("commit")
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as exception:
        error = error_of(exception)
        if error.name() == "_NO_OFFSET":
            return True  # nothing came since the last one
        if error.fatal():
            stage.client_ended(name, "commit", error)
        return False
    return True
