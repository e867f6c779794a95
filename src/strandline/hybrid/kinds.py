"""What a partition is on this broker, decided from the state that the broker sees.

By level: the same question is asked at the start and at every change of a topic, its settings or its leader, so that
nothing depends on the broker having seen the change happen.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from uuid import UUID

from strandline.config import TopicConfig
from strandline.metadata import PartitionImage, TopicImage
from strandline.model import TopicIdPartition, TopicPartition
from strandline.replication import every_partition


class PartitionKind(enum.Enum):
    """Where new records of a partition go."""

    CLASSIC = enum.auto()
    """To the log of a replica."""
    DISKLESS = enum.auto()
    """To WAL objects, in the order that the control plane gives; on every broker."""


def kind_of(*, is_flagged: bool, has_local_log: bool, is_in_control_plane: bool) -> PartitionKind:
    """What the partition is, from `diskless.enable`, this broker's disks and the control plane. Pure.

    Existing records decide; the setting decides only where there are none: a partition with a local log stays classic
    if `diskless.enable` is switched on, and one that the control plane has given offsets to stays diskless if it is
    switched off. Otherwise its offsets would begin again at 0, beside the records that it has.
    """
    if has_local_log:
        return PartitionKind.CLASSIC
    return PartitionKind.DISKLESS if is_flagged or is_in_control_plane else PartitionKind.CLASSIC


def key_of(topic: TopicImage, partition: PartitionImage) -> TopicIdPartition:
    """The id of a partition of this topic."""
    return TopicIdPartition(topic.topic_id, TopicPartition(topic.name, partition.partition))


class PartitionKinds:
    """The kinds of all partitions of the cluster. The only place of `hybrid` that reads `diskless.enable`."""

    def __init__(
        self, *, topic_config: Callable[[str], TopicConfig], has_local_log: Callable[[TopicIdPartition], bool]
    ) -> None:
        self._topic_config = topic_config
        self._has_local_log = has_local_log
        self._in_control_plane: set[UUID] = set()
        self._expected: set[TopicIdPartition] = set()

    def learn(self, topic_ids: Iterable[UUID]) -> None:
        """The control plane has logs of these topics."""
        self._in_control_plane.update(topic_ids)

    def expect_log(self, partition: TopicIdPartition) -> None:
        """A replica here is to be switched, and its log was not created before: it begins as a classic one."""
        self._expected.add(partition)

    def forget(self, topic_id: UUID) -> None:
        """The topic was deleted."""
        self._in_control_plane.discard(topic_id)
        if self._expected:
            self._expected = {partition for partition in self._expected if partition.topic_id != topic_id}

    def is_diskless_topic(self, topic: TopicImage) -> bool:
        """Whether partitions of the topic are diskless, on brokers that have no log of them."""
        return self.is_diskless(topic.topic_id, topic.name)

    def is_diskless(self, topic_id: UUID, name: str) -> bool:
        """Whether the topic is diskless, or is to be: its partitions here that have a log are switched."""
        return topic_id in self._in_control_plane or self._topic_config(name).diskless_enable

    def classic_partitions(self, topic: TopicImage) -> Callable[[int], bool]:
        """A function that tells of each partition of the topic whether this broker's replica of it keeps a log.

        Looks at the topic once: it may have thousands of partitions.
        """
        is_flagged = self._topic_config(topic.name).diskless_enable
        is_in_control_plane = topic.topic_id in self._in_control_plane

        def is_classic(partition: int) -> bool:
            key = TopicIdPartition(topic.topic_id, TopicPartition(topic.name, partition))
            has_log = self._has_local_log(key) or key in self._expected
            kind = kind_of(is_flagged=is_flagged, has_local_log=has_log, is_in_control_plane=is_in_control_plane)
            return kind is PartitionKind.CLASSIC

        return is_classic if is_flagged or is_in_control_plane else every_partition
