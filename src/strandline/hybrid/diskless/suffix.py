"""A diskless partition that was classic before, on a broker that does not have its log."""

from __future__ import annotations

from uuid import UUID

from strandline.clock import Clock
from strandline.controlplane.values import MigrationState
from strandline.diskless.values import DisklessRead
from strandline.errors import NotLeaderOrFollower, StrandlineError
from strandline.hybrid.diskless.converted import ConvertedLog
from strandline.hybrid.diskless.limits import TopicLimits
from strandline.hybrid.diskless.partition import DisklessPartition
from strandline.hybrid.diskless.reads import DisklessReads, RoutedRead
from strandline.hybrid.diskless.remote_prefix import RemotePrefix
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.partition import FinalRead, PendingRead
from strandline.model import NO_EPOCH, NO_TIMESTAMP, LeaderEpoch, Offset, TimestampMs, TopicPartition
from strandline.reads import EARLIEST, LATEST, MAX_TIMESTAMP, FetchIsolation, FoundOffset, ReadResult, WholeLog


class DisklessSuffix(DisklessPartition):
    """Takes appends and serves reads from its boundary B0 on, as every broker does.

    What is below is served by the broker that has the log, which is named as the leader. This one serves it too once
    all of it is known to be in remote storage, and may stand in for the leader then; until then clients that ask for it
    get NOT_LEADER_OR_FOLLOWER. Once the log start has reached the boundary, nothing is left below it.
    """

    __slots__ = ("is_log_lost", "is_whole", "prefix", "state")

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        tier: DisklessTier,
        *,
        prefix: RemotePrefix,
        reads: DisklessReads,
        converted: ConvertedLog,
        limits: TopicLimits,
        clock: Clock,
    ) -> None:
        super().__init__(topic_partition, topic_id, tier, reads=reads, converted=converted, limits=limits, clock=clock)
        self.prefix = prefix
        """What is below B0, in remote storage."""
        self.is_whole = False
        """Whether any broker can serve all of the log. `PrefixWatch` finds out, `DisklessPartitions` notes it."""
        self.is_log_lost = False
        """Whether this broker should have the log, and has not: no other broker can delete what is below B0."""
        self.state = MigrationState.MIGRATING
        """The control plane's, as far as it is known here."""

    def close(self, error: StrandlineError) -> None:
        self.prefix.close()
        super().close(error)

    def _check_prefix(self) -> None:
        if self.has_prefix and not self.is_whole:
            raise NotLeaderOrFollower(
                f"{self.topic_partition} is diskless from offset {self.boundary} on; what is below is served by the "
                "broker that has its log, which is its leader. Others serve it when all of it is in remote storage."
            )

    def read_now(
        self,
        offset: Offset,
        max_bytes: int,
        *,
        isolation: FetchIsolation,
        min_one_message: bool,
        whole: WholeLog | None = None,
    ) -> ReadResult | FinalRead | PendingRead:
        if isolation is FetchIsolation.LOG_END:
            if offset < self.boundary:
                raise NotLeaderOrFollower(f"The log of {self.topic_partition} is replicated from its leader alone.")
            return ReadResult(None, self.boundary, self.boundary, self.log_start_offset, None)
        if offset < self.boundary:
            self._check_prefix()
            request = DisklessRead(self.id, offset, max_bytes, isolation)
            return self._reads.begin(RoutedRead(request, self.prefix, whole), min_one_message=min_one_message)
        return super().read_now(offset, max_bytes, isolation=isolation, min_one_message=min_one_message, whole=whole)

    async def list_offset(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        current_leader_epoch: LeaderEpoch = NO_EPOCH,
        timeout_ms: int = 0,
    ) -> FoundOffset:
        """The first record by time is the one with the smallest offset: the prefix has it, or what follows."""
        before: FoundOffset | None = None
        if timestamp != LATEST and self.has_prefix:
            self.check_leader(current_leader_epoch)
            self._check_prefix()
            if timestamp == EARLIEST:
                return await self._earliest()
            before = await self._in_prefix(timestamp, timeout_ms)
            if before is not None and timestamp != MAX_TIMESTAMP:
                return before
        found = await super().list_offset(
            timestamp, isolation=isolation, current_leader_epoch=current_leader_epoch, timeout_ms=timeout_ms
        )
        return found if before is None or found.timestamp > before.timestamp else before

    async def _earliest(self) -> FoundOffset:
        log = await self._tier.lookups.log(self.id)
        self._tier.reader.learn(log)
        if log.log_start_offset >= self.boundary:
            return await super().list_offset(EARLIEST)
        epoch = self.prefix.epoch_if_known(log.log_start_offset)
        return FoundOffset(NO_TIMESTAMP, log.log_start_offset, NO_EPOCH if epoch is None else epoch)

    async def _in_prefix(self, timestamp: TimestampMs, timeout_ms: int) -> FoundOffset | None:
        """A record of the prefix, by time; None if it has none, or for special timestamps."""
        if timestamp < 0 and timestamp != MAX_TIMESTAMP:
            return None
        await self.prefix.wait_holds(max(self.log_start_offset, 0), self._clock)
        tier = self.prefix.tier
        async with tier.searching(self.topic_partition, timeout_ms):
            if timestamp == MAX_TIMESTAMP:
                return await tier.reader.offset_of_max_timestamp(self.id, self.prefix)
            return await tier.reader.offset_by_timestamp(self.id, self.prefix, timestamp)

    async def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch = NO_EPOCH
    ) -> tuple[LeaderEpoch, Offset]:
        self._check_prefix()
        ended = self.prefix.end_of_epoch(epoch) if self.has_prefix else None
        if ended is None:
            return await super().end_offset_for_epoch(epoch, current_leader_epoch=current_leader_epoch)
        self.check_leader(current_leader_epoch)
        return ended

    async def delete_records(self, before: Offset) -> Offset:
        if not self.is_log_lost:
            self._check_prefix()
        return await super().delete_records(before)
