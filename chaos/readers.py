"""Clients that read and do not append: consumers that begin again now and then, and those that ask for offsets."""

from __future__ import annotations

from collections import defaultdict

from confluent_kafka import Consumer, KafkaException, TopicPartition

from chaos.history import COMMITTED, UNCOMMITTED, Bounds, GroupOffset, Seen
from chaos.reading import close, consumer_at, consumer_settings, reads_of
from chaos.stage import Stage
from chaos.values import CONSUMER_GROUPS, Place

_AT_ONCE = 500
_SESSION_SECONDS = 30.0
_ANSWER_SECONDS = 5.0
_PAUSE_SECONDS = 0.1


def read_committed(stage: Stage, name: str) -> None:
    """Read all lists from an offset on that was read before, again and again, and write down what is there."""
    dice = stage.dice(name)
    reached: dict[Place, int] = dict.fromkeys(stage.places, 0)
    for session in stage.numbers():
        if stage.stop.is_set():
            return
        starts = {place: dice.randint(max(0, end - 2000), end) for place, end in reached.items()}
        consumer = consumer_at(stage, name, starts)
        try:
            until = stage.now + dice.uniform(0.3, 1.0) * _SESSION_SECONDS
            while stage.now < until and not stage.stop.is_set():
                _read(stage, name, session, consumer, starts, reached)
        finally:
            close(stage, consumer)


def _read(
    stage: Stage, name: str, session: int, consumer: Consumer, starts: dict[Place, int], reached: dict[Place, int]
) -> None:
    records: dict[Place, list[tuple[int, str]]] = defaultdict(list)
    stage.step("consume")
    for one in reads_of(stage, name, consumer.consume(_AT_ONCE, 0.5)):
        place = (one.topic, one.partition)
        records[place].append((one.offset, one.value))
        reached[place] = max(reached[place], one.offset + 1)
    for place, found in records.items():
        stage.recorder.write(
            Seen(
                at=stage.now,
                reader=name,
                session=session,
                start=starts[place],
                topic=place[0],
                partition=place[1],
                records=found,
            )
        )


def observe(stage: Stage, name: str) -> None:
    """Ask for starts, ends, stable ends and the offsets of groups, one question at a time."""
    dice = stage.dice(name)
    levels = {level: Consumer(consumer_settings(stage, f"{name} {level}", level)) for level in (COMMITTED, UNCOMMITTED)}
    groups = {one: Consumer({**consumer_settings(stage, name), "group.id": one}) for one in CONSUMER_GROUPS}
    try:
        while not stage.stop.wait(_PAUSE_SECONDS):
            isolation, place = dice.choice([*levels]), dice.choice(stage.places)
            _ask_bounds(stage, name, levels[isolation], isolation, place)
            group = dice.choice(CONSUMER_GROUPS)
            ask_group(stage, group, groups[group], [dice.choice(stage.places)])
    finally:
        for consumer in (*levels.values(), *groups.values()):
            close(stage, consumer)


def _ask_bounds(stage: Stage, name: str, consumer: Consumer, isolation: str, place: Place) -> None:
    stage.step("get_watermark_offsets")
    try:
        answer = consumer.get_watermark_offsets(TopicPartition(*place), _ANSWER_SECONDS)
    except KafkaException:
        return  # a broker is away: there is nothing to judge
    if answer is not None:
        start, end = answer
        stage.recorder.write(
            Bounds(
                at=stage.now,
                observer=name,
                isolation=isolation,
                topic=place[0],
                partition=place[1],
                start=start,
                end=end,
            )
        )


def ask_group(stage: Stage, group: str, consumer: Consumer, places: list[Place]) -> bool:
    """Write down the group's offsets. False if the coordinator did not answer."""
    stage.step("committed")
    try:
        answer = consumer.committed([TopicPartition(*place) for place in places], _ANSWER_SECONDS)
    except KafkaException:
        return False
    if any(one.error is not None for one in answer):
        return False
    for one in answer:
        offset = max(one.offset, 0)  # -1001: nothing was copied
        stage.recorder.write(
            GroupOffset(at=stage.now, group=group, topic=one.topic, partition=one.partition, offset=offset)
        )
    return True
