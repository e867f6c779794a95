"""The rules of the in-sync set: how far a log is replicated, and whether enough replicas have it. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.model import Offset


def high_watermark(own_end: Offset, follower_ends: Iterable[Offset | None]) -> Offset | None:
    """The offset below which every in-sync replica has every record.

    From the end of the leader's own log and, for each in-sync follower, how far that one is known to have the log.
    None if nothing is known of a follower yet: the high watermark stands still until something is.
    """
    lowest = own_end
    for end in follower_ends:
        if end is None:
            return None
        if end < lowest:
            lowest = end
    return lowest


def is_under_min_isr(in_sync: int, replicas: int, min_insync_replicas: int) -> bool:
    """True if too few are in sync for acks=all: fewer than min.insync.replicas, and not all there are."""
    return in_sync < replicas and in_sync < min_insync_replicas
