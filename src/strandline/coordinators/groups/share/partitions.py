"""Sets of partitions by topic id, as share groups assign them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias
from uuid import UUID

SharePartitions: TypeAlias = Mapping[UUID, frozenset[int]]
"""Never holds an empty set."""

NOTHING_SHARED: Final[SharePartitions] = {}


def each_partition(partitions: SharePartitions) -> Iterator[tuple[UUID, int]]:
    """Each partition, with its topic, in the order of ids and numbers."""
    for topic_id in sorted(partitions):
        for number in sorted(partitions[topic_id]):
            yield topic_id, number


def by_topic(partitions: Iterable[tuple[UUID, int]]) -> SharePartitions:
    """The inverse of `each_partition`."""
    found: dict[UUID, set[int]] = {}
    for topic_id, number in partitions:
        found.setdefault(topic_id, set()).add(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}


def united(*parts: SharePartitions) -> SharePartitions:
    return by_topic(pair for part in parts for pair in each_partition(part))


def reduced(whole: SharePartitions, part: SharePartitions) -> SharePartitions:
    """The partitions of `whole` that are not in `part`."""
    return by_topic((topic_id, at) for topic_id, at in each_partition(whole) if at not in part.get(topic_id, ()))


def common(some: SharePartitions, others: SharePartitions) -> SharePartitions:
    return by_topic((topic_id, at) for topic_id, at in each_partition(some) if at in others.get(topic_id, ()))
