"""Which converted segments expire, and where the log begins then. Pure.

Converted segments are those of the pipeline, from B0 on. The control plane has given every offset there to one record,
so that no history of leaders has to be compared: a segment belongs to the log, or is another copy of the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence, Set
from dataclasses import dataclass
from uuid import UUID

from strandline.controlplane import DisklessLog
from strandline.controlplane.values import LATE_MS
from strandline.model import Offset, TimestampMs
from strandline.remote.manager import Deletion, DeletionReason, Lookup, redundant_segments
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
    next_due_byte_size: int | None
    """How many bytes the rows of the log have when the next segment expires by size; None if none does."""
    remaining: int
    """Segments that stay, in whatever state."""
    converted_bytes: int
    """Of the segments that stay and are part of the log."""


def always(segment: RemoteLogSegmentMetadata) -> bool:
    """Whether a segment from B0 on belongs to the log."""
    return True


def plan_expiry(
    log: DisklessLog,
    segments: Sequence[RemoteLogSegmentMetadata],
    retention: ConvertedRetention,
    *,
    lookup: Lookup,
    now_ms: TimestampMs,
    under_way: Set[UUID] = frozenset(),
    is_of_log: Callable[[RemoteLogSegmentMetadata], bool] = always,
) -> Generator[None, None, ConvertedExpiry]:
    """What to delete of the segments from B0 on, which are given in any state, by start offset.

    In small steps: there may be very many segments, and other tasks have to run meanwhile. `lookup` is the one of
    readers. Segments that are `under_way` are left alone: they are finished or given up elsewhere. A segment that was
    announced more than LATE_MS ago and that the control plane does not know is deleted.

    While the log begins below B0, its older part goes first, and that is not decided here. Segments of that part may
    have other records than the log: `is_of_log` tells.
    """
    others = [segment for segment in segments if segment.segment_id.id not in under_way]
    finished = [segment for segment in others if segment.state is _S.COPY_SEGMENT_FINISHED]
    yield
    spare = {s.segment_id.id: s for s in (yield from redundant_segments(finished, lookup))}
    start = log.log_start_offset
    inside = [s for s in finished if s.end_offset < log.diskless_start_offset and s.segment_id.id not in spare]
    counted = [s for s in inside if is_of_log(s)]
    if start >= log.diskless_log_start_offset:
        start = _retained_from(log, [s for s in counted if s.end_offset >= start], retention, now_ms)
    yield
    gone = [segment for segment in finished if segment.end_offset < start]
    deletions = [
        *(Deletion(s, DeletionReason.ABANDONED) for s in others if _is_unknown(s, now_ms)),
        *(Deletion(s, DeletionReason.INTERRUPTED) for s in others if s.state is _S.DELETE_SEGMENT_STARTED),
        *(Deletion(s, _reason(s, log, retention, now_ms)) for s in gone),
        *(Deletion(s, DeletionReason.REDUNDANT) for s in spare.values() if s.end_offset >= start),
    ]
    yield
    going = {deletion.segment.segment_id.id for deletion in deletions}
    kept = [segment for segment in segments if segment.segment_id.id not in going]
    left = [s for s in counted if s.end_offset >= start] if start >= log.diskless_log_start_offset else []
    return ConvertedExpiry(
        log_start=start,
        deletions=deletions,
        next_due_ms=None if retention.ms < 0 or not left else left[0].max_timestamp_ms + retention.ms,
        next_due_byte_size=None if retention.bytes < 0 or not left else retention.bytes - _size(left[1:]),
        remaining=len(kept),
        converted_bytes=_size(
            s for s in kept if s.state is _S.COPY_SEGMENT_FINISHED and s.end_offset < log.diskless_start_offset
        ),
    )


def _is_unknown(segment: RemoteLogSegmentMetadata, now_ms: TimestampMs) -> bool:
    """Whether the control plane knows nothing of an upload, and this is no accident of timing.

    Its row is there before it is announced, and was looked for before. It may be announced after its row has gone, by a
    leader that was replaced; or the database has lost its last commits.
    """
    return segment.state is _S.COPY_SEGMENT_STARTED and now_ms - segment.event_timestamp_ms > LATE_MS


def _size(segments: Iterable[RemoteLogSegmentMetadata]) -> int:
    return sum(segment.segment_size_in_bytes for segment in segments)


def _retained_from(
    log: DisklessLog, counted: Sequence[RemoteLogSegmentMetadata], retention: ConvertedRetention, now_ms: TimestampMs
) -> Offset:
    """The log start that retention allows, judged by the committed segments that are in the log, oldest first."""
    start = log.log_start_offset
    size = log.byte_size + _size(counted)
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
