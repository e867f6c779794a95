"""Partitions with the epochs in which a member was assigned them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias
from uuid import UUID

from strandline.coordinators.groups.consumer.schemas import TopicPartitionsValue
from strandline.coordinators.groups.modern.partitions import Partitions, pairs

PartitionEpochs: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""For each partition the epoch in which the member was assigned it. Never holds an empty mapping."""

NO_EPOCHS: Final[PartitionEpochs] = {}


def without_epochs(owned: PartitionEpochs) -> Partitions:
    return {topic_id: frozenset(partitions) for topic_id, partitions in owned.items()}


def merged(some: PartitionEpochs, others: PartitionEpochs) -> PartitionEpochs:
    return {topic_id: {**some.get(topic_id, {}), **others.get(topic_id, {})} for topic_id in {**some, **others}}


def is_within(part: Partitions, whole: PartitionEpochs) -> bool:
    """Whether the member's partitions are all among these."""
    return all(number in whole.get(topic_id, ()) for topic_id, number in pairs(part))


def have_common(some: Partitions, others: PartitionEpochs) -> bool:
    return any(number in others.get(topic_id, ()) for topic_id, number in pairs(some))


def read_epochs(topics: Iterable[TopicPartitionsValue], member_epoch: int) -> PartitionEpochs:
    """Records of older versions have no epochs: the epoch of the member stands for them."""
    return {
        topic.topic_id: dict(
            zip(
                topic.partitions,
                (member_epoch,) * len(topic.partitions) if topic.epochs is None else topic.epochs,
                strict=True,
            )
        )
        for topic in topics
        if topic.partitions
    }


def epoch_values(owned: PartitionEpochs) -> tuple[TopicPartitionsValue, ...]:
    """For a record: in the order of the ids, so that the same set is always the same bytes."""
    values = []
    for topic_id in sorted(owned):
        numbers = sorted(owned[topic_id])
        epochs = tuple(owned[topic_id][number] for number in numbers)
        values.append(TopicPartitionsValue(topic_id, tuple(numbers), epochs))
    return tuple(values)
