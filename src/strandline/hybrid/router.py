"""Finds the partition a request means, whatever tier it lives in, and reads it from there.

A classic partition costs what it costs without diskless and tiered topics: one look into a dictionary. What its log
does not have any more is asked of remote storage (`tiered_reads`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from strandline.diskless.values import DisklessRead
from strandline.errors import OffsetMovedToTieredStorage, StrandlineError
from strandline.hybrid.diskless_partition import DisklessPartition, PartitionRead, read_of
from strandline.hybrid.diskless_topics import DisklessTopics
from strandline.hybrid.tiered_reads import TieredRead, TieredReads
from strandline.hybrid.tiering import TieredTopics
from strandline.log import FetchIsolation, LogReadResult
from strandline.log.values import ActiveProducer
from strandline.model import LeaderEpoch, Offset, TimestampMs
from strandline.replication import Partition, ReplicaManager
from strandline.replication.offsets import FoundOffset

AnyPartition: TypeAlias = Partition | DisklessPartition
# What cannot be answered from memory.
SlowRead: TypeAlias = DisklessRead | TieredRead


class PartitionRouter:
    """The partitions of this broker for request handlers: local replicas, and diskless partitions."""

    def __init__(self, replicas: ReplicaManager, diskless: DisklessTopics, tiered: TieredTopics | None = None) -> None:
        self._replicas = replicas
        self._diskless = diskless
        self.tiered = TieredReads(tiered or TieredTopics())
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

    # Reading

    def read_now(
        self,
        partition: AnyPartition,
        offset: Offset,
        max_bytes: int,
        *,
        isolation: FetchIsolation,
        min_one_message: bool,
    ) -> LogReadResult | PartitionRead | StrandlineError | SlowRead:
        """What is at hand, from the tier that has the offset; or what to ask `read` for.

        Raises StrandlineError; what remote storage said is an answer, as it is for `read`.
        """
        try:
            return partition.read(offset, max_bytes, isolation=isolation, min_one_message=min_one_message)
        except OffsetMovedToTieredStorage:
            # Followers do not copy what is remote: they are told, and begin where the local log does.
            if isolation is FetchIsolation.LOG_END or not isinstance(partition, Partition):
                raise
        return self.tiered.read_now(partition, offset, max_bytes, isolation=isolation, min_one_message=min_one_message)

    async def read(
        self,
        requests: Sequence[SlowRead],
        *,
        max_bytes: int,
        isolation: FetchIsolation,
        min_one_message: bool,
        is_wanted: Callable[[], bool],
    ) -> Sequence[PartitionRead | StrandlineError]:
        """What could not be answered from memory: each kind together and fairly, both at the same time.

        What is not wanted any more when it is there is kept for others, and not given.
        """
        diskless = [request for request in requests if isinstance(request, DisklessRead)]
        tiered = [request for request in requests if not isinstance(request, DisklessRead)]
        share = max_bytes * len(diskless) // len(requests)
        # One first batch may exceed the limits; the diskless reader always takes that right.
        of_diskless, of_tiered = await asyncio.gather(
            self._read_diskless(diskless, max(share, 1), isolation),
            self.tiered.read(
                tiered,
                max_bytes - share,
                min_one_message=min_one_message and not diskless,
                is_wanted=is_wanted,
            ),
        )
        answers = {id(request): answer for request, answer in zip(diskless, of_diskless, strict=True)}
        answers |= {id(request): answer for request, answer in zip(tiered, of_tiered, strict=True)}
        return [answers[id(request)] for request in requests]

    async def _read_diskless(
        self, requests: Sequence[DisklessRead], max_bytes: int, isolation: FetchIsolation
    ) -> Sequence[PartitionRead | StrandlineError]:
        if not requests:
            return ()
        found = await self._diskless.opened_tier.reader.read(requests, max_bytes=max_bytes)
        return [result.error or read_of(result, isolation) for result in found]

    # Questions that a classic partition answers at once, and a diskless one after asking

    async def list_offset(
        self,
        topic: str,
        partition: int,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int = 0,
    ) -> FoundOffset:
        """ListOffsets. The client waits `timeout_ms` for remote storage; 0: as long as the setting says.

        Raises StrandlineError.
        """
        found = self.find(topic, partition)
        if isinstance(found, Partition):
            if found.log.is_remote and timestamp >= 0:
                remote = await self.tiered.offset_by_timestamp(
                    found,
                    timestamp,
                    isolation=isolation,
                    current_leader_epoch=current_leader_epoch,
                    timeout_ms=timeout_ms,
                )
                if remote is not None:
                    return remote
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
