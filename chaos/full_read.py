"""What a real client reads at the end: every partition from its beginning, and the offsets of groups."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition
from tests.waiting import wait_until

from chaos.history import COMMITTED, Content, Trouble
from chaos.readers import ask_group
from chaos.reading import close, consumer_settings
from chaos.stage import Stage
from chaos.values import CONSUMER_GROUPS, Place, value_in

READ_SECONDS = 300.0


def read_everything(stage: Stage, name: str) -> None:
    """Write all of it down. What another process has written before it hung is the same."""
    _read_committed(stage, name)
    for group in CONSUMER_GROUPS:
        _read_group(stage, name, group)


def _read_committed(stage: Stage, name: str) -> None:
    """What a real client reads."""
    consumer = Consumer({**consumer_settings(stage, name), "enable.partition.eof": True})
    records: dict[Place, list[tuple[int, str]]] = {place: [] for place in stage.all_places}
    ends: dict[Place, int] = {}

    def is_read() -> bool:
        stage.step("consume")
        for message in consumer.consume(1000, 1.0):
            place, offset = (message.topic() or "", message.partition() or 0), message.offset()
            error = message.error()
            if error is None and offset is not None:
                records[place].append((offset, value_in(message.value() or b"")))
            elif error is not None and error.name() == "_PARTITION_EOF" and offset is not None:
                ends[place] = offset
        return len(ends) == len(records)

    try:
        consumer.assign([TopicPartition(topic, number, 0) for topic, number in records])
        wait_until(is_read, within=READ_SECONDS, step=0.0, what=f"the ends of {records.keys() - ends.keys()}")
    except AssertionError as error:
        stage.recorder.write(Trouble(at=stage.now, what="not everything could be read", text=str(error)))
    finally:
        close(stage, consumer)
    for (topic, number), end in ends.items():
        stage.recorder.write(
            Content(
                source="consumer",
                isolation=COMMITTED,
                topic=topic,
                partition=number,
                start=0,
                end=end,
                records=records[topic, number],
            )
        )


def _read_group(stage: Stage, name: str, group: str) -> None:
    """Where members of a group are, from its offsets. Its coordinator may be loading: it is asked again."""
    consumer = Consumer({**consumer_settings(stage, name), "group.id": group})
    try:
        wait_until(
            lambda: ask_group(stage, group, consumer, stage.places), within=READ_SECONDS, what=f"offsets of {group}"
        )
    finally:
        close(stage, consumer)
