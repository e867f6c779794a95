"""Which diskless partitions this broker leads, as the metadata says now."""

from __future__ import annotations

from strandline.errors import NotLeaderOrFollower, UnknownTopicOrPartition
from strandline.metadata import Images
from strandline.model import BrokerId, LeaderEpoch, TopicIdPartition


class LedPartitions:
    """Asked before and after every step of a leader: leadership may end at any time."""

    def __init__(self, images: Images, node_id: BrokerId) -> None:
        self._images, self.node_id = images, node_id

    def epoch_of(self, partition: TopicIdPartition) -> LeaderEpoch | None:
        """The leader epoch in which this broker leads a partition; None if it does not."""
        topic = self._images.image.topics_by_id.get(partition.topic_id)
        if topic is None or not 0 <= partition.partition < len(topic.partitions):
            return None
        image = topic.partitions[partition.partition]
        return image.leader_epoch if image.leader == self.node_id else None

    def check(self, partition: TopicIdPartition) -> LeaderEpoch:
        """The same. Raises NotLeaderOrFollower, or UnknownTopicOrPartition if there is no such partition."""
        topic = self._images.image.topics_by_id.get(partition.topic_id)
        if topic is None or topic.name != partition.topic or not 0 <= partition.partition < len(topic.partitions):
            raise UnknownTopicOrPartition(f"There is no partition {partition}: its topic was deleted.")
        epoch = self.epoch_of(partition)
        if epoch is None:
            leader = topic.partitions[partition.partition].leader
            raise NotLeaderOrFollower(
                f"Broker {self.node_id} does not lead {partition.topic_partition}, "
                + (f"but broker {leader} does." if leader >= 0 else "and nobody does at the moment.")
            )
        return epoch
