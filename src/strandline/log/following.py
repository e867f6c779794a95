"""Appending what a leader has sent: batches keep their offsets and epochs, and are written as they were received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.errors import CorruptMessage, InvalidRecord, StrandlineError
from strandline.log.appender import PendingAppend
from strandline.log.applied_config import AppliedConfig
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.replay import follow_batch
from strandline.log.segment import LogSegment
from strandline.log.values import LogAppendInfo
from strandline.model import NO_OFFSET, NO_TIMESTAMP
from strandline.records import BatchHeader, crc_matches, iter_headers

if TYPE_CHECKING:
    from strandline.log.unified import UnifiedLog


class ReplicatedBatches:
    """The appends that a set of the leader's batches has become, in their order, and why it was not all of them."""

    __slots__ = ("error", "info", "pending")

    def __init__(self, log_start_offset: int) -> None:
        self.pending: Final[list[PendingAppend]] = []
        """One for each segment that gets some."""
        self.info: Final = LogAppendInfo(NO_OFFSET, NO_OFFSET, NO_TIMESTAMP, log_start_offset, False, 0, NO_TIMESTAMP)
        """Of all of them. `size` is 0 if there is nothing to append."""
        self.error: StrandlineError | None = None
        """What is wrong with the first batch that is not among them, if something is."""

    @property
    def must_leave_loop(self) -> bool:
        """True if writing them calls fsync."""
        return bool(self.pending) and self.pending[-1].must_leave_loop


class FollowerAppender:
    """Begins the appends of a follower. They are pending in `LogAppender` like those of a leader, and finished there.

    It has no state: created for each use, it takes no memory in an idle log.
    """

    __slots__ = ("_appender", "_applied", "_directory", "_epochs", "_flusher", "_offsets", "_producers", "_segments")

    def __init__(self, log: UnifiedLog, directory: PartitionDirectory, applied: AppliedConfig) -> None:
        self._directory = directory
        self._applied = applied
        self._offsets = log.offsets
        self._segments = log.segments
        self._epochs = log.epochs
        self._producers = log.producers
        self._flusher = log.flusher
        self._appender = log.appender

    def append(self, records: memoryview, leader_epoch: int | None) -> LogAppendInfo:
        """See `UnifiedLog.append_as_follower`."""
        appender = self._appender
        appender.check_nothing_pending()
        batches = self.begin(records, leader_epoch)
        for pending in batches.pending:
            try:
                pending.write()
            except OSError as error:
                raise appender.fail(error) from error
            appender.finish(pending)
        if batches.error is not None:
            raise batches.error
        return batches.info

    def begin(self, records: memoryview, leader_epoch: int | None) -> ReplicatedBatches:
        """See `UnifiedLog.begin_append_as_follower`."""
        self._directory.check_online()
        batches = ReplicatedBatches(self._offsets.start)
        found = self._check(records, leader_epoch, batches)
        if not found:
            return batches
        try:
            self._reserve(records, found, batches)
        except OSError as error:
            raise self._directory.fail(error) from error
        return batches

    def _check(
        self, records: memoryview, leader_epoch: int | None, batches: ReplicatedBatches
    ) -> list[tuple[int, BatchHeader]]:
        """(position, header) of the batches that may be appended. Each is read, and its checksum computed, once."""
        found: list[tuple[int, BatchHeader]] = []
        next_offset = self._offsets.reserved_end
        try:
            for position, header in iter_headers(records):
                if leader_epoch is not None and header.leader_epoch > leader_epoch:
                    break
                if not crc_matches(records, position, header):
                    raise CorruptMessage(
                        f"The batch at offset {header.base_offset} was damaged on its way from the leader."
                    )
                if header.base_offset < next_offset or header.last_offset_delta < 0:
                    raise InvalidRecord(
                        f"The leader sent offsets {header.base_offset} to {header.last_offset}, but "
                        f"{self._directory.topic_partition} ends at {next_offset}."
                    )
                next_offset = header.next_offset
                found.append((position, header))
        except (CorruptMessage, InvalidRecord) as error:
            batches.error = error
        return found

    def _reserve(self, records: memoryview, found: list[tuple[int, BatchHeader]], batches: ReplicatedBatches) -> None:
        limits, offsets, segments = self._applied.limits, self._offsets, self._segments
        env = self._directory.env
        now_ms, interval = env.clock.now_ms(), limits.index_interval
        run: _Run | None = None
        for position, header in found:
            size, last_offset = header.size, header.last_offset
            if header.leader_epoch != self._epochs.latest_begun:
                self._appender.begin_epoch(header.leader_epoch, header.base_offset)
            segment = segments.active
            if segment.should_roll(size, header.max_timestamp, last_offset, now_ms, limits.roll):
                segment = segments.roll(header.base_offset)
            if run is None or run.segment is not segment:
                if run is not None:
                    self._add(run, records, batches)
                segment.file.fileno()  # opened now, it can be written even if the log is moved away meanwhile
                run = _Run(segment, position, header.base_offset)
            if header.producer_id >= 0:
                follow_batch(self._producers, header, records[position : position + size], segment)
            place = segment.reserve(size, header.max_timestamp, last_offset, interval)
            run.add(place, position + size, last_offset, header.max_timestamp)
            if offsets.reserved_end == self._flusher.recovery_point:
                env.on_dirty(self._directory.topic_partition)
            offsets.reserved_end = last_offset + 1
        if run is not None:
            self._add(run, records, batches)
            if offsets.reserved_end - self._flusher.recovery_point >= limits.flush_messages:
                batches.pending[-1].flush = self._flusher.plan(offsets.reserved_end)

    def _add(self, run: _Run, records: memoryview, batches: ReplicatedBatches) -> None:
        size = run.end - run.start
        info = LogAppendInfo(
            run.first_offset, run.last_offset, NO_TIMESTAMP, self._offsets.start, False, size, run.max_timestamp
        )
        pending = PendingAppend(info, run.segment, records[run.start : run.end], run.places[0][1], run.last_offset + 1)
        if len(run.places) > 1:
            pending.batches = run.places
        self._appender.pending.append(pending)
        batches.pending.append(pending)
        whole = batches.info
        if whole.size == 0:
            whole.first_offset = run.first_offset
        whole.last_offset = run.last_offset
        whole.size += size
        whole.max_timestamp = max(whole.max_timestamp, run.max_timestamp)


class _Run:
    """Batches that follow each other in the buffer and go into the same segment: they are written in one piece."""

    __slots__ = ("end", "first_offset", "last_offset", "max_timestamp", "places", "segment", "start")

    def __init__(self, segment: LogSegment, start: int, first_offset: int) -> None:
        self.segment = segment
        self.start = self.end = start
        self.first_offset = self.last_offset = first_offset
        self.max_timestamp = NO_TIMESTAMP
        self.places: list[tuple[int, int]] = []

    def add(self, place: int, end: int, last_offset: int, max_timestamp: int) -> None:
        self.places.append((last_offset, place))
        self.end = end
        self.last_offset = last_offset
        self.max_timestamp = max(self.max_timestamp, max_timestamp)
