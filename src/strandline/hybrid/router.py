"""Finds the partition a request means, whatever tier it lives in.

A classic partition costs what it costs without diskless topics: one look into a dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from strandline.diskless.values import DisklessRead, DisklessReadResult
from strandline.hybrid.diskless_partition import DisklessPartition
from strandline.hybrid.diskless_topics import DisklessTopics
from strandline.log import FetchIsolation
from strandline.log.values import ActiveProducer
from strandline.model import LeaderEpoch, Offset, TimestampMs
from strandline.replication import Partition, ReplicaManager
from strandline.replication.offsets import FoundOffset

AnyPartition: TypeAlias = Partition | DisklessPartition


class PartitionRouter:
    """The partitions of this broker for request handlers: local replicas, and diskless partitions."""

    def __init__(self, replicas: ReplicaManager, diskless: DisklessTopics) -> None:
        self._replicas = replicas
        self._diskless = diskless
        self._local = replicas.by_key
        self._elsewhere = diskless.by_key
        self.topic_name = replicas.topic_name

    def find(self, topic: str, partition: int) -> AnyPartition:
        """The partition. Raises the error that tells a client what to do instead."""
        found: AnyPartition | None = self._local.get((topic, partition))
        if found is not None:
            return found
        found = self._elsewhere.get((topic, partition))
        if found is not None:
            return found
        raise self._diskless.why_missing(topic, partition) or self._replicas.why_missing(topic, partition)

    # Questions that a classic partition answers at once, and a diskless one after asking

    async def read(self, requests: Sequence[DisklessRead], *, max_bytes: int) -> Sequence[DisklessReadResult]:
        """What diskless partitions could not answer from memory, read together and fairly."""
        return await self._diskless.opened_tier.reader.read(requests, max_bytes=max_bytes)

    async def list_offset(
        self,
        topic: str,
        partition: int,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
    ) -> FoundOffset:
        """ListOffsets. Raises StrandlineError."""
        found = self.find(topic, partition)
        if isinstance(found, Partition):
            return found.list_offset(timestamp, isolation=isolation, current_leader_epoch=current_leader_epoch)
        return await found.list_offset(timestamp, current_leader_epoch=current_leader_epoch)

    async def end_offset_for_epoch(
        self, topic: str, partition: int, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch
    ) -> tuple[LeaderEpoch, Offset]:
        """OffsetForLeaderEpoch. Raises StrandlineError."""
        found = self.find(topic, partition)
        if isinstance(found, Partition):
            return found.end_offset_for_epoch(epoch, current_leader_epoch=current_leader_epoch)
        return await found.end_offset_for_epoch(epoch, current_leader_epoch=current_leader_epoch)

    async def delete_records(self, topic: str, partition: int, before: Offset) -> Offset:
        """DeleteRecords: the low watermark afterwards. Raises StrandlineError."""
        found = self.find(topic, partition)
        if isinstance(found, Partition):
            return found.delete_records(before)
        return await found.delete_records(before)

    async def active_producers(self, topic: str, partition: int) -> Sequence[ActiveProducer]:
        """DescribeProducers. Raises StrandlineError."""
        found = self.find(topic, partition)
        if isinstance(found, Partition):
            found.check_leader()
            return found.log.active_producers()
        return await found.active_producers()
