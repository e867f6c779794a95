"""What is below the boundary of a partition that was switched, on a broker that does not have its log."""

from __future__ import annotations

from typing import Final

from strandline.clock import Clock
from strandline.controlplane import MigrationState
from strandline.diskless.values import DisklessRead
from strandline.errors import NotLeaderOrFollower, OffsetOutOfRange, StrandlineError
from strandline.hybrid.diskless.reads import ConvertedReads, RoutedRead
from strandline.hybrid.diskless.remote_prefix import RemotePrefix
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.layout import Extent, PartitionLayout, Tier
from strandline.hybrid.parts.diskless import DisklessPart
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.model import NO_EPOCH, NO_TIMESTAMP, LeaderEpoch, Offset, TimestampMs, TopicIdPartition, TopicPartition
from strandline.reads import EARLIEST, MAX_TIMESTAMP, AnsweredOffsets, FetchIsolation, FoundOffset, ReadResult, Watcher


class PrefixElsewhere:
    """An `OlderPart` in remote storage. The `Engine` of its one extent.

    It is served by the broker that has the log, which is named as the leader. This one serves it too once all of it is
    known to be in remote storage, and may stand in for the leader then; until then clients that ask for it get
    NOT_LEADER_OR_FOLLOWER. Once the log start has reached the boundary, nothing is left of it.
    """

    __slots__ = ("_clock", "_reads", "_tier", "is_log_lost", "is_whole", "layout", "newer", "prefix", "state")

    older: Final = None

    def __init__(
        self, prefix: RemotePrefix, newer: DisklessPart, tier: DisklessTier, reads: ConvertedReads, clock: Clock
    ) -> None:
        self.prefix = prefix
        """What remote storage has of it."""
        self.newer = newer
        self.layout = PartitionLayout((Extent(Tier.REMOTE, self, 0, prefix.end),))
        self.is_whole = False
        """Whether any broker can serve all of the log. `PrefixWatch` finds out, `DisklessPartitions` notes it."""
        self.is_log_lost = False
        """Whether this broker should have the log, and has not: no other broker can delete what is below B0."""
        self.state = MigrationState.MIGRATING
        """The control plane's, as far as it is known here."""
        self._tier, self._reads, self._clock = tier, reads, clock

    @property
    def id(self) -> TopicIdPartition:
        """Of the partition."""
        return self.newer.id

    @property
    def topic_partition(self) -> TopicPartition:
        """The name of the partition."""
        return self.newer.topic_partition

    @property
    def end(self) -> Offset:
        return self.prefix.end

    @property
    def is_gone(self) -> bool:
        return not self.newer.has_prefix

    def check_readable(self) -> None:
        if not (self.is_gone or self.is_whole):
            raise NotLeaderOrFollower(
                f"{self.topic_partition} is diskless from offset {self.end} on; what is below is served by the "
                "broker that has its log, which is its leader. Others serve it when all of it is in remote storage."
            )

    def close(self) -> None:
        self.prefix.close()

    # Reading

    def read_now(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> ReadResult | FinalRead | PendingRead:
        if isolation is FetchIsolation.LOG_END:
            raise NotLeaderOrFollower(f"The log of {self.topic_partition} is replicated from its leader alone.")
        self.check_readable()
        request = DisklessRead(self.id, offset, max_bytes, isolation)
        return self._reads.begin(RoutedRead(request, self.prefix), min_one_message=min_one_message)

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        return None

    def refusal(self, offset: Offset) -> StrandlineError:
        return OffsetOutOfRange(f"{self.topic_partition}: {offset} is not an offset.")

    # What the newer part asks

    def admit(self, records: memoryview) -> None:
        """Every broker takes appends behind the boundary."""

    def bound(self, known: AnsweredOffsets) -> AnsweredOffsets:
        """The control plane knows the ends of the whole log."""
        return known

    def end_for_followers(self) -> ReadResult:
        return ReadResult(None, self.end, self.end, self.newer.log_start_offset, None)

    def check_deletable(self) -> None:
        if not self.is_log_lost:
            self.check_readable()

    def follow_log_start(self, offset: Offset) -> None:
        """The broker that has the log deletes what is deleted."""

    def watch(self, watcher: Watcher) -> None:
        self.newer.watch_rows(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self.newer.unwatch_rows(watcher)

    # Queries

    async def find(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int,
    ) -> FoundOffset | None:
        """Of special timestamps, only what remote storage can tell: local segments are elsewhere."""
        if timestamp == EARLIEST:
            return await self._earliest()
        if timestamp < 0 and timestamp != MAX_TIMESTAMP:
            return None
        await self.prefix.wait_holds(max(self.newer.log_start_offset, 0), self._clock)
        tier = self.prefix.tier
        async with tier.searching(self.topic_partition, timeout_ms):
            if timestamp == MAX_TIMESTAMP:
                return await tier.reader.offset_of_max_timestamp(self.id, self.prefix)
            return await tier.reader.offset_by_timestamp(self.id, self.prefix, timestamp)

    async def _earliest(self) -> FoundOffset | None:
        log = await self._tier.lookups.log(self.id)
        self._tier.reader.learn(log)
        if log.log_start_offset >= self.end:
            return None
        epoch = self.prefix.epoch_if_known(log.log_start_offset)
        return FoundOffset(NO_TIMESTAMP, log.log_start_offset, NO_EPOCH if epoch is None else epoch)

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> None:
        """A reader that has records has them from remote storage, or from before the switch: nothing is lost."""

    async def end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset] | None:
        self.check_readable()
        return None if self.is_gone else self.prefix.end_of_epoch(epoch)
