"""What topics do before the comparison begins. Requests of deeds are compared, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.wirelevel.transactional import transaction_state

from differential.administering import boundaries, convert_topic, switch_topic, wait_for_state, wait_until
from differential.batches import OLD_CODECS, batch, times_of
from differential.exchange import Answers
from differential.places import Known, Place
from differential.scene import QUIET_SECONDS, Scene
from differential.steps import Step
from differential.transacting import Transactional
from strandline.wire.api import ApiKey
from strandline.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

Deed = Callable[[Scene, Sequence[Place]], None]
_BATCHES_OF_TRANSACTION = 3


def write(count: int) -> Deed:
    """So many batches to each partition."""

    def deed(scene: Scene, places: Sequence[Place]) -> None:
        for place in places:
            for _ in range(count):
                times = times_of(scene.dice, scene.dice.randint(1, 8))
                size, codec = scene.dice.choice((30, 200, 700)), scene.dice.choice(OLD_CODECS)
                records = bytes(batch(scene.dice, times, size=size, codec=codec))
                # Answers from version 5 on tell the log start, which retention moves at its own time.
                version = scene.dice.randint(7, 12) if place in scene.quiet else scene.dice.randint(3, 4)
                scene.ask(production({place: records}, version=version))
                scene.known[place].times += times
        scene.rest(places)

    return deed


def write_transactions(count: int) -> Deed:
    """So many batches of two transactional producers, one of each protocol, which end their transactions in turn."""

    def deed(scene: Scene, places: Sequence[Place]) -> None:
        for place in places:
            producers = [producer_of(scene, f"{place.topic}-{name}", is_new=name == "new") for name in ("old", "new")]
            for number in range(count):
                producer = producers[number % 2]
                if not producer.is_new and place not in producer.added:
                    scene.ask(producer.add([place]))
                    producer.added.add(place)
                write_in_transaction(scene, producer, place)
                if number % (2 * _BATCHES_OF_TRANSACTION) >= 2 * (_BATCHES_OF_TRANSACTION - 1):
                    end(scene, producer, commit=scene.dice.random() < 0.5)
        scene.rest(places, quiet_seconds=QUIET_SECONDS)

    return deed


def end_transactions(scene: Scene, places: Sequence[Place]) -> None:
    """Nothing stays open."""
    for producer in scene.producers.values():
        if producer.added.union(producer.written).intersection(places):
            end(scene, producer, commit=True)
    scene.rest(places, quiet_seconds=QUIET_SECONDS)


def settle(scene: Scene, places: Sequence[Place]) -> None:
    """Wait for copies and for retention."""
    scene.rest(places, quiet_seconds=3 * QUIET_SECONDS)


def switch(state: str) -> Deed:
    """Make the topic diskless, and wait for a state if one is named."""

    def deed(scene: Scene, places: Sequence[Place]) -> None:
        topic = places[0].topic
        scene.both(places, f"diskless.enable=true on {topic}")
        for side in scene.pair.sides:
            with side.client() as client:
                switch_topic(client, side, topic)
            if state:
                wait_for_state(side, topic, state)
        scene.rest(places, quiet_seconds=QUIET_SECONDS)
        for place, boundary in zip(places, boundaries(scene.pair.new, topic), strict=True):
            scene.known[place].boundary = boundary

    return deed


def convert(scene: Scene, places: Sequence[Place]) -> None:
    """Run the pipeline once for the topic: all that is committed becomes remote segments."""
    scene.both(places, f"all of {places[0].topic} is converted")
    for side in scene.pair.sides:
        convert_topic(side, places[0].topic)
    scene.rest(places, quiet_seconds=QUIET_SECONDS)


def delete_below(where: str) -> Deed:
    """DeleteRecords up to `middle` or `boundary`."""

    def offset(known: Known) -> int:
        return known.boundary if where == "boundary" else (known.start + known.end) // 2

    def deed(scene: Scene, places: Sequence[Place]) -> None:
        for place in places:
            scene.ask(deletion({place: offset(scene.known[place])}, version=2))
        scene.rest(places, quiet_seconds=QUIET_SECONDS)

    return deed


# Requests


def production(
    records: dict[Place, bytes | None], *, version: int, acks: int = -1, transactional_id: str | None = None, **how: Any
) -> Step:
    topics: list[TopicProduceData] = []
    for place, data in records.items():
        if not topics or topics[-1].name != place.topic:
            topics.append(TopicProduceData(name=place.topic, partition_data=[]))
        topics[-1].partition_data.append(PartitionProduceData(index=place.partition, records=data))
    request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=30_000, topic_data=topics)
    return Step(
        api=ApiKey.PRODUCE,
        version=version,
        message=request,
        places=tuple(records),
        changes=tuple(records),
        is_answered=acks != 0,
        **how,
    )


def deletion(offsets: dict[Place, int], *, version: int) -> Step:
    topics: list[DeleteRecordsTopic] = []
    for place, offset in sorted(offsets.items()):
        if not topics or topics[-1].name != place.topic:
            topics.append(DeleteRecordsTopic(name=place.topic, partitions=[]))
        topics[-1].partitions.append(DeleteRecordsPartition(partition_index=place.partition, offset=offset))
    request = DeleteRecordsRequest(topics=topics, timeout_ms=30_000)
    places = tuple(offsets)
    return Step(api=ApiKey.DELETE_RECORDS, version=version, message=request, places=places, changes=places)


# Transactions


def producer_of(scene: Scene, transactional_id: str, *, is_new: bool) -> Transactional:
    """The producer of this id, with an epoch."""
    if transactional_id not in scene.producers:
        producer = scene.producers[transactional_id] = Transactional(transactional_id, is_new)
        producer.initialised(scene.ask(producer.init()).new.message)
    return scene.producers[transactional_id]


def write_in_transaction(scene: Scene, producer: Transactional, place: Place) -> None:
    """One batch."""
    times = times_of(scene.dice, scene.dice.randint(1, 5))
    first = producer.sequences.get(place, 0)
    data = batch(scene.dice, times, producer=producer.identity, sequence=first, is_transactional=True)
    version = scene.dice.choice(producer.produce_versions)
    step = production({place: bytes(data)}, version=version, transactional_id=producer.transactional_id)
    if producer_error(scene.ask(step)) == 0:
        producer.took(place, len(times))
        scene.known[place].times += times


def end(scene: Scene, producer: Transactional, *, commit: bool) -> None:
    """EndTxn, and wait until the markers are written."""
    places = sorted(producer.written)
    producer.ended(scene.ask(producer.end(commit=commit)).new.message)
    wait_for_markers(scene, producer)
    scene.rest(places)


def wait_for_markers(scene: Scene, producer: Transactional) -> None:
    """Until nothing is left to do for a transaction that is decided."""
    for side in scene.pair.sides:
        with side.client() as client:
            wait_until(
                lambda found=client: not transaction_state(found, producer.transactional_id).startswith("Prepare"),  # type: ignore[misc]
                f"the markers of {producer.transactional_id}",
            )


def producer_error(answers: Answers) -> int:
    """Of a Produce request for one partition; -2 without an answer."""
    message = answers.new.message
    return -2 if message is None else int(message.responses[0].partition_responses[0].error_code)
