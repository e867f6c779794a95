"""What a replica of this broker has of a log that was switched to diskless: everything below the boundary B0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strandline.errors import KafkaStorageError, NotLeaderOrFollower, StrandlineError
from strandline.hybrid.layout import Extent, PartitionLayout, Tier
from strandline.hybrid.parts.diskless import DisklessPart
from strandline.hybrid.parts.replica import RemoteSegments, ReplicaPart
from strandline.hybrid.parts.searching import OF_THE_START
from strandline.hybrid.reading import Engine, FinalRead, PendingRead
from strandline.hybrid.tier_reads import TierReads
from strandline.model import NO_EPOCH, LeaderEpoch, Offset, TimestampMs
from strandline.reads import (
    EARLIEST_PENDING_UPLOAD,
    MAX_TIMESTAMP,
    NOTHING,
    AnsweredOffsets,
    FetchIsolation,
    FoundOffset,
    ReadResult,
    Watcher,
)
from strandline.replication import Partition

_OTHER_READS_S: Final = 0.5
"""How long a Fetch that has records of a prefix waits for reads of other partitions that are under way."""


class PrefixHere:
    """An `OlderPart` over a replica whose log ends at the boundary, and does not grow any more.

    What readers are told of the log (high watermark, last stable offset, log start) is that of the whole log.
    """

    __slots__ = (
        "_basis",
        "_boundary_epoch",
        "_bridge",
        "_is_served",
        "_layout",
        "_newer",
        "_part",
        "end",
        "problem",
        "reads",
        "replica",
    )

    older: Final = None

    def __init__(
        self,
        part: ReplicaPart,
        newer: DisklessPart,
        boundary_epoch: LeaderEpoch,
        *,
        reads: TierReads,
        is_served: Callable[[], bool],
    ) -> None:
        """`boundary_epoch`: in which the boundary was set, so that the diskless part has no older records.

        `is_served` is `inkless.hybrid.read.enabled`.
        """
        self.replica: Partition = part.replica
        self.end = newer.boundary
        self.problem = ""
        """Why the prefix cannot be read here; empty if it can."""
        self.reads = reads
        self._part, self._newer = part, newer
        self._boundary_epoch = boundary_epoch
        self._is_served = is_served
        self._basis = self._layout = PartitionLayout()
        self._bridge = _Bridge(part.replica, newer)
        self._bridge.follow()

    @property
    def is_gone(self) -> bool:
        return self._part.log_start_offset >= self.end

    def check_readable(self) -> None:
        if self.problem:
            raise NotLeaderOrFollower(self.problem)
        if not self._is_served():
            raise NotLeaderOrFollower(
                f"Broker {self.replica.node_id} does not serve {self.replica.topic_partition} below offset {self.end}: "
                "inkless.hybrid.read.enabled is false."
            )
        self.replica.check_leader()

    # Reading

    @property
    def layout(self) -> PartitionLayout:
        basis = self._part.layout
        if basis is not self._basis:
            self._basis = basis
            self._layout = PartitionLayout(tuple(self._extent(extent) for extent in basis.extents))
        return self._layout

    def _extent(self, extent: Extent) -> Extent:
        end, engine = min(extent.end, self.end), extent.engine
        if isinstance(engine, RemoteSegments):
            return Extent(Tier.REMOTE, _RemoteEngine(self, engine), extent.start, end)
        return Extent(extent.tier, _LocalEngine(self, engine), extent.start, end)

    def refusal(self, offset: Offset) -> StrandlineError:
        try:
            self.check_readable()
        except StrandlineError as error:
            return error
        return self._part.refusal(offset)

    def whole(self) -> AnsweredOffsets:
        """The offsets of the whole log: a reader of the prefix is not at the end."""
        return self._newer.offsets()

    def end_for_followers(self) -> ReadResult:
        """A follower that has the whole prefix is in sync: neither an error, nor records, nor an end beyond its own."""
        log = self.replica.log
        end = min(log.high_watermark, self.end)
        return ReadResult(None, end, end, log.log_start_offset, None)

    def close(self) -> None:
        """Nothing is read here any more: its readers refer to it."""
        self._basis = self._layout = PartitionLayout()

    # What the newer part asks

    def admit(self, records: memoryview) -> None:
        """Raise OutOfOrderSequence if a batch has to wait for one that was refused while the log was sealed."""
        gate = self.replica.gate
        if gate is not None:
            gate.check_first_batches(records)

    def bound(self, known: AnsweredOffsets) -> AnsweredOffsets:
        """The offsets of the whole log, from those of the newer part, which may be -1: everything here is decided."""
        high_watermark, last_stable, start = known
        end = self.end
        return AnsweredOffsets(
            max(high_watermark, end), max(last_stable, end), max(self.replica.log.log_start_offset, start)
        )

    def check_deletable(self) -> None:
        """Raise unless records may be deleted through this broker."""
        self.replica.check_leader()

    def follow_log_start(self, offset: Offset) -> None:
        """The log starts at `offset`, in the prefix or above it. Raises KafkaStorageError."""
        log, start = self.replica.log, min(offset, self.end)
        if start == self.end != log.log_end_offset:  # the log does not fit, and nothing of it is needed any more
            log.truncate_fully_and_start_at(start)
            log.assign_epoch(self.replica.leader_epoch, start)  # those before it are over: their segments may go
            self.problem = ""
            self.replica.notify_watchers()
        elif start <= log.log_end_offset and log.start.increment(start):
            self.replica.notify_watchers()

    def watch(self, watcher: Watcher) -> None:
        """Notify of changes of both parts."""
        self.replica.watch(watcher)
        self._bridge.follow()

    def unwatch(self, watcher: Watcher) -> None:
        """Stop notifying."""
        self.replica.unwatch(watcher)
        self._bridge.follow()

    def watchers_changed(self) -> None:
        """Some watchers of the replica may have left."""
        self._bridge.follow()

    # Queries

    async def find(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int,
    ) -> FoundOffset:
        """At the end of its log stands the boundary, which is no record of it."""
        found = await self._part.find(
            timestamp, isolation=isolation, current_leader_epoch=current_leader_epoch, timeout_ms=timeout_ms
        )
        if timestamp == MAX_TIMESTAMP:
            remote = await self._part.newest_remote_record(timeout_ms=timeout_ms)
            found = found if found.timestamp > remote.timestamp else remote
        if timestamp == EARLIEST_PENDING_UPLOAD and found.offset == self.end:
            return NOTHING
        limit = self.end if timestamp in OF_THE_START else self.end - 1
        if found.offset > limit:
            raise KafkaStorageError(
                f"The log of {self.replica.topic_partition} answered with offset {found.offset}, behind the boundary "
                f"{self.end} at which it ends. Nothing is answered rather than a wrong offset."
            )
        return found

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset] | None:
        """Epochs before the switch end here. That of the switch, and later ones, go on in the diskless part.

        (The log of the replica begins an epoch, without records, whenever it has a new leader.)
        """
        epochs = self.replica.log.epochs
        latest = epochs.latest
        if latest is None or epoch == NO_EPOCH or epoch >= self._boundary_epoch:
            return None
        return (latest, self.end) if epoch > latest else epochs.end_offset_for(epoch, self.end)

    async def end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset] | None:
        return self.known_end_of_epoch(epoch)


class _LocalEngine:
    """The `Engine` of local segments of a prefix."""

    __slots__ = ("_prefix", "_segments")

    def __init__(self, prefix: PrefixHere, segments: Engine) -> None:
        self._prefix, self._segments = prefix, segments

    def read_now(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> ReadResult | FinalRead | PendingRead:
        """One tier answers: the read ends at the boundary, where the log of the replica does."""
        prefix = self._prefix
        prefix.check_readable()
        found = self._segments.read_now(offset, max_bytes, isolation=isolation, min_one_message=min_one_message)
        prefix.reads.local += 1
        if isolation is FetchIsolation.LOG_END or not isinstance(found, ReadResult):
            return found
        found.high_watermark, found.last_stable_offset, found.log_start_offset = prefix.whole()
        # The prefix does not grow: a Fetch that waits for fetch.min.bytes of it would wait in vain.
        is_final = found.records is not None and found.records.length > 0
        return FinalRead(found, _OTHER_READS_S) if is_final else found

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        return self._segments.available_bytes(offset, isolation)


class _RemoteEngine:
    """The `Engine` of remote segments of a prefix."""

    __slots__ = ("_prefix", "_segments")

    def __init__(self, prefix: PrefixHere, segments: RemoteSegments) -> None:
        self._prefix, self._segments = prefix, segments

    def read_now(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> FinalRead | PendingRead:
        prefix = self._prefix
        prefix.check_readable()
        found = self._segments.read_now(
            offset, max_bytes, isolation=isolation, min_one_message=min_one_message, whole=prefix.whole
        )
        prefix.reads.tiered += 1
        return found

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        return None


class _Bridge:
    """Notifies the watchers of the replica of changes of the diskless part.

    A Fetch that waited at the end of the log when the topic was switched watches the replica, and only that. It has to
    be notified of the first record behind the boundary. The diskless part is watched only while the replica has
    watchers.
    """

    __slots__ = ("_newer", "_replica")

    def __init__(self, replica: Partition, newer: DisklessPart) -> None:
        self._replica, self._newer = replica, newer

    def follow(self) -> None:
        """Watch the diskless part while the replica has watchers."""
        if self._replica.is_watched:
            self._newer.watch_rows(self)
        else:
            self._newer.unwatch_rows(self)

    def notify(self) -> None:
        """See `Watcher`."""
        if self._replica.is_watched:
            self._replica.notify_watchers()
        else:
            self._newer.unwatch_rows(self)
