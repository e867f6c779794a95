"""Appending to a log: reserve, write, publish."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.errors import CorruptMessage, InvalidRecord, KafkaStorageError, RecordListTooLarge
from strandline.log.append import PendingAppend
from strandline.log.flusher import LogFlusher
from strandline.log.producer_state import CompletedTxn
from strandline.log.segment import LogSegment
from strandline.log.transaction_index import AbortedTxn
from strandline.log.values import AppendOrigin, LogAppendInfo
from strandline.model import NO_OFFSET, NO_TIMESTAMP
from strandline.records.batch import BatchHeader, Buffer, crc_matches, iter_headers, stamp
from strandline.records.control import read_marker
from strandline.records.validation import validate_internal, validate_produced


class LogWriter(LogFlusher):
    """The appending side of a log.

    An append has two halves so that large writes can leave the event loop: `begin_append` checks the batch, gives it
    offsets and a place in the file; `PendingAppend.write` writes it, in any thread; `finish_append` shows it to
    readers. Several may be under way; they finish in the order in which they began.
    """

    __slots__ = ()

    def append(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Append one batch as leader, at once. Only while nothing is pending.

        Raises what `begin_append` raises.
        """
        if self._pending:
            raise RuntimeError(f"An append to {self.topic_partition} would overtake one that is being written")
        pending = self.begin_append(
            records, leader_epoch=leader_epoch, origin=origin, transaction_version=transaction_version
        )
        if not pending.info.is_duplicate:
            try:
                pending.write()
            except OSError as error:
                raise self.fail_append(pending, error) from error
            self.finish_append(pending)
        return pending.info

    def begin_append(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
    ) -> PendingAppend:
        """Check one batch, stamp offsets and epoch into it, and reserve its place.

        A duplicate gets the offsets of the first time; those may still be unwritten, so acknowledge it no earlier
        than `log_end_offset` passes them. Raises the errors of `records.validation`, RecordListTooLarge,
        OutOfOrderSequence, InvalidProducerEpoch, InvalidTxnState, TransactionCoordinatorFenced (nothing is changed)
        or KafkaStorageError (the directory is offline).
        """
        if self.env.directory.error is not None or self._is_closed:
            self.check_online()
        limits = self._limits
        now_ms = self.env.clock.now_ms()
        validate = validate_produced if origin is AppendOrigin.CLIENT else validate_internal
        buffer, header = validate(records, limits=limits.batch, now_ms=now_ms)
        size = len(buffer)
        roll = limits.roll
        if size > roll.segment_bytes:
            raise RecordListTooLarge(
                f"A batch of {size} bytes does not fit into a segment of {roll.segment_bytes} bytes (segment.bytes)."
            )
        first_offset = self.reserved_end
        last_offset = first_offset + header.last_offset_delta
        max_timestamp = header.max_timestamp
        append_time = max_timestamp if limits.is_log_append_time else NO_TIMESTAMP
        info = LogAppendInfo(first_offset, last_offset, append_time, self.log_start_offset, False, size, max_timestamp)
        try:
            if leader_epoch != self._written_epoch:
                self._begin_epoch(leader_epoch, first_offset)
            segment = self.segments.active
            if segment.should_roll(size, max_timestamp, last_offset, now_ms, roll):
                segment = self.roll()
            if header.producer_id >= 0 and self._is_duplicate(
                header, buffer, info, origin, transaction_version, segment
            ):
                return PendingAppend(info, segment, buffer, 0, NO_OFFSET)
            segment.file.fileno()  # opened now, it can be written even if the log is moved away meanwhile
            position = segment.reserve(size, max_timestamp, last_offset, limits.index_interval)
            end = last_offset + 1
            pending = PendingAppend(info, segment, buffer, position, end)
            if end - self.recovery_point >= limits.flush_messages:
                pending.sync_with(self._plan_flush(end))
        except OSError as error:
            raise self.env.directory.fail(error) from error
        stamp(buffer, 0, first_offset, leader_epoch)
        self.reserved_end = end
        if first_offset == self.recovery_point:
            self.env.on_dirty(self.topic_partition)
        self._pending.append(pending)
        return pending

    def _begin_epoch(self, leader_epoch: int, first_offset: int) -> None:
        """The checkpoint names an epoch before the first of its batches is in the log."""
        if leader_epoch < 0:
            self.epochs.clear()
        else:
            self.epochs.assign(leader_epoch, first_offset)
        self.epochs.write()
        self._written_epoch = leader_epoch
        if self.is_remote:
            # What is in remote storage is found by the epochs, and no batch on this disk could bring them back.
            self.env.on_flush_wanted(self.topic_partition)

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
        if header.is_control:
            self._take_marker(header, buffer, info.first_offset, origin, transaction_version, segment)
            return False
        duplicate = self.producers.append_data(header, info.first_offset, origin)
        if duplicate is None:
            if header.is_transactional:
                self._first_unstable = self.producers.first_unstable_offset
            return False
        info.is_duplicate = True
        info.first_offset = duplicate.first_offset
        info.last_offset = duplicate.last_offset
        info.log_append_time_ms = info.max_timestamp = duplicate.timestamp
        return True

    def _take_marker(
        self,
        header: BatchHeader,
        buffer: Buffer,
        offset: int,
        origin: AppendOrigin,
        transaction_version: int,
        segment: LogSegment,
    ) -> None:
        marker = read_marker(buffer)
        if marker is None:
            return
        completed = self.producers.append_marker(header, offset, marker, origin, transaction_version)
        if completed is not None:
            self._complete_transaction(completed, segment)

    def _complete_transaction(self, completed: CompletedTxn, segment: LogSegment) -> None:
        stable = self.producers.stable_offset_after(completed)
        if completed.is_aborted:
            segment.txn_index.append(
                AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
            )
        self.producers.complete(completed)
        self._first_unstable = self.producers.first_unstable_offset

    def finish_append(self, pending: PendingAppend) -> None:
        """Show a written batch to readers. On the event loop, in the order of `begin_append`."""
        info = pending.info
        if info.is_duplicate:
            return
        if self._pending.popleft() is not pending:
            raise RuntimeError(f"Appends to {self.topic_partition} were finished out of order")
        segment = pending.segment
        segment.file.size = pending.end_position
        self.log_end_offset = pending.end_offset
        if segment is self.segments.active:
            self._recent.add(info.last_offset, pending.position)
        if pending.flush is not None:
            self._finish_flush(pending.flush)

    def fail_append(self, pending: PendingAppend, error: OSError) -> Exception:
        """Give up after a failed write: the directory goes offline. Returns the error for the client."""
        self._pending.clear()
        if self._is_closed:
            return KafkaStorageError(f"The log of {self.topic_partition} was closed while it was written to.")
        return self.env.directory.fail(error)

    # As follower

    def append_as_follower(self, records: memoryview, *, leader_epoch: int | None = None) -> LogAppendInfo:
        """Append batches of the leader's log as they are. Stops before a batch of a later epoch than `leader_epoch`.

        Raises CorruptMessage or InvalidRecord (nothing of the bad batch and those after it is appended) or
        KafkaStorageError.
        """
        self.check_online()
        if self._pending:
            raise RuntimeError(f"An append to {self.topic_partition} would overtake one that is being written")
        info = LogAppendInfo(NO_OFFSET, NO_OFFSET, NO_TIMESTAMP, self.log_start_offset, False, 0, NO_TIMESTAMP)
        try:
            for header, batch in self._replicated(records, leader_epoch):
                self._append_replicated(header, batch, info)
        except OSError as error:
            raise self.env.directory.fail(error) from error
        return info

    def _replicated(self, records: memoryview, leader_epoch: int | None) -> Iterator[tuple[BatchHeader, memoryview]]:
        for position, header in iter_headers(records):
            if leader_epoch is not None and header.leader_epoch > leader_epoch:
                return
            if not crc_matches(records, position, header):
                raise CorruptMessage(
                    f"The batch at offset {header.base_offset} was damaged on its way from the leader."
                )
            if header.base_offset < self.reserved_end:
                raise InvalidRecord(
                    f"The leader sent offset {header.base_offset}, but {self.topic_partition} ends at "
                    f"{self.reserved_end}."
                )
            yield header, records[position : position + header.size]

    def _append_replicated(self, header: BatchHeader, batch: memoryview, info: LogAppendInfo) -> None:
        last_offset = header.last_offset
        now_ms = self.env.clock.now_ms()
        if header.leader_epoch != self._written_epoch:
            self._begin_epoch(header.leader_epoch, header.base_offset)
        segment = self.segments.active
        if segment.should_roll(len(batch), header.max_timestamp, last_offset, now_ms, self._limits.roll):
            segment = self.roll(header.base_offset)
        self._follow_producer(header, batch, segment)
        position = segment.reserve(len(batch), header.max_timestamp, last_offset, self._limits.index_interval)
        segment.file.write(batch, position)
        segment.file.size = position + len(batch)
        if self.reserved_end == self.recovery_point:
            self.env.on_dirty(self.topic_partition)
        self.reserved_end = self.log_end_offset = last_offset + 1
        self._recent.add(last_offset, position)
        if info.size == 0:
            info.first_offset = header.base_offset
        info.last_offset = last_offset
        info.size += len(batch)
        info.max_timestamp = max(info.max_timestamp, header.max_timestamp)

    def _follow_producer(self, header: BatchHeader, batch: Buffer, segment: LogSegment) -> None:
        """Let producer state and transaction index follow a batch that is in the log, or will be."""
        if header.producer_id < 0:
            return
        origin = AppendOrigin.REPLICATION
        if header.is_control:
            self._take_marker(header, batch, header.base_offset, origin, 0, segment)
            return
        self.producers.append_data(header, header.base_offset, origin)
        if header.is_transactional:
            self._first_unstable = self.producers.first_unstable_offset
