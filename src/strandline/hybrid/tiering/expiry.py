"""Which converted segments expire, and where the log begins then. Pure.

Converted segments are those of the pipeline, from B0 on. The control plane has given every offset there to one record,
so that no history of leaders has to be compared: a segment belongs to the log, or is another copy of the same records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.controlplane.values import DisklessLog
from strandline.model import Offset, TimestampMs
from strandline.remote.manager.deleting.plan import Deletion, DeletionReason, redundant_segments
from strandline.remote.manager.history import Lookup
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentState

_S = RemoteLogSegmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedRetention:
    """retention.ms and retention.bytes of a topic; -1: no limit."""

    ms: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedExpiry:
    """The segments to delete, after the log start has moved."""

    log_start: Offset
    """Where the log begins from now on: never below where it begins now."""
    deletions: Sequence[Deletion]
    next_due_ms: TimestampMs | None
    """When the next segment expires by its age; None if none does."""
    remaining: int
    """Segments that stay, in whatever state."""
    converted_bytes: int
    """Of the segments that stay."""


def plan_expiry(
    log: DisklessLog,
    segments: Sequence[RemoteLogSegmentMetadata],
    retention: ConvertedRetention,
    *,
    lookup: Lookup,
    now_ms: TimestampMs,
) -> ConvertedExpiry:
    """What to delete of the segments from B0 on, which are given in any state, by start offset.

    `lookup` is the one of readers.

    While the log begins below B0, its older part goes first, and that is not decided here.
    """
    finished = [segment for segment in segments if segment.state is _S.COPY_SEGMENT_FINISHED]
    start = log.log_start_offset
    if start >= log.diskless_log_start_offset:
        start = _retained_from(log, finished, retention, now_ms, lookup)
    gone = [segment for segment in finished if segment.end_offset < start]
    deletions = [
        *(Deletion(s, DeletionReason.INTERRUPTED) for s in segments if s.state is _S.DELETE_SEGMENT_STARTED),
        *(Deletion(s, _reason(s, log, retention, now_ms)) for s in gone),
    ]
    spare = _redundant([segment for segment in finished if segment.end_offset >= start], lookup)
    deletions += (Deletion(segment, DeletionReason.REDUNDANT) for segment in spare)
    going = {deletion.segment.segment_id.id for deletion in deletions}
    kept = [segment for segment in segments if segment.segment_id.id not in going]
    due = min((s.max_timestamp_ms for s in kept if s.state is _S.COPY_SEGMENT_FINISHED), default=None)
    return ConvertedExpiry(
        log_start=start,
        deletions=deletions,
        next_due_ms=None if due is None or retention.ms < 0 else due + retention.ms,
        remaining=len(kept),
        converted_bytes=sum(s.segment_size_in_bytes for s in kept if s.state is _S.COPY_SEGMENT_FINISHED),
    )


def _retained_from(
    log: DisklessLog,
    finished: Sequence[RemoteLogSegmentMetadata],
    retention: ConvertedRetention,
    now_ms: TimestampMs,
    lookup: Lookup,
) -> Offset:
    """The log start that retention allows, judged by the committed segments, oldest first."""
    start = log.log_start_offset
    counted = [s for s in finished if start <= s.end_offset < log.diskless_start_offset]
    spare = {segment.segment_id.id for segment in _redundant(counted, lookup)}
    counted = [segment for segment in counted if segment.segment_id.id not in spare]
    size = log.byte_size + sum(segment.segment_size_in_bytes for segment in counted)
    for segment in counted:
        is_old = retention.ms >= 0 and now_ms - segment.max_timestamp_ms >= retention.ms
        is_too_much = 0 <= retention.bytes <= size - segment.segment_size_in_bytes
        if not is_old and not is_too_much:
            break
        size -= segment.segment_size_in_bytes
        start = max(start, segment.end_offset + 1)
    return start


def _reason(
    segment: RemoteLogSegmentMetadata, log: DisklessLog, retention: ConvertedRetention, now_ms: TimestampMs
) -> DeletionReason:
    if segment.end_offset < log.log_start_offset:
        return DeletionReason.LOG_START
    is_old = retention.ms >= 0 and now_ms - segment.max_timestamp_ms >= retention.ms
    return DeletionReason.TIME if is_old else DeletionReason.SIZE


def _redundant(finished: Sequence[RemoteLogSegmentMetadata], lookup: Lookup) -> list[RemoteLogSegmentMetadata]:
    """Copies of records that readers find in another segment: a database that was set back had a segment made again."""
    steps = redundant_segments(finished, lookup)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: list[RemoteLogSegmentMetadata] = end.value
            return found
