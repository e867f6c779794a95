"""Whose remote log metadata this broker reads: that of a partition, as long as somebody here needs it."""

from __future__ import annotations

import enum

from strandline.model import TopicIdPartition
from strandline.remote.ports import RemoteLogMetadataManager


class MetadataUser(enum.Enum):
    """Who needs the remote log metadata of a partition."""

    LEADER = enum.auto()
    """The leader of a replica, which writes it."""
    CONVERTED_LEADER = enum.auto()
    """The leader of a partition with converted records, which writes it too. It may be without a replica."""
    FOLLOWER = enum.auto()
    """A replica that may become the leader."""
    READER = enum.auto()
    """Reads of converted records, which any broker serves."""


class MetadataSubscriptions:
    """Tells the `RemoteLogMetadataManager` what the users of a partition add up to. Lives on the event loop."""

    def __init__(self, metadata: RemoteLogMetadataManager) -> None:
        self._metadata = metadata
        self._users: dict[TopicIdPartition, set[MetadataUser]] = {}

    def add(self, partition: TopicIdPartition, user: MetadataUser) -> None:
        """Somebody needs the metadata of a partition from now on. May be repeated."""
        users = self._users.setdefault(partition, set())
        users.add(user)
        self._tell(partition, users)

    def remove(self, partition: TopicIdPartition, user: MetadataUser) -> None:
        """Somebody does not need it any more. Harmless if that is known."""
        users = self._users.get(partition, set())
        if user not in users:
            return
        users.discard(user)
        if not users:
            del self._users[partition]
        self._tell(partition, users)

    def _tell(self, partition: TopicIdPartition, users: set[MetadataUser]) -> None:
        if users & {MetadataUser.LEADER, MetadataUser.CONVERTED_LEADER}:
            self._metadata.on_partition_leadership_changes([partition], [])
        elif users:
            self._metadata.on_partition_leadership_changes([], [partition])
        else:
            self._metadata.on_stop_partitions([partition])
