"""What a replica does while its broker does not lead the partition: it refuses what only a leader may do."""

from __future__ import annotations

from strandline.errors import NotLeaderOrFollower
from strandline.log import AppendOrigin
from strandline.model import NO_OFFSET, BrokerId, Offset, TopicPartition
from strandline.replication.append import Append, Appended


def does_not_lead(node_id: BrokerId, topic_partition: TopicPartition) -> NotLeaderOrFollower:
    """The refusal of a replica that does not lead."""
    return NotLeaderOrFollower(f"Broker {node_id} does not lead {topic_partition}.")


class FollowerRole:
    """The role of a replica whose leader is another broker, of one without a leader, and of one that is removed.

    What a follower copies is appended by `replication.fetching`, which knows its leader. The methods here are those of
    `LeaderRole` that are asked of a replica whatever its role is.
    """

    __slots__ = ("_node_id", "_topic_partition", "answers_at_once")

    def __init__(self, node_id: BrokerId, topic_partition: TopicPartition) -> None:
        self._node_id, self._topic_partition = node_id, topic_partition
        self.answers_at_once = False

    def append(self, append: Append) -> Appended:
        """Raises NotLeaderOrFollower."""
        raise does_not_lead(self._node_id, self._topic_partition)

    def append_now(self, records: memoryview, origin: AppendOrigin = AppendOrigin.CLIENT) -> Offset:
        """NO_OFFSET: `append` has the error."""
        return NO_OFFSET

    def append_own_now(self, records: memoryview) -> Offset:
        """NO_OFFSET, as well."""
        return NO_OFFSET

    def advance(self) -> bool:
        """False: the high watermark of a follower is what its leader says."""
        return False
