"""Which segments retention deletes. Pure: the log carries it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from strandline.config import TopicConfig
from strandline.log.segment import LogSegment
from strandline.log.segments import Segments

Breaches: TypeAlias = Callable[[LogSegment, int], bool]
"""Whether a segment should be deleted, given the segment and the offset after its last one."""

AS_RETENTION: Final = -2
"""local.retention.*: as much as retention.* says."""


class RetentionReason(Enum):
    """Why a segment is deleted."""

    LOG_START = "it lies below the log start offset"
    SIZE = "the log is larger than {}.bytes"
    TIME = "its newest record is older than {}.ms"

    def text(self, *, is_local: bool) -> str:
        """For people, with the name of the setting that decided."""
        return self.value.format("local.retention" if is_local else "retention")


class RetentionBounds(NamedTuple):
    """The offsets that retention must respect."""

    log_start: int
    local_start: int
    high_watermark: int
    end: int
    highest_remote: int | None
    """The last offset in remote storage if only copied segments may be deleted; None if nothing is copied."""

    def allows(self, upper: int) -> bool:
        """Whether everything below `upper` is copied, need not be copied, or is below the log start."""
        return self.highest_remote is None or upper - 1 <= self.highest_remote or upper <= self.log_start


class Doomed(NamedTuple):
    """The segments that exceed a limit."""

    segments: list[LogSegment]
    is_roll_wanted: bool
    """The active segment exceeds the limit, but cannot be deleted before it is closed and copied."""


def deletable(segments: Sequence[LogSegment], bounds: RetentionBounds, breaches: Breaches) -> Doomed:
    """The oldest segments that exceed a limit, without a gap. Nothing above the high watermark is deleted."""
    chosen: list[LogSegment] = []
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        upper = bounds.end if is_last else segments[index + 1].base_offset
        if (is_last and not segment.reserved) or upper > bounds.high_watermark or not breaches(segment, upper):
            break
        if not bounds.allows(upper):
            return Doomed(chosen, is_last)
        chosen.append(segment)
    return Doomed(chosen, False)


def limits_of(
    config: TopicConfig, segments: Segments, bounds: RetentionBounds, now_ms: int
) -> Iterable[tuple[RetentionReason, Breaches]]:
    """The limits in the order in which Kafka applies them. Compaction alone only respects the log start.

    A log whose segments are copied to remote storage keeps local.retention.* on its disks; retention.* is for both
    tiers together, and not decided here.
    """
    is_local = bounds.highest_remote is not None
    start = bounds.local_start if is_local else bounds.log_start
    yield RetentionReason.LOG_START, lambda segment, upper: upper <= start and segment is not segments.active
    if not config.is_deleted_by_retention and not is_local:
        return
    retention_bytes, retention_ms = config.retention_bytes, config.retention_ms
    if is_local:
        retention_bytes = _local(config.local_retention_bytes, retention_bytes)
        retention_ms = _local(config.local_retention_ms, retention_ms)
    if retention_bytes >= 0:
        yield RetentionReason.SIZE, _oversize(sum(segment.size for segment in segments) - retention_bytes)
    if retention_ms >= 0:
        yield RetentionReason.TIME, lambda segment, _: now_ms - segment.largest_timestamp > retention_ms


def _local(local: int, total: int) -> int:
    return total if local == AS_RETENTION else local


def _oversize(excess: int) -> Breaches:
    left = excess

    def breaches(segment: LogSegment, _: int) -> bool:
        nonlocal left
        if left < segment.size:
            return False
        left -= segment.size
        return True

    return breaches
