"""Appending to a log: reserve, write, publish. `log.following` begins the appends of a follower."""

from __future__ import annotations

from typing import Final

from strandline.errors import KafkaStorageError, RecordListTooLarge
from strandline.log.applied_config import AppliedConfig
from strandline.log.epochs import LeaderEpochs
from strandline.log.flusher import FlushPlan, LogFlusher
from strandline.log.offsets import PartitionOffsets
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.producer_state import PartitionProducers
from strandline.log.replay import complete_transaction
from strandline.log.segment import LogSegment
from strandline.log.segments import Segments
from strandline.log.values import AppendOrigin, LogAppendInfo
from strandline.model import NO_OFFSET, NO_TIMESTAMP
from strandline.records import (
    BatchHeader,
    Buffer,
    read_marker,
    stamp,
    validate_internal,
    validate_produced,
)
from strandline.records.validation import ordinary_header, ordinary_internal_header

_CLIENT: Final = AppendOrigin.CLIENT  # an attribute of an enumeration costs as much as a call


class PendingAppend:
    """A batch, or several that lie behind each other in a segment, whose offsets and place in the file are reserved.

    `write` does the blocking system calls and nothing else; it may run in any thread, as long as the appends of one
    log are written in the order in which they began. A duplicate has nothing to write.
    """

    __slots__ = ("_buffer", "batches", "end_offset", "flush", "info", "position", "segment")

    def __init__(
        self, info: LogAppendInfo, segment: LogSegment, buffer: Buffer, position: int, end_offset: int
    ) -> None:
        self.info = info
        self.segment = segment
        self.position = position
        """Where the batch starts in its file."""
        self.end_offset = end_offset
        """The log end offset once this is finished."""
        self.flush: FlushPlan | None = None
        """What `write` forces to disk, None if nothing."""
        self.batches: list[tuple[int, int]] | None = None
        """(last offset, position) of each batch, None if there is only one."""
        self._buffer: Buffer | None = buffer

    @property
    def is_duplicate(self) -> bool:
        """True if there is nothing to write: the batch is in the log already, or about to be."""
        return self.info.is_duplicate

    @property
    def must_leave_loop(self) -> bool:
        """True if `write` calls fsync and therefore may not run on the event loop."""
        return self.flush is not None

    def own_records(self) -> None:
        """Copy the batch, because the owner of its buffer needs the buffer back before the batch is written."""
        if self._buffer is not None:
            self._buffer = bytes(self._buffer)

    def write(self) -> None:
        """Write the batch, and force it to disk if flush.messages says so. Blocking. Raises OSError."""
        buffer = self._buffer
        if buffer is not None:
            self.segment.file.write(buffer, self.position)
            self._buffer = None
        if self.flush is not None:
            self.flush.run()


