"""Of which partitions this broker reads the remote log metadata: of those that a component here needs."""

from __future__ import annotations

import enum
from collections.abc import Set
from typing import Final

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


_REPLICAS: Final = frozenset({MetadataUser.LEADER, MetadataUser.FOLLOWER})


class _Role(enum.Enum):
    """What the manager is told."""

    NONE = enum.auto()
    FOLLOWER = enum.auto()
    LEADER = enum.auto()


class MetadataSubscriptions:
    """Tells the `RemoteLogMetadataManager` what the users of a partition add up to. Lives on the event loop."""

    def __init__(self, metadata: RemoteLogMetadataManager) -> None:
        self._metadata = metadata
        self._users: dict[TopicIdPartition, set[MetadataUser]] = {}

    def add(self, partition: TopicIdPartition, user: MetadataUser) -> None:
        """This user needs the metadata of a partition from now on. May be repeated.

        The manager reads to the end of the metadata when it is told, and serves nothing of the partition until then. So
        it is told only what it does not know; and again when the user of a replica is added again, since another broker
        may have led the partition, and written metadata, in between.
        """
        users = self._users.setdefault(partition, set())
        before = _role(users)
        is_repeated = user in users and user in _REPLICAS
        users.add(user)
        if is_repeated or _role(users) is not before:
            self._tell(partition, users)

    def remove(self, partition: TopicIdPartition, user: MetadataUser) -> None:
        """This user does not need it any more. Harmless if it was removed already."""
        users = self._users.get(partition, set())
        if user not in users:
            return
        before = _role(users)
        users.discard(user)
        if not users:
            del self._users[partition]
        if _role(users) is not before:
            self._tell(partition, users)

    def users(self, partition: TopicIdPartition) -> Set[MetadataUser]:
        """Who needs the metadata of a partition now. For status and tests."""
        return frozenset(self._users.get(partition, ()))

    def _tell(self, partition: TopicIdPartition, users: set[MetadataUser]) -> None:
        match _role(users):
            case _Role.LEADER:
                self._metadata.on_partition_leadership_changes([partition], [])
            case _Role.FOLLOWER:
                self._metadata.on_partition_leadership_changes([], [partition])
            case _Role.NONE:
                self._metadata.on_stop_partitions([partition])


def _role(users: Set[MetadataUser]) -> _Role:
    if users & {MetadataUser.LEADER, MetadataUser.CONVERTED_LEADER}:
        return _Role.LEADER
    return _Role.FOLLOWER if users else _Role.NONE
