"""Tiered storage of one broker, once it is open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.clock import Clock
from strandline.config import TierSettings
from strandline.errors import RequestTimedOut, StrandlineError
from strandline.health import HealthStatus
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.hybrid.remote.ports import FindSegment
from strandline.hybrid.remote.status import TieredStatus
from strandline.hybrid.remote.subscriptions import MetadataSubscriptions, MetadataUser
from strandline.model import BrokerId, LeaderEpoch, Offset, TimestampMs, TopicIdPartition, TopicPartition
from strandline.reads import NOTHING, FetchIsolation, FoundOffset, ReadResult, WholeLog
from strandline.remote.indexes import RemoteIndexCache
from strandline.remote.manager import LogHistory, PartitionTierStatus, PrefixCoverage, PrefixStatus, RemoteLogManager
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.quota import RateQuota
from strandline.remote.reader import RemoteLogReader, RemoteRead
from strandline.remote.storage import DeadlineStorage
from strandline.remote.turns import gathered
from strandline.remote.values import RemoteLogSegmentMetadata
from strandline.replication import Partition, last_fetchable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteTier:
    """What tiered partitions use, and what works for them in the background. A `TieredStorage` and a `TierReader`."""

    storage: DeadlineStorage
    metadata: RemoteLogMetadataManager
    indexes: RemoteIndexCache
    reader: RemoteLogReader
    manager: RemoteLogManager
    fetch_quota: RateQuota
    prefixes: PrefixCoverage
    on_need: Callable[[], None]
    """There is something to tier: makes sure that the topic of remote log metadata exists."""
    subscriptions: MetadataSubscriptions

    is_open: ClassVar[bool] = True
    always_gives_a_batch: ClassVar[bool] = False

    def opened(self, why: Callable[[], str]) -> RemoteTier:
        """See `TieredStorage`."""
        return self

    def follow(self, settings: TierSettings) -> None:
        """See `TieredStorage`."""
        self.manager.change_copy_quota(settings.remote_log_manager_copy_max_bytes_per_second)
        self.fetch_quota.change(settings.remote_log_manager_fetch_max_bytes_per_second)
        self.reader.limits = replace(
            self.reader.limits,
            fetch_max_wait_ms=settings.remote_fetch_max_wait_ms,
            list_offsets_timeout_ms=settings.remote_list_offsets_request_timeout_ms,
        )

    # Segments

    def prefix_status(self, replica: Partition, boundary: Offset) -> PrefixStatus | None:
        """See `RemoteHoldings`."""
        return self.prefixes.status(replica.id, replica.log, boundary)

    def copy_now(self, partition: TopicIdPartition) -> None:
        """See `RemoteHoldings`."""
        self.manager.copy_now(partition)

    def finder(self, replica: Partition) -> FindSegment:
        """See `RemoteHoldings`."""
        log, metadata = replica.log, self.metadata
        history = LogHistory(log.epochs.entries, log.log_end_offset)

        def find(offset: Offset) -> RemoteLogSegmentMetadata | None:
            epoch = log.epoch_for_offset(offset)
            found = None if epoch is None else metadata.remote_log_segment_metadata(replica.id, epoch, offset)
            return found if found is not None and found in history else None

        return find

    async def segments_of(self, partition: TopicIdPartition, clock: Clock) -> Sequence[RemoteLogSegmentMetadata]:
        """See `RemoteHoldings`."""
        if not self.metadata.is_ready(partition):
            return ()
        return await gathered(clock, self.metadata.iter_remote_log_segments(partition))

    # Figures

    @property
    def url(self) -> str:
        """See `RemoteFigures`."""
        return self.storage.url

    def remote_bytes(self, replica: Partition) -> int:
        """See `RemoteFigures`."""
        if not self.metadata.is_ready(replica.id):
            return 0
        return self.metadata.remote_log_summary(replica.id).finished_bytes

    def status(self) -> TieredStatus:
        """See `RemoteFigures`."""
        return TieredStatus(
            manager=self.manager.status(),
            reader=self.reader.status(),
            storage=self.storage.status(),
            indexes=self.indexes.status(),
        )

    async def partition_rows(self, led: Iterable[TopicIdPartition]) -> Sequence[PartitionTierStatus]:
        """See `RemoteFigures`."""
        found = [await self.manager.partition_status(partition) for partition in led]
        return sorted(filter(None, found), key=lambda row: row.partition.partition)

    def health(self) -> Sequence[HealthStatus]:
        """See `RemoteFigures`."""
        return (self.storage.health.status(),)

    def trouble_of(self, broker: BrokerId) -> str | None:
        """See `RemoteFigures`."""
        status = self.storage.health.status()
        return f"{status.what[:1].upper()}{status.what[1:]} is away. {status.problem}" if status.is_away else None

    # Reading

    def read_metadata_of(self, partition: TopicIdPartition) -> None:
        """Reads need the remote log metadata of a partition from now on, whether a replica of it is here or not."""
        self.subscriptions.add(partition, MetadataUser.READER)

    def stop_reading_metadata_of(self, partition: TopicIdPartition) -> None:
        """Reads do not need it any more."""
        self.subscriptions.remove(partition, MetadataUser.READER)

    def read_now(
        self,
        replica: Partition,
        offset: Offset,
        max_bytes: int,
        *,
        isolation: FetchIsolation,
        min_one_message: bool,
        whole: WholeLog | None = None,
    ) -> FinalRead | PendingRead:
        """See `RemoteReads`."""
        request = RemoteRead(replica.id, replica.log, offset, max_bytes, isolation, whole)
        found = self.reader.read_now(request, min_one_message=min_one_message)
        max_wait_s = self.reader.limits.fetch_max_wait_ms / 1000
        return PendingRead(self, request, max_wait_s) if found is None else FinalRead(found, max_wait_s)

    async def read(
        self,
        requests: Sequence[RemoteRead],
        *,
        max_bytes: int,
        min_one_message: bool,
        is_wanted: Callable[[], bool],
    ) -> Sequence[ReadResult | StrandlineError]:
        """See `TierReader`."""
        return await self.reader.read(
            requests, max_bytes=max_bytes, min_one_message=min_one_message, is_wanted=is_wanted
        )

    async def offset_by_timestamp(
        self,
        replica: Partition,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int,
    ) -> FoundOffset | None:
        """See `RemoteReads`."""
        replica.check_leader(current_leader_epoch)
        log = replica.log
        found: FoundOffset | None = None
        searched = log.log_start_offset
        async with self.searching(replica.topic_partition, timeout_ms):
            # Segments that leave the disk during the search would be in neither search: look again.
            while found is None and searched < log.local_log_start_offset:
                searched = log.local_log_start_offset
                found = await self.reader.offset_by_timestamp(replica.id, log, timestamp)
        replica.check_leader(current_leader_epoch)
        if found is None:
            return None
        return found if found.offset < last_fetchable(log, isolation) else NOTHING

    async def offset_of_max_timestamp(
        self, replica: Partition, *, current_leader_epoch: LeaderEpoch, timeout_ms: int
    ) -> FoundOffset | None:
        """See `RemoteReads`."""
        replica.check_leader(current_leader_epoch)
        log = replica.log
        found: FoundOffset | None = None
        searched = log.log_start_offset
        async with self.searching(replica.topic_partition, timeout_ms):
            while searched < log.local_log_start_offset:  # again if segments have left the disk meanwhile
                searched = log.local_log_start_offset
                found = await self.reader.offset_of_max_timestamp(replica.id, log)
        replica.check_leader(current_leader_epoch)
        return found

    @asynccontextmanager
    async def searching(self, partition: TopicPartition, timeout_ms: int) -> AsyncIterator[None]:
        """A search of remote storage. Raises RequestTimedOut when its time is over."""
        limit_ms = timeout_ms if timeout_ms > 0 else self.reader.limits.list_offsets_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                yield
        except TimeoutError as error:
            raise RequestTimedOut(f"{partition}: remote storage was not searched within {limit_ms} ms.") from error
