"""ListOffsets over a local log: what each special timestamp means. Remote segments are not looked into here."""

from __future__ import annotations

from strandline.errors import OffsetNotAvailable, UnsupportedVersion
from strandline.log import UnifiedLog
from strandline.model import NO_EPOCH, NO_TIMESTAMP, LeaderEpoch, Offset, TimestampMs
from strandline.reads import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    NOTHING,
    FetchIsolation,
    FoundOffset,
)


def list_offset(
    log: UnifiedLog,
    timestamp: TimestampMs,
    *,
    isolation: FetchIsolation,
    leader_epoch: LeaderEpoch,
    has_caught_up: bool = True,
) -> FoundOffset:
    """Find the offset that `timestamp` asks for, as far as a reader of this isolation may see it.

    A leader that has not caught up (`LeaderRole.has_caught_up`) may know a lower end than the leader before it has told
    clients: it raises OffsetNotAvailable rather than let them believe that the log has become shorter (KIP-207).
    """
    end = last_fetchable(log, isolation)
    if timestamp == LATEST:
        if not has_caught_up:
            raise not_caught_up(log)
        return FoundOffset(NO_TIMESTAMP, end, leader_epoch)
    if timestamp == EARLIEST:
        # Tiering was switched off and the log start has not followed yet: offsets below the local log cannot be read.
        return _start(log, log.log_start_offset if log.is_remote else log.local_log_start_offset)
    if timestamp == EARLIEST_LOCAL:
        return _start(log, log.local_log_start_offset)
    found = _find(log, timestamp)
    if found is None or found.offset >= end:
        if not has_caught_up:
            raise not_caught_up(log)
        return NOTHING
    return found


def not_caught_up(log: UnifiedLog) -> OffsetNotAvailable:
    """The refusal of a new leader."""
    return OffsetNotAvailable(
        f"The leader of {log.topic_partition} is new and does not know yet how far the log is replicated."
    )


def _find(log: UnifiedLog, timestamp: TimestampMs) -> FoundOffset | None:
    if timestamp == MAX_TIMESTAMP:
        return log.offset_of_max_timestamp()
    if timestamp == LATEST_TIERED:
        return _latest_tiered(log)
    if timestamp == EARLIEST_PENDING_UPLOAD:
        return _earliest_pending_upload(log)
    if timestamp < 0:
        raise UnsupportedVersion(f"ListOffsets has no special timestamp {timestamp}.")
    return log.offset_by_timestamp(timestamp)


def _latest_tiered(log: UnifiedLog) -> FoundOffset | None:
    highest = log.remote.highest_offset
    return _start(log, highest) if log.is_remote and highest >= 0 else None


def _earliest_pending_upload(log: UnifiedLog) -> FoundOffset | None:
    """The next offset to copy. A new leader does not know it until it has found the segments copied before."""
    highest, start = log.remote.highest_offset, log.log_start_offset
    if not log.is_remote or (highest < 0 and log.local_log_start_offset > start):
        return None
    return _start(log, max(highest + 1, start))


def _start(log: UnifiedLog, offset: Offset) -> FoundOffset:
    epoch = log.epoch_for_offset(offset)
    return FoundOffset(NO_TIMESTAMP, offset, epoch if epoch is not None else NO_EPOCH)


def last_fetchable(log: UnifiedLog, isolation: FetchIsolation) -> Offset:
    """How far a reader of this isolation may see."""
    if isolation is FetchIsolation.TXN_COMMITTED:
        return log.last_stable_offset
    return log.high_watermark if isolation is FetchIsolation.HIGH_WATERMARK else log.log_end_offset
