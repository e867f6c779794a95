"""Partitions by topic, as the messages about transactions list them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from strandline.model import TopicPartition


def by_topic(partitions: Iterable[TopicPartition]) -> Iterator[tuple[str, list[int]]]:
    """Each topic once, with the numbers of its partitions."""
    for topic, found in groupby(sorted(partitions), key=lambda one: one.topic):
        yield topic, [one.partition for one in found]
