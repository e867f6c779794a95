"""A diskless partition as request handlers see it: beside `replication.Partition`, with the same questions.

Any broker takes appends and serves reads, whoever leads the partition in the metadata: the control plane gives the
order, so a leader is only where clients are sent. What a classic partition answers at once out of its log, this one
may have to ask the database or the object store for; those answers are coroutines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from strandline.clock import Clock
from strandline.controlplane.values import TopicIdPartition
from strandline.diskless.values import DisklessAppend, DisklessAppended, DisklessRead, DisklessReadResult, MemorySlices
from strandline.errors import (
    FencedLeaderEpoch,
    OffsetOutOfRange,
    PolicyViolation,
    StrandlineError,
    UnknownLeaderEpoch,
    UnsupportedVersion,
)
from strandline.hybrid.refusals import error_of, storage_errors
from strandline.hybrid.tier import DisklessTier
from strandline.hybrid.topic_limits import TopicLimits
from strandline.log import AppendOrigin, FetchIsolation, FileSlice, LogAppendInfo
from strandline.log.values import AbortedTransaction, ActiveProducer
from strandline.metadata.image import PartitionImage
from strandline.model import (
    INT32_MAX,
    INT64_MAX,
    NO_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP,
    LeaderEpoch,
    Offset,
    TimestampMs,
    TopicPartition,
)
from strandline.records import validate_produced
from strandline.replication import Appended, Watcher
from strandline.replication.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    NOTHING,
    FoundOffset,
)
from strandline.replication.partition import DELETE_TO_HIGH_WATERMARK, Done


class PartitionRead(NamedTuple):
    """What a read found; the fields of `log.LogReadResult` that answers are made of."""

    records: MemorySlices | FileSlice | None
    high_watermark: Offset
    last_stable_offset: Offset
    log_start_offset: Offset
    aborted_transactions: list[AbortedTransaction] | None
    is_remote: bool = False
    """Whether it comes from remote storage."""


def read_of(found: DisklessReadResult, isolation: FetchIsolation) -> PartitionRead:
    """An answer of the reader. Raises its error, if it is one. There are no transactions: all is stable."""
    if found.error is not None:
        raise found.error
    return PartitionRead(
        found.records,
        found.high_watermark,
        found.high_watermark,
        found.log_start_offset,
        [] if isolation is FetchIsolation.TXN_COMMITTED else None,
    )


class KnownOffsets:
    """The offsets of a diskless partition as far as this broker knows them: nobody is asked.

    Stands where handlers look at the log of a classic partition; -1 where nothing is known yet.
    """

    __slots__ = ("_partition",)

    is_offline = False

    def __init__(self, partition: DisklessPartition) -> None:
        self._partition = partition

    @property
    def high_watermark(self) -> Offset:
        known = self._partition.known_offsets()
        return NO_OFFSET if known is None else known[0]

    @property
    def last_stable_offset(self) -> Offset:
        """There are no transactions."""
        return self.high_watermark

    @property
    def log_start_offset(self) -> Offset:
        known = self._partition.known_offsets()
        return NO_OFFSET if known is None else known[1]

    @property
    def local_log_start_offset(self) -> Offset:
        """Nothing is in another tier."""
        return self.log_start_offset

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int:
        """More than anybody waits for as soon as there is a record: how much it is only a read can tell."""
        return INT32_MAX if self.high_watermark != offset else 0

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """No epoch of a diskless log ever lost a record: none ends before what a reader has."""
        return (epoch, INT64_MAX) if epoch <= self._partition.leader_epoch else (NO_EPOCH, NO_OFFSET)


class DisklessPartition:
    """One partition of a diskless topic. Lives on the event loop."""

    __slots__ = (
        "__weakref__",
        "_clock",
        "_end",
        "_tier",
        "id",
        "is_leader",
        "leader_epoch",
        "limits",
        "log",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        tier: DisklessTier,
        *,
        limits: TopicLimits,
        clock: Clock,
    ) -> None:
        self.topic_partition = topic_partition
        self.id = TopicIdPartition(topic_id, topic_partition.partition)
        self.limits = limits
        """What the topic accepts; replaced when its settings change."""
        self.leader_epoch: LeaderEpoch = NO_EPOCH
        self.is_leader = True
        """Every broker serves the partition, until its topic is gone."""
        self.log = KnownOffsets(self)
        self._tier = tier
        self._clock = clock
        self._end: StrandlineError | None = None

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
            raise error(f"{self.topic_partition} is in epoch {self.leader_epoch}, not {current_leader_epoch}")

    def close(self, error: StrandlineError) -> None:
        """The topic is gone, or the broker stops."""
        self._end = error
        self.is_leader = False
        self._tier.reader.forget(self.id)

    # Appending

    def append(
        self,
        records: memoryview,
        *,
        acks: int,
        origin: AppendOrigin,
        done: Done,
        written: Callable[[], None] | None = None,
        is_borrowed: bool = False,
    ) -> Appended:
        """Check a batch, copy it, and give it its place in the order of this broker.

        Its offsets are filled into the answer's `info` before `done` is called: whatever `acks` says, that is when
        it is committed. Raises the refusals of a produced batch.
        """
        self.check_leader()
        limits = self.limits
        buffer, header = validate_produced(records, limits=limits.batch, now_ms=self._clock.now_ms())
        info = LogAppendInfo(
            first_offset=NO_OFFSET,
            last_offset=NO_OFFSET,
            log_append_time_ms=NO_TIMESTAMP,
            log_start_offset=NO_OFFSET,
            is_duplicate=False,
            size=len(buffer),
            max_timestamp=header.max_timestamp,
        )

        def committed(result: DisklessAppended | StrandlineError) -> None:
            if isinstance(result, StrandlineError):
                done(result)
                return
            info.first_offset, info.log_append_time_ms, info.log_start_offset = result
            info.last_offset = info.first_offset + header.last_offset_delta
            done(None)

        self._tier.writer.append(
            DisklessAppend(self.id, self._tier.memory.copy(buffer), header, limits.timestamp_type, self.leader_epoch),
            committed,
        )
        return Appended(info, is_done=False, is_written=False, is_copied=True)

    # Reading

    def known_offsets(self) -> tuple[Offset, Offset] | None:
        """High watermark and log start, if this broker knows them."""
        return self._tier.reader.known_offsets(self.id)

    def read(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> PartitionRead | DisklessRead:
        """What is in memory, or what to ask `PartitionRouter.read` for. Raises StrandlineError."""
        request = DisklessRead(self.id, offset, max_bytes)
        found = self._tier.reader.read_now(request, min_one_message=min_one_message)
        return request if found is None else read_of(found, isolation)

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` of every change until `unwatch`."""
        self._tier.reader.watch(self.id, watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Stop notifying."""
        self._tier.reader.unwatch(self.id, watcher)

    # What has to be asked for

    async def list_offset(self, timestamp: TimestampMs, *, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> FoundOffset:
        """ListOffsets: a special timestamp or the first record at or after a time."""
        self.check_leader(current_leader_epoch)
        if timestamp == EARLIEST_PENDING_UPLOAD:
            return NOTHING  # what is committed is uploaded
        found = FoundOffset(*await self._look_up(timestamp))
        is_end = found.leader_epoch == NO_EPOCH and timestamp in (LATEST, EARLIEST, EARLIEST_LOCAL)
        return found._replace(leader_epoch=self.leader_epoch) if is_end else found

    async def _look_up(self, timestamp: TimestampMs) -> tuple[TimestampMs, Offset, LeaderEpoch]:
        lookups = self._tier.lookups
        if timestamp >= 0:
            return await lookups.by_timestamp(self.id, timestamp)
        special = {
            LATEST: lookups.latest,
            EARLIEST: lookups.earliest,
            MAX_TIMESTAMP: lookups.of_max_timestamp,
            EARLIEST_LOCAL: lookups.earliest_local,
            LATEST_TIERED: lookups.latest_tiered,
        }
        if timestamp not in special:
            raise UnsupportedVersion(f"ListOffsets has no special timestamp {timestamp}")
        return await special[timestamp](self.id)

    async def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch = NO_EPOCH
    ) -> tuple[LeaderEpoch, Offset]:
        """OffsetForLeaderEpoch: no epoch ever lost a record, so each that was reaches up to the end."""
        self.check_leader(current_leader_epoch)
        if not 0 <= epoch <= self.leader_epoch:
            return NO_EPOCH, NO_OFFSET
        return epoch, (await self._tier.lookups.latest(self.id)).offset

    async def delete_records(self, before: Offset) -> Offset:
        """DeleteRecords: move the log start to `before` (-1: the high watermark). Returns the low watermark."""
        self.check_leader()
        if not self.limits.allows_deletion:
            raise PolicyViolation(
                f"records of {self.topic_partition.topic} cannot be deleted: its cleanup.policy has no `delete`"
            )
        if before < DELETE_TO_HIGH_WATERMARK:
            raise OffsetOutOfRange(f"{self.topic_partition}: {before} is no offset")
        with storage_errors(self.topic_partition):
            (trimmed,) = (await self._tier.plane.delete_records({self.id: before})).values()
        if trimmed.refusal is not None:
            raise error_of(trimmed.refusal, f"{self.topic_partition}: records cannot be deleted up to {before}")
        self._tier.reader.log_start_moved(self.id, trimmed.log_start_offset)
        return trimmed.log_start_offset

    async def active_producers(self) -> list[ActiveProducer]:
        """DescribeProducers: who wrote here lately, as the control plane remembers it."""
        self.check_leader()
        with storage_errors(self.topic_partition):
            producers = await self._tier.plane.producers(self.id)
        return [
            ActiveProducer(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=-1,
                current_txn_start_offset=NO_OFFSET,
            )
            for producer in producers
        ]
