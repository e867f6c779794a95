"""A classic partition as request handlers see it: its local log, and its older part in remote storage."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.compiled.attributes import mypyc_attr
from strandline.errors import OffsetMovedToTieredStorage, OffsetOutOfRange
from strandline.hybrid.layout import PartitionLayout, Tier, classic_layout
from strandline.hybrid.partition import FinalRead, PendingRead
from strandline.hybrid.remote.topics import TieredTopics
from strandline.log import LogAppendInfo
from strandline.model import (
    NO_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP,
    LeaderEpoch,
    Offset,
    ProducerAndEpoch,
    TimestampMs,
    TopicPartition,
)
from strandline.reads import NOTHING, ActiveProducer, FetchIsolation, FoundOffset, ReadResult, Watcher, WholeLog
from strandline.records import NOT_VERIFIED, ProducerEntry, TransactionVerification, read_header
from strandline.replication import Append, Appended, Partition


@mypyc_attr(native_class=False)  # sessions of Fetch refer to it weakly
class ClassicPartition:
    """`ServedPartition` over a replica of this broker."""

    __slots__ = (
        "__weakref__",
        "_has_remote",
        "_layout",
        "_local_start",
        "_start",
        "_tiered",
        "replica",
        "settled_epoch",
    )

    def __init__(self, replica: Partition, tiered: TieredTopics) -> None:
        self.replica = replica
        self.settled_epoch: LeaderEpoch = NO_EPOCH
        """The leader epoch in which this broker serves the partition as a classic one, before any switch."""
        self._tiered = tiered
        # The layout, and what it was made from, which changes when segments are deleted.
        self._start = self._local_start = NO_OFFSET
        self._has_remote = False
        self._layout = PartitionLayout(())

    @property
    def topic_partition(self) -> TopicPartition:
        return self.replica.topic_partition

    @property
    def leader_epoch(self) -> LeaderEpoch:
        return self.replica.leader_epoch

    def check_leader(self, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        self.replica.check_leader(current_leader_epoch)

    @property
    def local_replica(self) -> Partition:
        return self.replica

    def append(self, append: Append) -> Appended:
        if append.verification is not NOT_VERIFIED:
            self._check_verified(append.records, append.verification)
        return self.replica.append(append)

    def _check_verified(self, records: memoryview, verification: TransactionVerification) -> None:
        """Refuse the first batch of a transaction if it does not fit what the coordinator has said of it.

        While the partition is being switched, the producer has to send it again: a batch that is held goes to the
        diskless partition without the answer of its coordinator.
        """
        if self.replica.gate is not None:
            self.replica.gate.check_not_held(records)
        header = read_header(records)
        if header.producer_id not in self.replica.log.producers.entries:
            ProducerEntry(header.producer_id).check_verified(header, verification)

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        return self.replica.log.producers.is_in_transaction(producer)

    def check_epoch(self, producer: ProducerAndEpoch) -> None:
        self.replica.log.producers.check_epoch(producer)

    async def check_stored_epoch(self, producer: ProducerAndEpoch) -> None:
        self.check_epoch(producer)

    async def append_and_wait(
        self,
        records: memoryview,
        *,
        timeout_ms: int,
        transaction_version: int = 0,
        transaction_start_ms: TimestampMs = NO_TIMESTAMP,
    ) -> LogAppendInfo:
        """See `PartitionAppends`. One broker writes the log, and takes markers in the order in which they are sent."""
        return await self.replica.append_and_wait(
            records, timeout_ms=timeout_ms, transaction_version=transaction_version
        )

    # Reading

    @property
    def layout(self) -> PartitionLayout:
        log = self.replica.log
        offsets = log.offsets
        start, local_start, has_remote = offsets.start, offsets.local_start, log.is_remote
        if start != self._start or local_start != self._local_start or has_remote is not self._has_remote:
            self._start, self._local_start, self._has_remote = start, local_start, has_remote
            self._layout = classic_layout(start, local_start, has_remote)
        return self._layout

    def reads_memory(self, offset: Offset) -> bool:
        """Remote records may come from a bucket; local ones stay in their files."""
        return offset < self.replica.log.offsets.local_start

    @property
    def log_start_offset(self) -> Offset:
        return self.replica.log.log_start_offset

    def read_now(
        self,
        offset: Offset,
        max_bytes: int,
        *,
        isolation: FetchIsolation,
        min_one_message: bool,
        whole: WholeLog | None = None,
    ) -> ReadResult | FinalRead | PendingRead:
        """See `PartitionReads`. With `whole`, this is only the older part of a log: see `TieredStorage.read_now`."""
        replica = self.replica
        log = replica.log
        tier = self.layout.tier_of(offset)
        if tier is Tier.LOCAL:
            return log.read(offset, max_bytes, isolation=isolation, min_one_message=min_one_message)
        if tier is None:
            raise OffsetOutOfRange(
                f"Offset {offset} of {replica.topic_partition} is below the log start offset {log.log_start_offset}."
            )
        if isolation is FetchIsolation.LOG_END:  # followers do not copy remote segments
            raise OffsetMovedToTieredStorage(
                f"Offset {offset} of {replica.topic_partition} is in remote storage; the local log starts at "
                f"{log.local_log_start_offset}."
            )
        return self._tiered.storage.read_now(
            replica, offset, max_bytes, isolation=isolation, min_one_message=min_one_message, whole=whole
        )

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

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        replica = self.replica
        # A fetch that watches a sealed log may have to read records behind it, which another partition has.
        if not replica.is_leader or replica.is_sealed or self.layout.tier_of(offset) is not Tier.LOCAL:
            return None
        return replica.log.available_bytes(offset, isolation)

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        return self.replica.log.end_offset_for_epoch(epoch)

    @property
    def keeps_watchers(self) -> bool:
        """Not behind a seal: there, watchers are notified of changes of the suffix, for which the database is asked."""
        return not self.replica.is_sealed

    def watch(self, watcher: Watcher) -> None:
        self.replica.watch(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self.replica.unwatch(watcher)

    # Queries

    async def list_offset(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch = NO_EPOCH,
        timeout_ms: int = 0,
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

    async def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch
    ) -> tuple[LeaderEpoch, Offset]:
        return self.replica.end_offset_for_epoch(epoch, current_leader_epoch=current_leader_epoch)

    async def delete_records(self, before: Offset) -> Offset:
        return self.replica.delete_records(before)

    async def active_producers(self) -> Sequence[ActiveProducer]:
        self.replica.check_leader()
        return self.replica.log.active_producers()
