"""Makes tiered storage follow the replicas of this broker.

By level, not by edge: at every change of a replica, its state in the metadata is compared with the state that was last
passed to `RemoteLogManager`. Partitions of topics that were deleted while no broker noticed, and of topics that are not
tiered any more, are found by comparing the remote log metadata with the cluster's metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

from strandline.clock import Clock
from strandline.config import TopicConfig
from strandline.hybrid.remote.subscriptions import MetadataSubscriptions, MetadataUser
from strandline.metadata import MetadataLoader
from strandline.model import INTERNAL_TOPICS, REMOTE_LOG_METADATA_TOPIC, LeaderEpoch, TopicIdPartition
from strandline.remote.manager import LeaderPartition, RemoteLogManager
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageError
from strandline.remote.values import RemotePartitionDeleteState
from strandline.replication import Partition
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

_NEVER_TIERED: Final = INTERNAL_TOPICS | {REMOTE_LOG_METADATA_TOPIC}


class _Led(NamedTuple):
    """The state of a partition that was last passed to `RemoteLogManager`."""

    leader_epoch: LeaderEpoch
    config: TopicConfig


def _no_suffixes(partition: TopicIdPartition) -> int:
    """For a broker without partitions that are diskless in part."""
    return 0


async def _tell_nobody(partition: Partition) -> None:
    """For such a broker, too: no other one serves its partitions."""


class TieredReplicas:
    """`ReplicaListener` for tiered storage."""

    def __init__(
        self,
        manager: RemoteLogManager,
        metadata: RemoteLogMetadataManager,
        loader: MetadataLoader,
        *,
        clock: Clock,
        look_again_s: float,
        on_need: Callable[[], None],
        suffix_bytes: Callable[[TopicIdPartition], int] = _no_suffixes,
        tell_log_start: Callable[[Partition], Awaitable[None]] = _tell_nobody,
        subscriptions: MetadataSubscriptions | None = None,
    ) -> None:
        """`on_need` is called, possibly many times, when there is a tiered replica.

        `suffix_bytes` is the size of what follows the local log of a partition elsewhere; `tell_log_start` tells other
        brokers that serve it where it starts. `subscriptions` are those of the whole broker, if other components need
        remote log metadata too.
        """
        self._manager = manager
        self._metadata = metadata
        self._loader = loader
        self._subscriptions = subscriptions or MetadataSubscriptions(metadata)
        self._clock = clock
        self._look_again_s = look_again_s
        self._on_need = on_need
        self._suffix_bytes, self._tell_log_start = suffix_bytes, tell_log_start
        self._led: dict[TopicIdPartition, _Led] = {}
        self._followed: set[TopicIdPartition] = set()
        self._untiered: dict[TopicIdPartition, Partition] = {}
        """Led partitions that are not tiered and should have nothing in remote storage."""
        self._deleted: set[TopicIdPartition] = set()

    def replica_changed(self, partition: Partition) -> None:
        """A replica leads, follows, or has other settings."""
        key = partition.id
        is_going_on = partition.is_leader and key in self._led and self._manager.is_withdrawing(key)
        if not _concerns(partition) and not is_going_on:
            self._let_go(key)
            if partition.is_leader and partition.topic_partition.topic not in _NEVER_TIERED:
                self._untiered[key] = partition
            return
        self._untiered.pop(key, None)
        self._on_need()
        if partition.is_leader:
            self._lead(key, partition)
        elif key not in self._followed:
            self._stop_leading(key)
            self._followed.add(key)
            self._subscriptions.remove(key, MetadataUser.LEADER)
            self._subscriptions.add(key, MetadataUser.FOLLOWER)

    def replica_removed(self, partition: Partition, *, is_deleted: bool) -> None:
        """A replica was removed. If its topic was deleted, its remote segments are deleted too."""
        key = partition.id
        self._untiered.pop(key, None)
        if is_deleted and self._led.pop(key, None) is not None:
            self._delete(key)
        else:
            self._let_go(key)

    def _lead(self, key: TopicIdPartition, partition: Partition) -> None:
        now, before = _Led(partition.leader_epoch, partition.log.config), self._led.get(key)
        self._led[key] = now
        if before is None or before.leader_epoch != now.leader_epoch:
            self._followed.discard(key)
            self._subscriptions.add(key, MetadataUser.LEADER)
            self._manager.lead(
                LeaderPartition(
                    partition=key,
                    log=partition.log,
                    leader_epoch=now.leader_epoch,
                    suffix_bytes=partial(self._suffix_bytes, key),
                    tell_log_start=partial(self._tell_log_start, partition),
                )
            )
        elif before.config != now.config:
            self._manager.reconsider(key)

    def _stop_leading(self, key: TopicIdPartition) -> None:
        if self._led.pop(key, None) is not None:
            self._manager.stop(key)

    def _let_go(self, key: TopicIdPartition) -> None:
        self._untiered.pop(key, None)
        if key in self._led or key in self._followed:
            self._stop_leading(key)
            self._followed.discard(key)
            self._subscriptions.remove(key, MetadataUser.LEADER)
            self._subscriptions.remove(key, MetadataUser.FOLLOWER)

    # Topics that were deleted, or are not tiered any more

    async def run(self) -> None:
        """Look regularly for partitions that should have nothing in remote storage."""
        while True:
            await self._clock.sleep(self._look_again_s)
            try:
                self._take_up_withdrawals()
                await self._delete_gone()
            except (SqlError, RemoteStorageError) as error:
                logger.warning("deleted topics cannot be determined, trying again: %s", error)

    def _take_up_withdrawals(self) -> None:
        """Go on with deletions that began when tiering of a topic was switched off, and that a restart interrupted."""
        for key in self._metadata.partitions():
            partition = self._untiered.get(key)
            if partition is not None and self._manager.has_leftovers(key):
                del self._untiered[key]
                self._lead(key, partition)

    async def _delete_gone(self) -> None:
        if self._gone():
            await self._loader.catch_up()  # a topic that this broker does not know yet must not look deleted
            for key in self._gone():
                logger.info("%s was deleted; its remote segments are being deleted", key)
                self._delete(key)

    def _gone(self) -> list[TopicIdPartition]:
        topics = self._loader.image.topics_by_id
        known = self._metadata.partitions()
        self._deleted.intersection_update(known)
        gone = (key for key in known if key.topic_id not in topics and key not in self._deleted)
        return [key for key in gone if self._metadata.is_ready(key) and not self._is_finished(key)]

    def _is_finished(self, key: TopicIdPartition) -> bool:
        state = self._metadata.partition_delete_state(key)
        return state is RemotePartitionDeleteState.DELETE_PARTITION_FINISHED

    def _delete(self, key: TopicIdPartition) -> None:
        """Once: `RemoteLogManager` goes on until it is done, and needs the remote log metadata until then."""
        self._deleted.add(key)
        self._manager.delete(key)


def _concerns(partition: Partition) -> bool:
    """Whether a replica has, or may still have, something in remote storage."""
    config = partition.log.config
    wanted = config.remote_storage_enable or config.remote_log_delete_on_disable
    return wanted and partition.topic_partition.topic not in _NEVER_TIERED
