"""Which segments of a log are to be copied, and where a new leader begins. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.log import ClosedSegment
from strandline.model import Offset
from strandline.remote.values import RemoteLogSegmentMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffsets:
    """What the copy task asks of a log, at one moment."""

    log_start: Offset
    local_log_start: Offset
    first_base: Offset
    """Of the first local segment. The log may begin inside it."""
    active_base: Offset
    """Of the segment that is being written."""
    last_stable_offset: Offset


def copy_from(offsets: LogOffsets, copied: Offset) -> Offset | None:
    """The offset from which on segments are to be copied; None if there is certainly nothing to copy.

    `copied` is the last offset that is in remote storage, -1 if none is. What neither storage has is not waited for: a
    log start that a crash has set back may lie before it. For an idle partition this is all that is asked: a few
    comparisons.
    """
    start = max(copied + 1, offsets.log_start, offsets.first_base)
    if offsets.active_base <= start or offsets.last_stable_offset <= start:
        return None
    return start


def to_copy(finished: Sequence[ClosedSegment], start: Offset, last_stable_offset: Offset) -> list[ClosedSegment]:
    """Of finished segments, oldest first, those that may be copied now: nothing in them is undecided.

    One that only reaches above `start` is among them, as a whole.
    """
    chosen = []
    for segment in finished:
        if segment.next_base_offset > last_stable_offset:
            break
        if segment.next_base_offset > start:
            chosen.append(segment)
    return chosen


def log_start_of_new_leader(offsets: LogOffsets, finished: Sequence[RemoteLogSegmentMetadata]) -> Offset:
    """Where the log begins, given all segments of it that were copied to the end.

    It begins with the first remote segment, or, without one, with the first local offset. That a log begins below its
    local part, or inside its first local segment, was somebody's decision (retention, DeleteRecords), and records that
    were deleted stay so. But a log that begins exactly with its local part may just have forgotten what came before
    it when its last replica restarted (lesson 21): then what is in remote storage counts, as far as it has no gap.
    """
    if not finished:
        return offsets.local_log_start
    if offsets.log_start < offsets.local_log_start or offsets.log_start > offsets.first_base:
        first = min(segment.start_offset for segment in finished)
        return min(max(offsets.log_start, first), offsets.local_log_start)
    start = offsets.local_log_start
    for segment in sorted(finished, key=lambda segment: segment.end_offset, reverse=True):
        if segment.end_offset + 1 < start:
            break
        start = min(start, segment.start_offset)
    return start


def copied_without_gap(
    highest: Offset, local_log_start: Offset, finished: Sequence[RemoteLogSegmentMetadata]
) -> Offset:
    """Up to which offset everything local is in remote storage too, given the highest offset that ever was copied.

    Whatever is at or below it may leave the local disk. So a gap counts: one that is left if tiering was switched off
    and on again while segments were being deleted.
    """
    end = local_log_start
    for segment in sorted(finished, key=lambda segment: segment.start_offset):
        if segment.start_offset > end:
            break
        end = max(end, segment.end_offset + 1)
    return min(highest, end - 1)
