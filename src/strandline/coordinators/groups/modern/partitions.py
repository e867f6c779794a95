"""Sets of partitions by topic id, as groups assign them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias
from uuid import UUID

Partitions: TypeAlias = Mapping[UUID, frozenset[int]]
"""Never holds an empty set."""

NO_PARTITIONS: Final[Partitions] = {}
_NONE: Final[frozenset[int]] = frozenset()


def pairs(partitions: Mapping[UUID, Iterable[int]]) -> Iterator[tuple[UUID, int]]:
    """Each partition, with its topic."""
    for topic_id, numbers in partitions.items():
        for number in numbers:
            yield topic_id, number


def sorted_pairs(partitions: Partitions) -> Iterator[tuple[UUID, int]]:
    """Each partition, with its topic, in the order of ids and numbers."""
    for topic_id in sorted(partitions):
        for number in sorted(partitions[topic_id]):
            yield topic_id, number


def in_order(partitions: Partitions) -> Partitions:
    """The same in the order of the ids, so that the same set is always the same bytes."""
    return {topic_id: partitions[topic_id] for topic_id in sorted(partitions)}


def gathered(partitions: Iterable[tuple[UUID, int]]) -> Partitions:
    """The inverse of `pairs`."""
    found: dict[UUID, set[int]] = {}
    for topic_id, number in partitions:
        found.setdefault(topic_id, set()).add(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}


def united(*parts: Partitions) -> Partitions:
    found: dict[UUID, set[int]] = {}
    for part in parts:
        for topic_id, numbers in part.items():
            found.setdefault(topic_id, set()).update(numbers)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items() if numbers}


def reduced(whole: Partitions, part: Partitions) -> Partitions:
    """The partitions of `whole` that are not in `part`."""
    left = {topic_id: numbers - part.get(topic_id, _NONE) for topic_id, numbers in whole.items()}
    return {topic_id: numbers for topic_id, numbers in left.items() if numbers}


def common(some: Partitions, others: Partitions) -> Partitions:
    both = {topic_id: numbers & others.get(topic_id, _NONE) for topic_id, numbers in some.items()}
    return {topic_id: numbers for topic_id, numbers in both.items() if numbers}
