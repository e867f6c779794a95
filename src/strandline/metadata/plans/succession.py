"""Plans who leads partitions, and who is in sync, after replicas of many of them have come or gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeAlias

from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.metadata.plans.elections import (
    KEPT_EVERYTHING,
    ElectionType,
    PartitionChange,
    Returned,
    grouped,
    partition_change,
)
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.records import PartitionChangeRecord

Target: TypeAlias = tuple[TopicImage, PartitionImage, tuple[int, ...]]
"""A partition, and the in-sync set that it is to have."""
Availability: TypeAlias = Callable[[PartitionImage, int], bool]
"""Whether the replica of a partition on a broker may lead: `MetadataImage.is_available`, and exceptions from it."""


def _nothing_is_lost(partition: PartitionImage) -> Returned:
    return KEPT_EVERYTHING


class Succession:
    """Elects leaders by the settings of each topic."""

    def __init__(self, rules: ConfigRules) -> None:
        self._rules = rules

    def changes(
        self,
        image: MetadataImage,
        targets: Iterable[Target],
        is_available: Availability,
        returned: Callable[[PartitionImage], Returned] = _nothing_is_lost,
    ) -> list[PartitionChangeRecord]:
        """The records that give partitions these in-sync sets, and the leaders that follow.

        `returned` says of each partition what a broker has lost of it.
        """
        return grouped(self._elections(image, targets, is_available, returned))

    def _elections(
        self,
        image: MetadataImage,
        targets: Iterable[Target],
        is_available: Availability,
        returned: Callable[[PartitionImage], Returned],
    ) -> Iterator[PartitionChange]:
        elections: dict[str, ElectionType] = {}
        for topic, partition, isr in targets:
            election = elections.get(topic.name)
            if election is None:
                allowed = self._rules.allows_unclean_election(image, topic.name)
                election = elections[topic.name] = ElectionType.UNCLEAN if allowed else ElectionType.ONLINE
            change = partition_change(
                topic.topic_id,
                partition,
                isr=isr,
                is_active=partial(is_available, partition),
                election=election,
                committed_by=self._rules.committed_by(image, topic.name, partition),
                returned=returned(partition),
            )
            if change is not None:
                yield change

    def elect_uncleanly(self, image: MetadataImage, topics: Iterable[TopicImage]) -> list[PartitionChangeRecord]:
        """Elect leaders for partitions without one, those of these topics that allow one that is not in sync."""
        allowed = (topic for topic in topics if self._rules.allows_unclean_election(image, topic.name))
        return self.changes(image, leaderless(allowed), image.is_available)


def leaderless(topics: Iterable[TopicImage]) -> Iterator[Target]:
    """The partitions without a leader, with the in-sync set that they have."""
    for topic in topics:
        for partition in topic.partitions:
            if not partition.has_leader:
                yield topic, partition, partition.isr
