"""Makes the partitions of a broker follow the metadata."""

from __future__ import annotations

from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.partitions import Partitions
from strandline.metadata import MetadataDelta, MetadataImage
from strandline.replication import ReplicaManager


class FollowingPartitions:
    """A subscriber of the metadata: replicas first, which say what diskless topics find on this broker's disks."""

    def __init__(self, replicas: ReplicaManager, diskless: DisklessTopics, partitions: Partitions) -> None:
        self._replicas, self._diskless, self._partitions = replicas, diskless, partitions

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Make every partition what the metadata says. Called on the event loop, in order."""
        self._replicas.apply(delta, image)
        self._diskless.apply(delta, image)
        for topic in delta.deleted_topics.values():
            self._partitions.traffic.forget(topic.name, topic.topic_id.bytes)
