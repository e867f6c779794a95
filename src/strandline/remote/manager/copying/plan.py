"""Which segments of a log are copied next. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.log import ClosedSegment
from strandline.model import Offset
from strandline.remote.manager.partition import LogOffsets


def copy_from(offsets: LogOffsets, copied: Offset) -> Offset | None:
    """The offset from which segments are to be copied; None if there is nothing to copy.

    `copied` is the last offset in remote storage, -1 if none is. A crash may set the log start back to offsets that
    neither tier has: they are skipped. An idle partition costs these few comparisons and nothing else.
    """
    start = max(copied + 1, offsets.log_start, offsets.first_base)
    if offsets.active_base <= start or offsets.last_stable_offset <= start:
        return None
    return start


def to_copy(finished: Sequence[ClosedSegment], start: Offset, last_stable_offset: Offset) -> list[ClosedSegment]:
    """Of closed segments, oldest first, those to copy now: all below the last stable offset.

    A segment that holds `start` is copied as a whole.
    """
    chosen = []
    for segment in finished:
        if segment.next_base_offset > last_stable_offset:
            break
        if segment.next_base_offset > start:
            chosen.append(segment)
    return chosen
