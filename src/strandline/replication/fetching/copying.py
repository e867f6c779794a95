"""What becomes of a follower's log when an answer of its leader has come."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from strandline.errors import InvalidRecord, KafkaStorageError, StrandlineError
from strandline.log import PendingAppend, ReplicatedBatches, UnifiedLog
from strandline.model import Offset
from strandline.records import read_header
from strandline.replication.fetching.followed import FollowedPartition
from strandline.replication.leader import LARGE_APPEND
from strandline.replication.partition import Partition
from strandline.wire.fetch_client import FetchedPartition


class HeldFrame(Protocol):
    """The memory in which records lie that are being written."""

    def hold(self) -> None:
        """A write needs it until `release`."""

    def release(self) -> None:
        """A write has ended."""


class Copied(NamedTuple):
    """What was appended of an answer. If not `is_written`, a function is called when it is."""

    size: int
    next_offset: int
    is_written: bool
    error: StrandlineError | None
    """Why not all of it was appended, if something was wrong with it."""


def copy_records(
    followed: FollowedPartition,
    records: memoryview,
    frame: HeldFrame,
    written: Callable[[StrandlineError | None], None],
    *,
    leader_log_start: Offset = 0,
) -> Copied:
    """Append what the leader has sent; small sets of records at once, large ones in the thread of the log directory.

    Then `written` is called later, with the error if the log directory has failed. Raises KafkaStorageError.
    """
    log = followed.partition.log
    _make_room(log, records, leader_log_start)
    batches = log.begin_append_as_follower(records, leader_epoch=followed.leader_epoch)
    info = batches.info
    if not info.size:
        error = batches.error or _nothing(followed, records)
        return Copied(0, log.reserved_end, True, error)
    is_large = info.size >= LARGE_APPEND or batches.must_leave_loop
    if is_large:
        frame.hold()
        _write_later(followed.partition, batches, frame, written)
    else:
        _write_now(log, batches)
    return Copied(info.size, info.last_offset + 1, not is_large, batches.error)


def _make_room(log: UnifiedLog, records: memoryview, leader_log_start: Offset) -> None:
    """An empty log begins with the batch that holds its end: the leader's log start may lie inside a batch.

    A log is as good as empty if everything in it is deleted on the leader.
    """
    if max(log.log_start_offset, leader_log_start) < log.reserved_end or len(records) < 61:
        return
    header = read_header(records)
    if header.base_offset < log.reserved_end <= header.last_offset:
        log.truncate_fully_and_start_at(header.base_offset)


def _nothing(followed: FollowedPartition, records: memoryview) -> InvalidRecord:
    return InvalidRecord(
        f"None of the {len(records)} bytes that broker {followed.leader} sent of "
        f"{followed.partition.topic_partition} is a whole batch of epoch {followed.leader_epoch} or before."
    )


def _write_now(log: UnifiedLog, batches: ReplicatedBatches) -> None:
    for pending in batches.pending:
        try:
            pending.write()
        except OSError as error:
            raise log.fail_append(error) from error
        log.finish_append(pending)


def _write_later(
    partition: Partition,
    batches: ReplicatedBatches,
    frame: HeldFrame,
    written: Callable[[StrandlineError | None], None],
) -> None:
    log, last = partition.log, batches.pending[-1]

    def finish(pending: PendingAppend, error: OSError | None) -> None:
        failure = _finish(log, pending, error)
        if failure is None:
            partition.log_has_grown()  # which may be led by this broker by now
        if pending is last:
            frame.release()
            written(failure)

    for pending in batches.pending:
        partition.writer.submit(pending, partial(finish, pending))


def _finish(log: UnifiedLog, pending: PendingAppend, error: OSError | None) -> StrandlineError | None:
    """Show a written append to readers. The error if the log cannot be used any more."""
    if error is not None:
        return log.fail_append(error)
    if log.is_offline:
        return KafkaStorageError(f"The log of {log.topic_partition} was closed while it was written to.")
    log.finish_append(pending)
    return None


def follow_leader(partition: Partition, row: FetchedPartition, *, is_longer: bool) -> None:
    """Take the high watermark and the log start of the leader, as far as the own log goes, and tell readers."""
    log = partition.log
    is_moved = log.update_high_watermark(row.high_watermark)
    if row.log_start_offset > log.log_start_offset:
        log.start.increment(min(row.log_start_offset, log.high_watermark))
        is_moved = True
    if is_moved or is_longer:
        partition.notify_watchers()
