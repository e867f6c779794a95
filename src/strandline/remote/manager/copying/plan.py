"""Which segments of a log are copied next. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.log import ClosedSegment
from strandline.model import Offset
from strandline.remote.manager.partition import LogOffsets


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