class LogAppender:
    """Owns the pending appends.

    An append has two halves so that large writes can leave the event loop: `begin` checks the batch, gives it offsets
    and a place in the file; `PendingAppend.write` writes it, in any thread; `finish` shows it to readers. Several may
    be pending; they finish in the order in which they began.
    """

    __slots__ = (
        "_applied",
        "_directory",
        "_env",
        "_epochs",
        "_flusher",
        "_offsets",
        "_producers",
        "_segments",
        "pending",
    )

    def __init__(
        self,
        directory: PartitionDirectory,
        applied: AppliedConfig,
        offsets: PartitionOffsets,
        segments: Segments,
        epochs: LeaderEpochs,
        producers: PartitionProducers,
        flusher: LogFlusher,
    ) -> None:
        self._directory = directory
        self._env = directory.env
        self._applied = applied
        self._offsets = offsets
        self._segments = segments
        self._epochs = epochs
        self._producers = producers
        self._flusher = flusher
        self.pending: list[PendingAppend] = []
        """Begun and not finished, oldest first. For reading only. (An empty deque would take 760 bytes.)"""

    # As leader

    def append(
        self, records: memoryview, leader_epoch: int, origin: AppendOrigin, transaction_version: int
    ) -> LogAppendInfo:
        """Append one batch at once. Only while nothing is pending. Raises what `begin` raises."""
        self.check_nothing_pending()
        pending = self.begin(records, leader_epoch, origin, transaction_version)
        if not pending.info.is_duplicate:
            try:
                pending.write()
            except OSError as error:
                raise self.fail(error) from error
            self.finish(pending)
        return pending.info

    def append_now(self, records: memoryview, leader_epoch: int, origin: AppendOrigin = AppendOrigin.CLIENT) -> int:
        """Append one ordinary batch, written and visible to readers when this returns; its first offset.

        NO_OFFSET if it has to go the way of `begin`, which finds out why: then nothing has happened. It is the same
        way for batches that break no rule and begin nothing (an epoch, a segment, a transaction, a producer's state),
        without the objects that an append needs to wait for its turn, or for a thread.
        """
        directory, offsets, segment = self._directory, self._offsets, self._segments.active
        env, limits = self._env, self._applied.limits
        if (
            self.pending
            or env.directory.error is not None
            or directory.is_closed
            or leader_epoch != self._epochs.latest_begun
        ):
            return NO_OFFSET
        now_ms = env.clock.now_ms()
        if origin is _CLIENT:
            header = ordinary_header(records, limits.batch, now_ms)
        else:
            header = ordinary_internal_header(records, limits.batch)
        if header is None:
            return NO_OFFSET
        size, first_offset, max_timestamp = len(records), offsets.reserved_end, header.max_timestamp
        last_offset = first_offset + header.last_offset_delta
        if segment.should_roll(size, max_timestamp, last_offset, now_ms, limits.roll):
            return NO_OFFSET
        recovery_point = self._flusher.recovery_point
        if last_offset + 1 - recovery_point >= limits.flush_messages:
            return NO_OFFSET
        if header.producer_id >= 0 and not self._producers.append_next(header, last_offset):
            return NO_OFFSET
        try:
            position = segment.reserve(size, max_timestamp, last_offset, limits.index_interval)
            stamp(records, 0, first_offset, leader_epoch)
            segment.file.write(records, position)
        except OSError as error:
            self.fail(error)  # `begin` will say so
            return NO_OFFSET
        segment.file.size = position + size
        offsets.reserved_end = offsets.end = last_offset + 1
        if first_offset == recovery_point:
            env.on_dirty(directory.topic_partition)
        self._segments.recent.add(last_offset, position)
        return first_offset

    def begin(
        self, records: memoryview, leader_epoch: int, origin: AppendOrigin, transaction_version: int
    ) -> PendingAppend:
        """See `UnifiedLog.begin_append`."""
        env = self._env
        if env.directory.error is not None or self._directory.is_closed:
            self._directory.check_online()
        limits = self._applied.limits
        now_ms = env.clock.now_ms()
        validate = validate_produced if origin is _CLIENT else validate_internal
        buffer, header = validate(records, limits=limits.batch, now_ms=now_ms)
        size = len(buffer)
        roll = limits.roll
        if size > roll.segment_bytes:
            raise RecordListTooLarge(
                f"A batch of {size} bytes does not fit into a segment of {roll.segment_bytes} bytes (segment.bytes)."
            )
        offsets = self._offsets
        first_offset = offsets.reserved_end
        last_offset = first_offset + header.last_offset_delta
        max_timestamp = header.max_timestamp
        append_time = max_timestamp if limits.is_log_append_time else NO_TIMESTAMP
        info = LogAppendInfo(first_offset, last_offset, append_time, offsets.start, False, size, max_timestamp)
        recovery_point = self._flusher.recovery_point
        try:
            if leader_epoch != self._epochs.latest_begun:
                self.begin_epoch(leader_epoch, first_offset)
            segment = self._segments.active
            if segment.should_roll(size, max_timestamp, last_offset, now_ms, roll):
                segment = self._segments.roll(first_offset)
            if header.producer_id >= 0 and self._is_duplicate(
                header, buffer, info, origin, transaction_version, segment
            ):
                return PendingAppend(info, segment, buffer, 0, NO_OFFSET)
            segment.file.fileno()  # opened now, it can be written even if the log is moved away meanwhile
            position = segment.reserve(size, max_timestamp, last_offset, limits.index_interval)
            end = last_offset + 1
            pending = PendingAppend(info, segment, buffer, position, end)
            if end - recovery_point >= limits.flush_messages:
                pending.flush = self._flusher.plan(end)
        except OSError as error:
            raise self._directory.fail(error) from error
        stamp(buffer, 0, first_offset, leader_epoch)
        offsets.reserved_end = end
        if first_offset == recovery_point:
            env.on_dirty(self._directory.topic_partition)
        self.pending.append(pending)
        return pending

    def finish(self, pending: PendingAppend) -> None:
        """Make a written batch visible to readers. On the event loop, in the order of `begin`."""
        info = pending.info
        if info.is_duplicate:
            return
        if self.pending.pop(0) is not pending:
            raise RuntimeError(f"Appends to {self._directory.topic_partition} were finished out of order.")
        segment, position = pending.segment, pending.position
        segment.file.size = position + info.size
        self._offsets.end = pending.end_offset
        segments = self._segments
        if segment is segments.active:
            if pending.batches is None:
                segments.recent.add(info.last_offset, position)
            else:
                for last_offset, start in pending.batches:
                    segments.recent.add(last_offset, start)
        if pending.flush is not None:
            self._flusher.finish(pending.flush)

    def fail(self, error: OSError) -> KafkaStorageError:
        """Give up after a failed write: the log directory goes offline. Returns the error for the client."""
        self.pending.clear()
        if self._directory.is_closed:
            return KafkaStorageError(
                f"The log of {self._directory.topic_partition} was closed while it was written to."
            )
        return self._directory.fail(error)

    def abandon(self) -> None:
        """Forget the pending appends: the log is deleted or its directory has failed."""
        self.pending.clear()

    def check_nothing_pending(self) -> None:
        """Raises RuntimeError if what is written at once would overtake something."""
        if self.pending:
            raise RuntimeError(
                f"An append to {self._directory.topic_partition} would overtake one that is being written."
            )

    def begin_epoch(self, leader_epoch: int, first_offset: int) -> None:
        """Let the next batch be the first of this epoch. Raises OSError."""
        self._epochs.begin(leader_epoch, first_offset)
        if self._applied.is_remote:
            # Remote segments are found by epoch, and no batch on this disk could bring their epochs back.
            self._env.on_flush_wanted(self._directory.topic_partition)

    def _is_duplicate(
        self,
        header: BatchHeader,
        buffer: Buffer,
        info: LogAppendInfo,
        origin: AppendOrigin,
        transaction_version: int,
        segment: LogSegment,
    ) -> bool:
        """Let the producer state check the batch and take it over. True, with the first offsets, if it has it."""
        producers = self._producers
        if header.is_control:
            marker = read_marker(buffer)
            if marker is not None:
                completed = producers.append_marker(header, info.first_offset, marker, transaction_version)
                if completed is not None:
                    complete_transaction(producers, completed, segment)
            return False
        duplicate = producers.append_data(header, info.first_offset, origin)
        if duplicate is None:
            return False
        info.is_duplicate = True
        info.first_offset = duplicate.first_offset
        info.last_offset = duplicate.last_offset
        info.log_append_time_ms = info.max_timestamp = duplicate.timestamp
        return True
