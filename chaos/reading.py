"""How clients of a run read: read_committed, from an offset that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, Message, TopicPartition

from chaos.history import COMMITTED, Read, Trouble
from chaos.stage import Stage
from chaos.values import Place, value_in

_AT_ONCE = 200
_WAIT_SECONDS = 0.05


def consumer_settings(stage: Stage, name: str, isolation: str = COMMITTED) -> dict[str, str | int | bool]:
    """A consumer that commits nothing by itself, and says so if it is sent to an offset that is not there."""
    return {
        "bootstrap.servers": stage.bootstrap,
        "client.id": name,
        "group.id": name,
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "log_level": 0,
    }


def consumer_at(stage: Stage, name: str, starts: Mapping[Place, int]) -> Consumer:
    """A consumer of these partitions, from these offsets on."""
    consumer = Consumer(consumer_settings(stage, name))
    consumer.assign([TopicPartition(topic, number, offset) for (topic, number), offset in starts.items()])
    return consumer


def reads_of(stage: Stage, name: str, messages: Sequence[Message]) -> list[Read]:
    """What was read. Errors pass, since the client tries again; all but being sent away from a place that was there."""
    found = []
    for message in messages:
        topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset()
        error = message.error()
        if error is not None and error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            what = f"{name} lost its place in {topic}-{partition}"
            stage.recorder.write(Trouble(at=stage.now, what=what, text=error.str()))
        if error is None and offset is not None:
            value = value_in(message.value() or b"")
            found.append(Read(topic=topic, partition=partition, offset=offset, value=value))
    return found


class Tail:
    """Follows all lists for a client that reads now and then."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage, self._name = stage, name
        self._consumer = consumer_at(stage, name, dict.fromkeys(stage.places, 0))

    def read(self) -> list[Read]:
        """Some of what has come since it was asked last; nothing if there is nothing."""
        self._stage.step("consume")
        return reads_of(self._stage, self._name, self._consumer.consume(_AT_ONCE, _WAIT_SECONDS))

    def close(self) -> None:
        close(self._stage, self._consumer)


def close(stage: Stage, consumer: Consumer) -> None:
    """Let a consumer go. One that does not want to ends with the process."""
    stage.step("close")
    consumer.close()
