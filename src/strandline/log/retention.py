"""Which segments retention deletes. Pure: the log carries it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias

from strandline.config.topic import TopicConfig
from strandline.log.segment import LogSegment

Breaches: TypeAlias = Callable[[LogSegment, int], bool]
"""Says of a segment, and the offset after its last one, whether it should go."""


class RetentionReason(Enum):
    """Why a segment goes."""

    LOG_START = "it lies below the log start offset"
    SIZE = "the log is larger than retention.bytes"
    TIME = "its newest record is older than retention.ms"


class LogBounds(NamedTuple):
    """The offsets that retention must respect."""

    log_start: int
    high_watermark: int
    end: int


def deletable(segments: Sequence[LogSegment], bounds: LogBounds, breaches: Breaches) -> list[LogSegment]:
    """The oldest segments that breach a limit, without a gap. Nothing above the high watermark goes."""
    chosen = []
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        upper = bounds.end if is_last else segments[index + 1].base_offset
        if (is_last and not segment.reserved) or upper > bounds.high_watermark or not breaches(segment, upper):
            break
        chosen.append(segment)
    return chosen


def limits_of(
    config: TopicConfig, segments: Sequence[LogSegment], bounds: LogBounds, now_ms: int
) -> Iterable[tuple[RetentionReason, Breaches]]:
    """The limits in the order in which Kafka applies them. Compaction alone only respects the log start."""
    yield RetentionReason.LOG_START, lambda segment, upper: upper <= bounds.log_start and segment is not segments[-1]
    if not config.is_deleted_by_retention:
        return
    if config.retention_bytes >= 0:
        yield RetentionReason.SIZE, _oversize(sum(segment.size for segment in segments) - config.retention_bytes)
    if config.retention_ms >= 0:
        retention_ms = config.retention_ms
        yield RetentionReason.TIME, lambda segment, _: now_ms - segment.largest_timestamp > retention_ms


def _oversize(excess: int) -> Breaches:
    left = excess

    def breaches(segment: LogSegment, _: int) -> bool:
        nonlocal left
        if left < segment.size:
            return False
        left -= segment.size
        return True

    return breaches
