"""Where a follower cuts its log, so that it is the beginning of its leader's (KIP-101, KIP-279). Pure functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from strandline.model import LeaderEpoch, Offset

EndOfEpoch: TypeAlias = Callable[[LeaderEpoch], tuple[LeaderEpoch, Offset]]
"""(epoch, end offset) of the newest epoch of a log up to the given one; (-1, -1) if the log knows none."""


def end_in_common(
    leaders: tuple[LeaderEpoch, Offset], end_of_epoch: EndOfEpoch, *, log_end: Offset, high_watermark: Offset
) -> Offset:
    """Below this offset the follower's log may be the same as the leader's; nothing from there on is.

    `leaders` is what the leader has said: the newest epoch that it knows of those up to the follower's newest one, and
    where that ended. If the follower does not know it, the next request brings the next older one.
    """
    epoch, end = leaders
    if end < 0:
        return min(high_watermark, log_end)
    if epoch < 0:
        return min(end, log_end)
    own_epoch, own_end = end_of_epoch(epoch)
    if own_epoch < 0 or own_end < 0:
        return min(end, log_end)
    if own_epoch != epoch:
        return min(own_end, log_end)
    return min(own_end, end, log_end)
