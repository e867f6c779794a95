"""What the metadata says about partitions of all kinds, as monitoring counts them.

A diskless partition is served by every broker. So that sums over brokers count it once, it counts where clients are
sent: at its leader or, while the leader is away, at its stand-in. It is never short of replicas, and offline only if
it was classic before and no other broker can serve what is below its boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.metadata import MetadataImage
from strandline.model import BrokerId, TopicPartition


class OfflinePartition(NamedTuple):
    """A partition without a leader or a stand-in."""

    topic: str
    partition: int
    replicas: tuple[BrokerId, ...]
    """The brokers that could lead it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedPartitions:
    """The partitions of one image."""

    partitions: int = 0
    """Of the cluster."""
    offline: tuple[OfflinePartition, ...] = ()
    """Of the cluster, in the order of the metadata."""
    without_preferred_leader: int = 0
    """Of the cluster: classic partitions that another broker than their first replica leads."""
    diskless: tuple[TopicPartition, ...] = ()
    """The diskless partitions whose clients are sent to this broker."""


class Assignment:
    """Looks at an image once, however often it is asked."""

    def __init__(self, node_id: BrokerId, image: Callable[[], MetadataImage], diskless: DisklessTopics) -> None:
        self._node_id, self._image, self._diskless = node_id, image, diskless
        self._known_for: tuple[MetadataImage, int] | None = None
        self._known = AssignedPartitions()

    def now(self) -> AssignedPartitions:
        """As of the present image."""
        image, served = self._image(), self._diskless.view_version
        known = self._known_for
        if known is None or known[0] is not image or known[1] != served:
            self._known, self._known_for = self._look_at(image), (image, served)
        return self._known

    def _look_at(self, image: MetadataImage) -> AssignedPartitions:
        alive = frozenset(broker.node_id for broker in image.brokers.values() if not broker.fenced)
        partitions = not_preferred = 0
        offline: list[OfflinePartition] = []
        here: list[TopicPartition] = []
        for topic in image.topics.values():
            partitions += len(topic.partitions)
            diskless = self._diskless.diskless_partitions(topic)
            served = self._diskless.as_served(topic, alive) if diskless else topic
            for partition in served.partitions:
                if not partition.has_leader:
                    offline.append(OfflinePartition(topic.name, partition.partition, partition.replicas))
                elif partition.partition in diskless:
                    if partition.leader == self._node_id:
                        here.append(TopicPartition(topic.name, partition.partition))
                elif partition.leader != partition.preferred_leader:
                    not_preferred += 1
        return AssignedPartitions(
            partitions=partitions,
            offline=tuple(offline),
            without_preferred_leader=not_preferred,
            diskless=tuple(here),
        )
