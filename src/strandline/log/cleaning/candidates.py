"""Which part of a log can be cleaned, and which log needs it most. Decides; does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strandline.log.segment import LogSegment
from strandline.model import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from strandline.log.unified import UnifiedLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A log with a part to clean: offsets [first_dirty, end), in whole segments."""

    log: UnifiedLog
    first_dirty: int
    end: int
    """The base offset of the first segment that may not be cleaned."""
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int
    """How long ago max.compaction.lag.ms wanted this cleaned; 0 if it does not."""
    is_checkpoint_invalid: bool

    @property
    def ratio(self) -> float:
        """The dirty share of what a pass would read."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the topic's settings want a pass now."""
        if not self.dirty_bytes:
            return False
        return self.overdue_ms > 0 or self.ratio > self.log.config.min_cleanable_dirty_ratio


def assess(log: UnifiedLog, checkpoint: int | None, now_ms: int) -> Candidate:
    """What there is to clean in a log whose last pass ended at `checkpoint`."""
    segments = log.segments.as_list()
    first_dirty, is_invalid = _first_dirty(log, checkpoint)
    dirty = [segment for segment in segments_between(segments, first_dirty, INT64_MAX) if segment is not segments[-1]]
    limit = min(log.last_stable_offset, segments[-1].base_offset, _lag_limit(log, dirty, now_ms))
    end = _segment_start(segments, max(limit, first_dirty))
    return Candidate(
        log=log,
        first_dirty=first_dirty,
        end=end,
        clean_bytes=sum(segment.size for segment in segments if segment.base_offset < first_dirty),
        dirty_bytes=sum(segment.size for segment in segments_between(segments, min(first_dirty, end), end)),
        overdue_ms=_overdue_ms(log, dirty, now_ms),
        is_checkpoint_invalid=is_invalid,
    )


def dirtiest(candidates: Iterable[Candidate]) -> Candidate | None:
    """The log to clean next, None if none needs it."""
    return max((candidate for candidate in candidates if candidate.is_due), key=lambda c: c.ratio, default=None)


def segments_between(segments: Sequence[LogSegment], start: int, end: int) -> list[LogSegment]:
    """The segments that hold offsets of [start, end), the one in which `start` lies included."""
    if start >= end:
        return []
    found = []
    for segment, follower in zip(segments, [*segments[1:], None], strict=True):
        if segment.base_offset < end and (follower is None or follower.base_offset > start):
            found.append(segment)
    return found


def groups_of(
    segments: Sequence[LogSegment], *, segment_bytes: int, index_bytes: int, end: int
) -> list[list[LogSegment]]:
    """Put neighbours together that fit into one segment, so that cleaning does not leave ever smaller ones.

    `end` is where the offsets of the last segment end.
    """
    groups: list[_Group] = []
    for index, segment in enumerate(segments):
        last_offset = (segments[index + 1].base_offset if index + 1 < len(segments) else end) - 1
        if not groups or not groups[-1].has_room_for(segment, last_offset, segment_bytes, index_bytes):
            groups.append(_Group())
        groups[-1].add(segment)
    return [group.segments for group in groups]


class _Group:
    __slots__ = ("_offset_index", "_size", "_time_index", "segments")

    def __init__(self) -> None:
        self.segments: list[LogSegment] = []
        self._size = self._offset_index = self._time_index = 0

    def has_room_for(self, segment: LogSegment, last_offset: int, segment_bytes: int, index_bytes: int) -> bool:
        return (
            self._size + segment.size <= segment_bytes
            and self._offset_index + _offset_index_bytes(segment) <= index_bytes
            and self._time_index + _time_index_bytes(segment) <= index_bytes
            # An empty segment has no offsets to address: it may always join.
            and (not segment.size or last_offset - self.segments[0].base_offset <= INT32_MAX)
        )

    def add(self, segment: LogSegment) -> None:
        self.segments.append(segment)
        self._size += segment.size
        self._offset_index += _offset_index_bytes(segment)
        self._time_index += _time_index_bytes(segment)


def _offset_index_bytes(segment: LogSegment) -> int:
    return segment.offset_index.count * segment.offset_index.ENTRY_SIZE


def _time_index_bytes(segment: LogSegment) -> int:
    return segment.time_index.count * segment.time_index.ENTRY_SIZE


def _first_dirty(log: UnifiedLog, checkpoint: int | None) -> tuple[int, bool]:
    """Where the dirty part starts, and whether the checkpoint is of no use (the log was cut at one of its ends)."""
    start = log.log_start_offset
    if checkpoint is None:
        return start, False
    if start <= checkpoint <= log.log_end_offset:
        return checkpoint, False
    return start, True


def _lag_limit(log: UnifiedLog, dirty: Sequence[LogSegment], now_ms: int) -> int:
    """The first segment with a record younger than min.compaction.lag.ms."""
    lag = log.config.min_compaction_lag_ms
    if lag <= 0:
        return INT64_MAX
    young = (segment.base_offset for segment in dirty if segment.largest_timestamp > now_ms - lag)
    return next(young, INT64_MAX)


def _overdue_ms(log: UnifiedLog, dirty: Sequence[LogSegment], now_ms: int) -> int:
    lag = log.config.max_compaction_lag_ms
    if lag >= INT64_MAX:
        return 0
    oldest = min((stamp for segment in dirty if (stamp := segment.first_timestamp) > 0), default=now_ms)
    return max(0, now_ms - lag - oldest)


def _segment_start(segments: Sequence[LogSegment], offset: int) -> int:
    """The base offset of the segment that holds `offset`, or of the active one if that comes earlier."""
    start = segments[0].base_offset
    for segment in segments:
        if segment.base_offset > offset:
            break
        start = segment.base_offset
    return start
