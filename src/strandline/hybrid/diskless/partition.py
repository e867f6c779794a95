"""A diskless partition as request handlers see it.

Every broker takes appends and serves reads, whichever broker the metadata names as the leader: the control plane gives
the order, so a leader is only where clients are sent.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from strandline.clock import Clock
from strandline.diskless.values import DisklessAppend, DisklessAppended, DisklessRead, marker_to_commit
from strandline.errors import (
    FencedLeaderEpoch,
    KafkaStorageError,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
    StrandlineError,
    UnknownLeaderEpoch,
)
from strandline.hybrid.diskless.converted import ConvertedLog
from strandline.hybrid.diskless.limits import TopicLimits
from strandline.hybrid.diskless.offsets import DisklessOffsets
from strandline.hybrid.diskless.producers import active_producers, check_epoch
from strandline.hybrid.diskless.reads import DisklessReads, RoutedRead
from strandline.hybrid.diskless.refusals import error_of, storage_errors
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.layout import PartitionLayout, suffix_layout
from strandline.hybrid.partition import FinalRead, PendingRead
from strandline.log import AppendOrigin, LogAppendInfo
from strandline.metadata.image import PartitionImage
from strandline.model import (
    INT64_MAX,
    NO_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP,
    LeaderEpoch,
    Offset,
    ProducerAndEpoch,
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
    FetchIsolation,
    FoundOffset,
    ReadResult,
    Watcher,
    WholeLog,
)
from strandline.records import (
    TimestampType,
    validate_internal,
    validate_produced,
)
from strandline.replication import Append, Appended
from strandline.replication.append import ACKS_ALL
from strandline.replication.partition import DELETE_TO_HIGH_WATERMARK


class DisklessPartition:
    """`ServedPartition` for a diskless topic, on every broker."""

    __slots__ = (
        "__weakref__",
        "_clock",
        "_end",
        "_layout",
        "_reads",
        "_tier",
        "boundary",
        "converted",
        "id",
        "leader_epoch",
        "limits",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        tier: DisklessTier,
        *,
        reads: DisklessReads,
        converted: ConvertedLog,
        limits: TopicLimits,
        clock: Clock,
    ) -> None:
        """`converted` is the part of its log that may be in remote segments; it begins where the log does."""
        self.topic_partition = topic_partition
        self.id = TopicIdPartition(topic_id, topic_partition)
        self.boundary = converted.boundary
        """B0, where its diskless log begins: at 0, unless the partition was classic before."""
        self.limits = limits
        """What the topic accepts; replaced when its settings change."""
        self.leader_epoch: LeaderEpoch = NO_EPOCH
        self._tier, self._reads, self._clock = tier, reads, clock
        self.converted = converted
        self._layout: PartitionLayout | None = None
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
            raise error(f"{self.topic_partition} is in epoch {self.leader_epoch}, not {current_leader_epoch}.")

    @property
    def local_replica(self) -> None:
        """None: every append waits for its commit."""
        return None

    @property
    def is_open(self) -> bool:
        """False once its topic is gone, or the broker stops."""
        return self._end is None

    @property
    def has_prefix(self) -> bool:
        """Whether records below its B0 may be left, which only the broker that has their log serves. None are below 0,
        also while this broker does not know where the log starts."""
        return max(self.log_start_offset, 0) < self.boundary

    def close(self, error: StrandlineError) -> None:
        """The topic is gone, or the broker stops."""
        self._end = error
        self.converted.close()
        self._tier.reader.forget(self.id)

    # Appending

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        """The control plane knows, this broker does not: the coordinator is asked about every batch."""
        return False

    def check_epoch(self, producer: ProducerAndEpoch) -> None:
        """The control plane refuses it when the batch is committed."""

    async def check_stored_epoch(self, producer: ProducerAndEpoch) -> None:
        await check_epoch(self._tier, self.id, producer)

    def append(self, append: Append) -> Appended:
        """Check a batch, copy it, and give it its place in the order of this broker.

        Its offsets are filled into the answer's `info` before `done` is called: whatever its `acks` say, that is when
        it is committed. Raises the errors of an invalid batch.
        """
        self.check_leader()
        limits, done = self.limits, append.done
        timestamp_type, marker = limits.timestamp_type, None
        if append.origin is AppendOrigin.CLIENT:
            buffer, header = validate_produced(append.records, limits=limits.batch, now_ms=self._clock.now_ms())
        else:
            buffer, header = validate_internal(append.records, limits=limits.batch, now_ms=self._clock.now_ms())
            if header.is_control:  # it keeps the time of its coordinator, as in a classic log
                timestamp_type = TimestampType.CREATE_TIME
                marker = marker_to_commit(buffer, append.transaction_version, append.transaction_start_ms)
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
            DisklessAppend(
                self.id,
                self._tier.memory.copy(buffer),
                header,
                timestamp_type,
                self.leader_epoch,
                marker,
                append.verification,
            ),
            committed,
        )
        return Appended(info, is_done=False, is_written=False, is_copied=True)

    async def append_and_wait(
        self,
        records: memoryview,
        *,
        timeout_ms: int,
        transaction_version: int = 0,
        transaction_start_ms: TimestampMs = NO_TIMESTAMP,
    ) -> LogAppendInfo:
        """See `PartitionAppends`. Any broker may do it: the control plane gives the order."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: StrandlineError | None) -> None:
            if future.done():
                return  # the caller does not wait any more
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        appended = self.append(
            Append(
                records,
                acks=ACKS_ALL,
                origin=AppendOrigin.COORDINATOR,
                done=done,
                transaction_version=transaction_version,
                transaction_start_ms=transaction_start_ms,
            )
        )
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await future
        except TimeoutError as error:
            raise RequestTimedOut(f"A batch of {self.topic_partition} was not committed in {timeout_ms} ms.") from error
        return appended.info

    # Reading

    @property
    def read_boundary(self) -> Offset:
        """Records below it are not in rows: as far as this broker knows, and never below B0."""
        return self.converted.local_log_start_offset

    @property
    def layout(self) -> PartitionLayout:
        boundary = self.read_boundary
        if self._layout is None or boundary != self._layout.extents[0].start:
            self._layout = suffix_layout(self.boundary, boundary)
        return self._layout

    def reads_memory(self, offset: Offset) -> bool:
        return True

    @property
    def log_start_offset(self) -> Offset:
        known = self._tier.reader.known_offsets(self.id)
        return NO_OFFSET if known is None else known[1]

    @property
    def high_watermark(self) -> Offset:
        """As far as this broker knows; -1 if it does not."""
        known = self._tier.reader.known_offsets(self.id)
        return NO_OFFSET if known is None else known[0]

    @property
    def last_stable_offset(self) -> Offset:
        """As far as this broker knows; -1 if it does not."""
        return self._tier.reader.last_stable_offset(self.id)

    def read_now(
        self,
        offset: Offset,
        max_bytes: int,
        *,
        isolation: FetchIsolation,
        min_one_message: bool,
        whole: WholeLog | None = None,
    ) -> ReadResult | FinalRead | PendingRead:
        request = DisklessRead(self.id, offset, max_bytes, isolation)
        found = self._tier.reader.read_now(request, min_one_message=min_one_message)
        if found is not None:
            return self._reads.from_memory(found, whole)
        return self._reads.begin(RoutedRead(request, self.converted, whole), min_one_message=min_one_message)

    def without_records(self) -> ReadResult:
        known = self._tier.reader.known_offsets(self.id)
        if known is None:
            raise KafkaStorageError(f"The high watermark of {self.topic_partition} could not be read in time.")
        return ReadResult(None, known[0], self.last_stable_offset, known[1], None)

    def stands_at(self, high_watermark: Offset, log_start: Offset) -> bool:
        return self._end is None and self._tier.reader.known_offsets(self.id) == (high_watermark, log_start)

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        """0 at the end of what may be seen. Elsewhere None: only a read can tell how many bytes there are."""
        known = self._tier.reader.known_offsets(self.id)
        if self._end is not None or known is None:
            return None
        end = self.last_stable_offset if isolation is FetchIsolation.TXN_COMMITTED else known[0]
        return 0 if end <= offset <= known[0] else None

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """No epoch of a diskless log ever lost a record: none ends before what a reader has.

        The reader may have an epoch that this broker's metadata does not have yet: that of another broker's commit.
        """
        return epoch, INT64_MAX

    @property
    def keeps_watchers(self) -> bool:
        return False

    def watch(self, watcher: Watcher) -> None:
        self._tier.reader.watch(self.id, watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._tier.reader.unwatch(self.id, watcher)

    # Queries

    async def list_offset(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        current_leader_epoch: LeaderEpoch = NO_EPOCH,
        timeout_ms: int = 0,
    ) -> FoundOffset:
        """See `PartitionQueries`."""
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

    async def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch = NO_EPOCH
    ) -> tuple[LeaderEpoch, Offset]:
        """OffsetForLeaderEpoch: no epoch ever lost a record, so every known epoch reaches up to the end.

        Known are the epochs of the metadata, and those of records, which other brokers with newer metadata committed.
        """
        self.check_leader(current_leader_epoch)
        end = await self._tier.lookups.latest(self.id)
        if not 0 <= epoch <= max(self.leader_epoch, end.leader_epoch):
            return NO_EPOCH, NO_OFFSET
        return epoch, end.offset

    async def delete_records(self, before: Offset) -> Offset:
        """DeleteRecords: move the log start to `before` (-1: the high watermark). Returns the low watermark."""
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
        return trimmed.log_start_offset

    async def active_producers(self) -> list[ActiveProducer]:
        """DescribeProducers: the producer state that the control plane keeps."""
        self.check_leader()
        return await active_producers(self._tier, self.id)
