"""What the control plane has ordered of a log: rows of WAL objects, and before them what was converted into segments.

Every broker takes appends and serves reads, whichever broker the metadata names as the leader: the control plane gives
the order, so a leader is only where clients are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from strandline.clock import Clock
from strandline.diskless.values import DisklessRead
from strandline.errors import (
    FencedLeaderEpoch,
    KafkaStorageError,
    OffsetOutOfRange,
    PolicyViolation,
    StrandlineError,
    UnknownLeaderEpoch,
)
from strandline.hybrid.diskless.converted import ConvertedLog
from strandline.hybrid.diskless.limits import TopicLimits
from strandline.hybrid.diskless.offsets import DisklessOffsets
from strandline.hybrid.diskless.producers import active_producers
from strandline.hybrid.diskless.reads import ConvertedReads, RoutedRead, RowReads
from strandline.hybrid.diskless.refusals import error_of, storage_errors
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.layout import Extent, PartitionLayout, Tier, diskless_layout
from strandline.hybrid.parts.diskless_appends import DisklessAppends
from strandline.hybrid.parts.part import JoinedPart
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.metadata import PartitionImage
from strandline.model import (
    INT64_MAX,
    NO_EPOCH,
    NO_OFFSET,
    LeaderEpoch,
    Offset,
    TimestampMs,
    TopicIdPartition,
    TopicPartition,
)
from strandline.reads import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    NOTHING,
    ActiveProducer,
    AnsweredOffsets,
    FetchIsolation,
    FoundOffset,
    ReadResult,
    Watcher,
)
from strandline.replication.partition import DELETE_TO_HIGH_WATERMARK

_NOT_KNOWN: Final = AnsweredOffsets(NO_OFFSET, NO_OFFSET, NO_OFFSET)


class DisklessPart:
    """A `NewestPart`: of a diskless topic all of it, of one that was switched what is behind the boundary."""

    __slots__ = (
        "_clock",
        "_end",
        "_layout",
        "_rows",
        "_tier",
        "appends",
        "boundary",
        "converted",
        "id",
        "leader_epoch",
        "limits",
        "older",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        tier: DisklessTier,
        *,
        rows: RowReads,
        converted: ConvertedLog,
        limits: TopicLimits,
        clock: Clock,
    ) -> None:
        """`converted` is what may be in remote segments of it; it begins where the part does."""
        self.topic_partition = topic_partition
        self.id = TopicIdPartition(topic_id, topic_partition)
        self.boundary = converted.boundary
        """B0, where it begins: at 0, unless the partition was classic before."""
        self.older: JoinedPart | None = None
        self.limits = limits
        """What the topic accepts; replaced when its settings change."""
        self.leader_epoch: LeaderEpoch = NO_EPOCH
        self.converted = converted
        self.appends = DisklessAppends(self, tier, clock)
        self._tier, self._clock = tier, clock
        self._rows = rows
        self._layout = PartitionLayout()
        self._end: StrandlineError | None = None

    def join(self, older: JoinedPart) -> None:
        """Take the part before the boundary, instead of the one that was known until now."""
        self.older = older

    # Following the metadata

    def follow(self, image: PartitionImage) -> None:
        """Take over the leader epoch, which new batches carry."""
        self.leader_epoch = image.leader_epoch

    def check_leader(self, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        """Raise if the topic is gone, or if the client is in another epoch than the metadata."""
        if self._end is not None:
            raise self._end
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            error = FencedLeaderEpoch if current_leader_epoch < self.leader_epoch else UnknownLeaderEpoch
            raise error(f"{self.topic_partition} is in epoch {self.leader_epoch}, not {current_leader_epoch}.")

    @property
    def is_open(self) -> bool:
        """False once its topic is gone, or the broker stops."""
        return self._end is None

    def close(self, error: StrandlineError) -> None:
        """The topic is gone, or the broker stops."""
        self._end = error
        if self.older is not None:
            self.older.close()
        self.converted.close()
        self._tier.reader.forget(self.id)

    # Offsets

    def offsets(self) -> AnsweredOffsets:
        """Those of the whole log, as far as this broker knows; -1 where it does not."""
        reader, key = self._tier.reader, self.id
        known = reader.known_offsets(key)
        found = _NOT_KNOWN if known is None else AnsweredOffsets(known[0], reader.last_stable_offset(key), known[1])
        return found if self.older is None else self.older.bound(found)

    @property
    def log_start_offset(self) -> Offset:
        return self.offsets().log_start_offset

    @property
    def high_watermark(self) -> Offset:
        """As far as this broker knows; -1 if it does not."""
        return self.offsets().high_watermark

    @property
    def last_stable_offset(self) -> Offset:
        """As far as this broker knows; -1 if it does not."""
        return self.offsets().last_stable_offset

    @property
    def has_prefix(self) -> bool:
        """Whether records below its B0 may be left, as far as the control plane says. None are below 0, also while
        this broker does not know where the log starts."""
        known = self._tier.reader.known_offsets(self.id)
        return (0 if known is None else known[1]) < self.boundary

    def without_records(self) -> ReadResult:
        """Fails only if no end is known: a boundary is one."""
        offsets = self.offsets()
        if offsets.high_watermark < 0:
            raise KafkaStorageError(f"The high watermark of {self.topic_partition} could not be read in time.")
        return ReadResult(None, *offsets, None)

    def stands_at(self, high_watermark: Offset, log_start: Offset) -> bool:
        if self._end is not None:
            return False
        if self.older is None:
            return self._tier.reader.known_offsets(self.id) == (high_watermark, log_start)
        end, _, start = self.offsets()
        return end == high_watermark and start == log_start

    # Reading

    @property
    def read_boundary(self) -> Offset:
        """Records below it are not in rows: as far as this broker knows, and never below B0."""
        return self.converted.local_log_start_offset

    @property
    def layout(self) -> PartitionLayout:
        boundary = self.read_boundary
        layout = self._layout
        if not layout.extents or boundary != layout.extents[0].start:
            rows = Extent(Tier.DISKLESS, _DisklessEngine(self, self._rows), boundary)
            converted = _DisklessEngine(self, self._rows.converted)
            self._layout = layout = diskless_layout(rows, self.boundary, converted)
        return layout

    def refusal(self, offset: Offset) -> StrandlineError:
        return OffsetOutOfRange(f"Offset {offset} of {self.topic_partition} is below its first offset {self.boundary}.")

    @property
    def keeps_watchers(self) -> bool:
        return False

    def watch(self, watcher: Watcher) -> None:
        if self.older is None:
            self.watch_rows(watcher)
        else:
            self.older.watch(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        if self.older is None:
            self.unwatch_rows(watcher)
        else:
            self.older.unwatch(watcher)

    def watch_rows(self, watcher: Watcher) -> None:
        """Notify `watcher` of every change of this part until `unwatch_rows`."""
        self._tier.reader.watch(self.id, watcher)

    def unwatch_rows(self, watcher: Watcher) -> None:
        """Stop notifying."""
        self._tier.reader.unwatch(self.id, watcher)

    # Queries

    async def find(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int,
    ) -> FoundOffset:
        self.check_leader(current_leader_epoch)
        if timestamp == EARLIEST_PENDING_UPLOAD:
            return NOTHING  # every committed batch is uploaded already
        tier = self._tier
        offsets = DisklessOffsets(tier.lookups, tier.reader, self.converted, self._clock, timeout_ms=timeout_ms)
        found = await offsets.find(timestamp, isolation)
        is_empty = found.leader_epoch == NO_EPOCH and timestamp in (EARLIEST, EARLIEST_LOCAL)
        if timestamp == LATEST or is_empty:  # the epoch of the next record: never older than that of the last one
            return found._replace(leader_epoch=max(found.leader_epoch, self.leader_epoch))
        return found

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """No epoch of a diskless log ever lost a record: none ends before what a reader has.

        The reader may have an epoch that this broker's metadata does not have yet: that of another broker's commit.
        """
        return epoch, INT64_MAX

    async def end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """No epoch ever lost a record, so every known epoch reaches up to the end.

        Known are the epochs of the metadata, and those of records, which other brokers with newer metadata committed.
        """
        end = await self._tier.lookups.latest(self.id)
        if not 0 <= epoch <= max(self.leader_epoch, end.leader_epoch):
            return NO_EPOCH, NO_OFFSET
        return epoch, end.offset

    async def delete_records(self, before: Offset) -> Offset:
        """The control plane has the log start of the whole log: it moves there first, then in an older part."""
        older = self.older
        if older is not None:
            older.check_deletable()
        self.check_leader()
        if not self.limits.allows_deletion:
            raise PolicyViolation(
                f"Records of {self.topic_partition.topic} cannot be deleted: its cleanup.policy has no `delete`."
            )
        if before < DELETE_TO_HIGH_WATERMARK:
            raise OffsetOutOfRange(f"{self.topic_partition}: {before} is not an offset.")
        with storage_errors(self.topic_partition):
            (trimmed,) = (await self._tier.trimming.delete_records({self.id: before})).values()
        if trimmed.refusal is not None:
            raise error_of(trimmed.refusal, f"{self.topic_partition}: records cannot be deleted up to {before}")
        self._tier.reader.log_start_moved(self.id, trimmed.log_start_offset)
        if older is not None:
            older.follow_log_start(trimmed.log_start_offset)
        return trimmed.log_start_offset

    async def active_producers(self) -> Sequence[ActiveProducer]:
        """The producer state that the control plane keeps."""
        self.check_leader()
        return await active_producers(self._tier, self.id)


class _DisklessEngine:
    """The `Engine` of rows, or that of converted segments."""

    __slots__ = ("_part", "_reads")

    def __init__(self, part: DisklessPart, reads: RowReads | ConvertedReads) -> None:
        self._part, self._reads = part, reads

    def read_now(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> ReadResult | FinalRead | PendingRead:
        """What is in memory is read there, whatever has become of its rows."""
        part = self._part
        older = part.older
        if older is not None and isolation is FetchIsolation.LOG_END:
            return older.end_for_followers()
        request = DisklessRead(part.id, offset, max_bytes, isolation)
        read = RoutedRead(request, part.converted, None if older is None else part.offsets)
        found = self._reads.from_memory(read, min_one_message=min_one_message)
        return self._reads.begin(read, min_one_message=min_one_message) if found is None else found

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        """0 at the end of what may be seen. Elsewhere None: only a read can tell how many bytes there are."""
        part = self._part
        end, last_stable, _ = part.offsets()
        if end < 0 or not part.is_open:
            return None
        until = last_stable if isolation is FetchIsolation.TXN_COMMITTED else end
        return 0 if until <= offset <= end else None
