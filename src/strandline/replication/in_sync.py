"""The rules of the in-sync set: how far a log is replicated, who is in sync, and whether enough are. Pure functions.

Offsets of a follower that is not known to have anything are NO_OFFSET, and so is the high watermark that follows.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.model import BrokerId, Offset


def high_watermark(own_end: Offset, follower_ends: Iterable[Offset]) -> Offset:
    """The offset below which every replica that counts has every record.

    From the end of the leader's own log and, for each follower that counts, how far that one is known to have the log.
    Those of the maximal in-sync set count: the committed one, and a follower that the controller may have added since.
    """
    lowest = own_end
    for end in follower_ends:
        if end < lowest:
            lowest = end
    return lowest


def is_caught_up(end: Offset, leader_end: Offset, *, caught_up_at: float, now: float, lag_seconds: float) -> bool:
    """True if a follower has the whole log, or had it not long ago (replica.lag.time.max.ms)."""
    return end == leader_end or now - caught_up_at <= lag_seconds


def may_join(end: Offset, *, high_watermark: Offset, epoch_start: Offset) -> bool:
    """True if a follower has all that may be committed, also what an earlier leader has committed (KAFKA-7128)."""
    return end >= high_watermark and end >= epoch_start


def without(members: Iterable[BrokerId], out: Iterable[BrokerId]) -> tuple[BrokerId, ...]:
    """The in-sync set without those that are not in sync any more, in its order."""
    gone = tuple(out)
    return tuple([member for member in members if member not in gone])


def is_under_min_isr(in_sync: int, replicas: int, min_insync_replicas: int) -> bool:
    """True if too few are in sync for acks=all: fewer than min.insync.replicas, and not all there are."""
    return in_sync < replicas and in_sync < min_insync_replicas
