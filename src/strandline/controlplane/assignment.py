"""How batches get their offsets: rules and arithmetic, without a database.

The caller has locked the logs, and stores the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from strandline.controlplane.values import (
    AbortedRange,
    BatchToCommit,
    CommittedBatch,
    FileToCommit,
    MarkerToCommit,
    Refusal,
)
from strandline.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    StrandlineError,
    TransactionCoordinatorFenced,
)
from strandline.model import NO_OFFSET, LeaderEpoch, Offset, ProducerId, TimestampMs, TopicIdPartition
from strandline.records import NOT_VERIFIED, ProducerEntry, TimestampType


@dataclass(slots=True)
class LogTail:
    """The end of one log, where batches are added."""

    log_id: int
    log_start_offset: Offset
    high_watermark: Offset
    max_timestamp: TimestampMs
    """The largest since the log was last empty."""
    last_epoch: LeaderEpoch
    """The largest that a batch ever had."""
    first_unstable_offset: Offset = NO_OFFSET
    """Where the first open transaction begins; -1 if none is open."""
    last_aborted_offset: Offset = NO_OFFSET
    """The newest abort marker."""
    added_bytes: int = 0
    open_transactions: dict[ProducerId, Offset] = field(default_factory=dict)
    """Where they begin. Complete only for logs in which one of them ends: the others need only the first."""

    def begin_transaction(self, producer_id: ProducerId) -> None:
        """The next batch is the first of a transaction."""
        self.open_transactions[producer_id] = self.high_watermark
        if self.first_unstable_offset < 0:
            self.first_unstable_offset = self.high_watermark

    def end_transaction(self, producer_id: ProducerId) -> None:
        """The next batch is the marker of a transaction."""
        self.open_transactions.pop(producer_id, None)
        self.first_unstable_offset = min(self.open_transactions.values(), default=NO_OFFSET)


@dataclass(slots=True)
class NewRow:
    """A row of inkless_batch. It grows while the next batch of its log is adjacent in the object."""

    log: LogTail
    object_key: str
    base_offset: Offset
    last_offset: Offset
    byte_offset: int
    byte_size: int
    timestamp_type: TimestampType
    max_timestamp: TimestampMs
    running_max_timestamp: TimestampMs
    leader_epoch: LeaderEpoch
    """The epoch kept: epochs never go back along a log, whatever a broker with old metadata commits."""
    accepted_epoch: LeaderEpoch
    """The epoch that the footer of the object names, by which extents are divided: a row lies within one extent."""

    def is_continued_by(self, batch: BatchToCommit) -> bool:
        """Whether the next batch of the log can be part of this row without loss of information."""
        return (
            self.byte_offset + self.byte_size == batch.byte_offset
            and self.timestamp_type == batch.timestamp_type
            and self.accepted_epoch == batch.leader_epoch
        )


class OffsetAssignment:
    """Assigns offsets to the batches of files, one file after the other, and collects the changes."""

    def __init__(
        self,
        logs: Mapping[TopicIdPartition, LogTail],
        producers: dict[tuple[int, ProducerId], ProducerEntry],
        *,
        now_ms: TimestampMs,
    ) -> None:
        self._logs, self._producers, self._now_ms = logs, producers, now_ms
        self.rows: list[NewRow] = []
        self.changed_logs: dict[int, LogTail] = {}
        self.changed_producers: dict[tuple[int, ProducerId], ProducerEntry] = {}
        self.aborted: list[tuple[int, AbortedRange]] = []
        """With the log of each."""

    def add(self, file: FileToCommit) -> tuple[CommittedBatch, ...]:
        """Assign offsets to the batches of a file; returns an answer for each."""
        return tuple(self._place(file.object_key, batch) for batch in file.batches)

    def _place(self, object_key: str, batch: BatchToCommit) -> CommittedBatch:
        log = self._logs.get(batch.partition)
        if log is None:
            return CommittedBatch(Refusal.UNKNOWN_LOG, message="This topic or partition is unknown, or was deleted.")
        if batch.producer_id < 0:
            return self._accept(log, object_key, batch)
        key = (log.log_id, batch.producer_id)
        producer = self._producers.get(key) or ProducerEntry(batch.producer_id)
        if batch.marker is not None:
            return self._end_transaction(log, producer, object_key, batch, batch.marker)
        is_next = producer.is_next(batch)
        if not is_next:
            duplicate = producer.duplicate_of(batch)
            if duplicate is not None:
                return CommittedBatch(
                    None, duplicate.first_offset, duplicate.timestamp, log.log_start_offset, is_duplicate=True
                )
        if not is_next or batch.verification is not NOT_VERIFIED:
            try:
                _check(producer, batch, is_next=is_next)
            except (InvalidProducerEpoch, OutOfOrderSequence, InvalidTxnState) as error:
                return _refused(error)
        if batch.is_transactional and producer.txn_first_offset < 0:
            producer.txn_first_offset = log.high_watermark
            log.begin_transaction(batch.producer_id)
        answer = self._accept(log, object_key, batch)
        if answer.log_append_time_ms >= 0:
            batch = batch._replace(max_timestamp=answer.log_append_time_ms)
        producer.add_batch(batch, log.high_watermark - 1)
        self._producers[key] = self.changed_producers[key] = producer
        return answer

    def _end_transaction(
        self, log: LogTail, producer: ProducerEntry, object_key: str, batch: BatchToCommit, marker: MarkerToCommit
    ) -> CommittedBatch:
        """A marker without an open transaction is kept all the same: its epochs fence older batches and markers."""
        try:
            producer.check_marker(
                batch.producer_epoch, marker.coordinator_epoch, marker.transaction_version, marker.start_ms
            )
        except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
            return _refused(error)
        producer.move_to_epoch(batch.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = batch.max_timestamp
        producer.txn_ended_ms = max(producer.txn_ended_ms, marker.start_ms)
        first_offset, producer.txn_first_offset = producer.txn_first_offset, NO_OFFSET
        offset = log.high_watermark
        is_aborted = marker.is_abort and first_offset >= 0
        log.end_transaction(batch.producer_id)
        if is_aborted:
            log.last_aborted_offset = offset
            stable = log.first_unstable_offset if log.first_unstable_offset >= 0 else offset + 1
            self.aborted.append((log.log_id, AbortedRange(batch.producer_id, first_offset, offset, stable)))
        key = (log.log_id, batch.producer_id)
        self._producers[key] = self.changed_producers[key] = producer
        answer = self._accept(log, object_key, batch)
        return answer._replace(aborted_from=first_offset) if is_aborted else answer

    def _accept(self, log: LogTail, object_key: str, batch: BatchToCommit) -> CommittedBatch:
        base_offset = log.high_watermark
        append_time = self._now_ms if batch.timestamp_type is TimestampType.LOG_APPEND_TIME else -1
        timestamp = batch.max_timestamp if append_time < 0 else append_time
        log.high_watermark += batch.record_count
        log.added_bytes += batch.byte_size
        log.max_timestamp = max(log.max_timestamp, timestamp)
        log.last_epoch = max(log.last_epoch, batch.leader_epoch)
        self.changed_logs[log.log_id] = log
        row = self.rows[-1] if self.rows else None
        if row and row.log is log and row.object_key == object_key and row.is_continued_by(batch):
            row.last_offset = log.high_watermark - 1
            row.byte_size += batch.byte_size
            row.max_timestamp = max(row.max_timestamp, timestamp)
            row.running_max_timestamp = log.max_timestamp
        else:
            self.rows.append(
                NewRow(
                    log,
                    object_key,
                    base_offset,
                    log.high_watermark - 1,
                    batch.byte_offset,
                    batch.byte_size,
                    batch.timestamp_type,
                    timestamp,
                    log.max_timestamp,
                    log.last_epoch,
                    batch.leader_epoch,
                )
            )
        return CommittedBatch(
            None,
            base_offset,
            append_time,
            log.log_start_offset,
            leader_epoch=log.last_epoch,
            first_unstable_offset=log.first_unstable_offset,
            last_aborted_offset=log.last_aborted_offset,
        )


_REFUSALS: Final = {
    InvalidProducerEpoch: Refusal.INVALID_PRODUCER_EPOCH,
    OutOfOrderSequence: Refusal.OUT_OF_ORDER_SEQUENCE,
    InvalidTxnState: Refusal.INVALID_TXN_STATE,
    TransactionCoordinatorFenced: Refusal.COORDINATOR_FENCED,
}


def _check(producer: ProducerEntry, batch: BatchToCommit, *, is_next: bool) -> None:
    """Raises InvalidProducerEpoch, OutOfOrderSequence, InvalidTxnState."""
    if not is_next:
        producer.check_epoch(batch.producer_epoch)
        producer.check_sequence(batch)
        producer.check_transaction(batch)
    producer.check_verified(batch, batch.verification)


def _refused(error: StrandlineError) -> CommittedBatch:
    return CommittedBatch(_REFUSALS[type(error)], message=str(error))
