"""What a replica of this broker has of a log: in local segments, and its older ones in remote storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from strandline.errors import OffsetMovedToTieredStorage, OffsetOutOfRange, StrandlineError
from strandline.hybrid.layout import Extent, PartitionLayout, Tier, replica_layout
from strandline.hybrid.parts.replica_appends import ReplicaAppends
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.hybrid.remote.topics import TieredTopics
from strandline.model import NO_EPOCH, NO_OFFSET, LeaderEpoch, Offset, TimestampMs, TopicPartition
from strandline.reads import NOTHING, ActiveProducer, FetchIsolation, FoundOffset, ReadResult, Watcher, WholeLog
from strandline.replication import Partition


class ReplicaPart:
    """A `NewestPart`."""

    __slots__ = ("_has_remote", "_layout", "_local_start", "_start", "_tiered", "appends", "replica", "settled_epoch")

    older: ClassVar[None] = None

    def __init__(self, replica: Partition, tiered: TieredTopics) -> None:
        self.replica = replica
        self.appends = ReplicaAppends(replica)
        self.settled_epoch: LeaderEpoch = NO_EPOCH
        """The leader epoch in which this broker serves the partition as a classic one, before any switch."""
        self._tiered = tiered
        # The layout, and what it was made from, which changes when segments are deleted.
        self._start = self._local_start = NO_OFFSET
        self._has_remote = False
        self._layout = PartitionLayout()

    @property
    def topic_partition(self) -> TopicPartition:
        return self.replica.topic_partition

    @property
    def leader_epoch(self) -> LeaderEpoch:
        return self.replica.leader_epoch

    def check_leader(self, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        self.replica.check_leader(current_leader_epoch)

    # Reading

    @property
    def layout(self) -> PartitionLayout:
        log = self.replica.log
        offsets = log.offsets
        start, local_start, has_remote = offsets.start, offsets.local_start, log.is_remote
        if start != self._start or local_start != self._local_start or has_remote is not self._has_remote:
            self._start, self._local_start, self._has_remote = start, local_start, has_remote
            remote = RemoteSegments(self.replica, self._tiered) if has_remote else None
            self._layout = replica_layout(Extent(Tier.LOCAL, LocalSegments(self.replica), local_start), start, remote)
        return self._layout

    def refusal(self, offset: Offset) -> StrandlineError:
        replica = self.replica
        start = replica.log.log_start_offset
        return OffsetOutOfRange(f"Offset {offset} of {replica.topic_partition} is below the log start offset {start}.")

    @property
    def log_start_offset(self) -> Offset:
        return self.replica.log.log_start_offset

    def without_records(self) -> ReadResult:
        log = self.replica.log
        return ReadResult(None, log.high_watermark, log.last_stable_offset, log.log_start_offset, None)

    def stands_at(self, high_watermark: Offset, log_start: Offset) -> bool:
        replica = self.replica
        log = replica.log
        offsets = log.offsets
        return (
            offsets.high_watermark == high_watermark
            and offsets.start == log_start
            and replica.is_leader
            and not replica.is_sealed
            and not log.is_offline
        )

    @property
    def keeps_watchers(self) -> bool:
        """Not behind a seal: there, watchers are notified of changes of the suffix, for which the database is asked."""
        return not self.replica.is_sealed

    def watch(self, watcher: Watcher) -> None:
        self.replica.watch(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self.replica.unwatch(watcher)

    # Queries

    async def find(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int,
    ) -> FoundOffset:
        """Remote segments are older than the local log: a search by time begins there."""
        replica = self.replica
        if timestamp >= 0 and len(self.layout.extents) > 1:
            found = await self._tiered.storage.offset_by_timestamp(
                replica,
                timestamp,
                isolation=isolation,
                current_leader_epoch=current_leader_epoch,
                timeout_ms=timeout_ms,
            )
            if found is not None:
                return found
        return replica.list_offset(timestamp, isolation=isolation, current_leader_epoch=current_leader_epoch)

    async def newest_remote_record(self, *, timeout_ms: int) -> FoundOffset:
        """The first record with the largest timestamp among those in remote storage only."""
        if len(self.layout.extents) < 2:
            return NOTHING
        storage = self._tiered.storage
        found = await storage.offset_of_max_timestamp(
            self.replica, current_leader_epoch=NO_EPOCH, timeout_ms=timeout_ms
        )
        return NOTHING if found is None else found

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        return self.replica.log.end_offset_for_epoch(epoch)

    async def end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        return self.replica.log.end_offset_for_epoch(epoch)

    async def delete_records(self, before: Offset) -> Offset:
        return self.replica.delete_records(before)

    async def active_producers(self) -> Sequence[ActiveProducer]:
        self.replica.check_leader()
        return self.replica.log.active_producers()


class LocalSegments:
    """The `Engine` of what a replica's log has on this broker's disks."""

    __slots__ = ("_replica",)

    def __init__(self, replica: Partition) -> None:
        self._replica = replica

    def read_now(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> ReadResult:
        return self._replica.log.read(offset, max_bytes, isolation=isolation, min_one_message=min_one_message)

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        replica = self._replica
        # A fetch that watches a sealed log may have to read records behind it, which another part has.
        if not replica.is_leader or replica.is_sealed:
            return None
        return replica.log.available_bytes(offset, isolation)


class RemoteSegments:
    """The `Engine` of what a replica's log has in remote storage only."""

    __slots__ = ("_replica", "_tiered")

    def __init__(self, replica: Partition, tiered: TieredTopics) -> None:
        self._replica, self._tiered = replica, tiered

    def read_now(
        self,
        offset: Offset,
        max_bytes: int,
        *,
        isolation: FetchIsolation,
        min_one_message: bool,
        whole: WholeLog | None = None,
    ) -> FinalRead | PendingRead:
        """With `whole`, the log is only the older part of a partition's: see `TieredStorage.read_now`."""
        replica = self._replica
        if isolation is FetchIsolation.LOG_END:  # followers do not copy remote segments
            raise OffsetMovedToTieredStorage(
                f"Offset {offset} of {replica.topic_partition} is in remote storage; the local log starts at "
                f"{replica.log.local_log_start_offset}."
            )
        return self._tiered.storage.read_now(
            replica, offset, max_bytes, isolation=isolation, min_one_message=min_one_message, whole=whole
        )

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        return None
