"""A partition that was switched to diskless, on the broker that has its log: both parts served as one log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from strandline.errors import NotLeaderOrFollower
from strandline.hybrid.classic import ClassicPartition
from strandline.hybrid.diskless.partition import DisklessPartition
from strandline.hybrid.layout import PartitionLayout, hybrid_layout
from strandline.hybrid.partition import FinalRead, PendingRead
from strandline.hybrid.switching.offsets import HybridOffsets
from strandline.hybrid.tier_reads import TierReads
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
from strandline.reads import ActiveProducer, AnsweredOffsets, FetchIsolation, FoundOffset, ReadResult, Watcher
from strandline.replication import Append, Appended, Partition

_OTHER_READS_S: Final = 0.5
"""How long a Fetch that has records of a prefix waits for reads of other partitions that are under way."""


class HybridPartition:
    """`ServedPartition` over a replica that ends at the boundary B0, and the diskless log that begins there.

    The prefix, below B0, does not grow any more: appends go to the suffix. What readers are told of the log (high
    watermark, last stable offset, log start) is that of the whole log, whichever part they read.
    """

    __slots__ = (
        "__weakref__",
        "_bridge",
        "_classic",
        "_is_prefix_served",
        "_layout",
        "_layout_basis",
        "_offsets",
        "_reads",
        "boundary",
        "prefix_problem",
        "replica",
        "suffix",
    )

    def __init__(
        self,
        classic: ClassicPartition,
        suffix: DisklessPartition,
        boundary: Offset,
        boundary_epoch: LeaderEpoch,
        *,
        reads: TierReads,
        is_prefix_served: Callable[[], bool],
    ) -> None:
        """`boundary_epoch`: in which the boundary was set; `is_prefix_served` is `inkless.hybrid.read.enabled`."""
        self.replica: Partition = classic.replica
        self.suffix = suffix
        self.boundary = boundary
        self.prefix_problem = ""
        """Why the prefix cannot be read here; empty if it can."""
        self._classic = classic
        self._reads = reads
        self._is_prefix_served = is_prefix_served
        self._layout = PartitionLayout(())
        self._layout_basis = (NO_OFFSET, NO_OFFSET, False, boundary, NO_OFFSET)
        self._bridge = _Bridge(self.replica, suffix)
        self._offsets = HybridOffsets(classic, suffix, boundary, boundary_epoch, check_prefix=self._check_prefix)
        self._bridge.follow()

    @property
    def topic_partition(self) -> TopicPartition:
        return self.replica.topic_partition

    @property
    def leader_epoch(self) -> LeaderEpoch:
        return self.suffix.leader_epoch

    @property
    def local_replica(self) -> None:
        """None: the log of this broker takes no batches of clients any more."""
        return None

    def check_leader(self, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        """Raise if the topic is gone, or the client is in another epoch. Any broker may serve the suffix."""
        self.suffix.check_leader(current_leader_epoch)

    def _check_prefix(self) -> None:
        """Raise unless this broker may read below the boundary."""
        if self.prefix_problem:
            raise NotLeaderOrFollower(self.prefix_problem)
        if not self._is_prefix_served():
            raise NotLeaderOrFollower(
                f"Broker {self.replica.node_id} does not serve {self.topic_partition} below offset {self.boundary}: "
                "inkless.hybrid.read.enabled is false."
            )
        self.replica.check_leader()

    def append(self, append: Append) -> Appended:
        if self.replica.gate is not None:
            self.replica.gate.check_first_batches(append.records)
        return self.suffix.append(append)

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        return self.suffix.has_transaction(producer)

    def check_epoch(self, producer: ProducerAndEpoch) -> None:
        self.suffix.check_epoch(producer)

    async def check_stored_epoch(self, producer: ProducerAndEpoch) -> None:
        """The control plane has taken over the producers of the prefix."""
        await self.suffix.check_stored_epoch(producer)

    async def append_and_wait(
        self,
        records: memoryview,
        *,
        timeout_ms: int,
        transaction_version: int = 0,
        transaction_start_ms: TimestampMs = NO_TIMESTAMP,
    ) -> LogAppendInfo:
        """No transaction is open across the boundary: what a marker ends is in the suffix."""
        return await self.suffix.append_and_wait(
            records,
            timeout_ms=timeout_ms,
            transaction_version=transaction_version,
            transaction_start_ms=transaction_start_ms,
        )

    # Reading

    @property
    def layout(self) -> PartitionLayout:
        log = self.replica.log
        read_boundary = self.suffix.read_boundary
        basis = (log.offsets.start, log.offsets.local_start, log.is_remote, self.boundary, read_boundary)
        if basis != self._layout_basis:
            self._layout_basis = basis
            self._layout = hybrid_layout(*basis)
        return self._layout

    def reads_memory(self, offset: Offset) -> bool:
        return offset >= self.boundary or self._classic.reads_memory(offset)

    @property
    def log_start_offset(self) -> Offset:
        """The log's own while there is a prefix; afterwards the control plane's."""
        start = self.replica.log.log_start_offset
        known = self.suffix.log_start_offset
        return max(start, known)

    @property
    def high_watermark(self) -> Offset:
        """That of the whole log, as far as this broker knows: never below the boundary."""
        return max(self.suffix.high_watermark, self.boundary)

    @property
    def last_stable_offset(self) -> Offset:
        """That of the whole log. Everything below the boundary is decided."""
        return max(self.suffix.last_stable_offset, self.boundary)

    def read_now(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> ReadResult | FinalRead | PendingRead:
        """One tier answers: a read of the prefix ends at the boundary, where the log of the replica does."""
        if offset >= self.boundary:
            if isolation is FetchIsolation.LOG_END:  # the suffix is not replicated
                return self._nothing_for_followers()
            return self.suffix.read_now(
                offset, max_bytes, isolation=isolation, min_one_message=min_one_message, whole=self._whole
            )
        self._check_prefix()
        found = self._classic.read_now(
            offset, max_bytes, isolation=isolation, min_one_message=min_one_message, whole=self._whole
        )
        if not isinstance(found, ReadResult):
            self._reads.tiered += 1
            return found
        self._reads.local += 1
        if isolation is FetchIsolation.LOG_END:
            return found
        found.high_watermark, found.last_stable_offset, found.log_start_offset = self._whole()
        # The prefix does not grow: a Fetch that waits for fetch.min.bytes of it would wait in vain.
        is_final = found.records is not None and found.records.length > 0
        return FinalRead(found, _OTHER_READS_S) if is_final else found

    def _whole(self) -> AnsweredOffsets:
        """The offsets of the whole log: a reader of the prefix is not at the end."""
        return AnsweredOffsets(self.high_watermark, self.last_stable_offset, self.log_start_offset)

    def _nothing_for_followers(self) -> ReadResult:
        """A follower that has the whole prefix is in sync: neither an error, nor records, nor an end beyond its own."""
        end = min(self.replica.log.high_watermark, self.boundary)
        return ReadResult(None, end, end, self.replica.log.log_start_offset, None)

    def without_records(self) -> ReadResult:
        """Never fails: the boundary is known, so at least that end is."""
        return ReadResult(None, *self._whole(), None)

    def stands_at(self, high_watermark: Offset, log_start: Offset) -> bool:
        return self.suffix.is_open and self.high_watermark == high_watermark and self.log_start_offset == log_start

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        part = self.suffix if offset >= self.boundary else self._classic
        return part.available_bytes(offset, isolation)

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        return self._offsets.known_end_of_epoch(epoch)

    @property
    def keeps_watchers(self) -> bool:
        return False

    def watch(self, watcher: Watcher) -> None:
        self.replica.watch(watcher)
        self._bridge.follow()

    def unwatch(self, watcher: Watcher) -> None:
        self.replica.unwatch(watcher)
        self._bridge.follow()

    def watchers_changed(self) -> None:
        """Some watchers of the replica may have left."""
        self._bridge.follow()

    # Queries

    async def list_offset(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch = NO_EPOCH,
        timeout_ms: int = 0,
    ) -> FoundOffset:
        self.check_leader(current_leader_epoch)
        return await self._offsets.list_offset(timestamp, isolation=isolation, timeout_ms=timeout_ms)

    async def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch
    ) -> tuple[LeaderEpoch, Offset]:
        self.check_leader(current_leader_epoch)
        return await self._offsets.end_offset_for_epoch(epoch)

    async def delete_records(self, before: Offset) -> Offset:
        """The control plane has the log start of the whole log: it moves there first, then in the log."""
        self.replica.check_leader()
        start = await self.suffix.delete_records(before)
        self.follow_log_start(start)
        return start

    def follow_log_start(self, offset: Offset) -> None:
        """The log starts at `offset`, in the prefix or above it. Raises KafkaStorageError."""
        log, start = self.replica.log, min(offset, self.boundary)
        if start == self.boundary != log.log_end_offset:  # the log does not fit, and nothing of it is needed any more
            log.truncate_fully_and_start_at(start)
            log.assign_epoch(self.replica.leader_epoch, start)  # those before it are over: their segments may go
            self.prefix_problem = ""
            self.replica.notify_watchers()
        elif start <= log.log_end_offset and log.start.increment(start):
            self.replica.notify_watchers()

    async def active_producers(self) -> Sequence[ActiveProducer]:
        return await self.suffix.active_producers()


class _Bridge:
    """Notifies the watchers of the replica of changes of the suffix.

    A Fetch that waited at the end of the log when the topic was switched watches the replica, and only that. It has to
    be notified of the first record of the suffix. The suffix is watched only while the replica has watchers.
    """

    __slots__ = ("_replica", "_suffix")

    def __init__(self, replica: Partition, suffix: DisklessPartition) -> None:
        self._replica, self._suffix = replica, suffix

    def follow(self) -> None:
        """Watch the suffix while the replica has watchers."""
        if self._replica.is_watched:
            self._suffix.watch(self)
        else:
            self._suffix.unwatch(self)

    def notify(self) -> None:
        """See `Watcher`."""
        if self._replica.is_watched:
            self._replica.notify_watchers()
        else:
            self._suffix.unwatch(self)
