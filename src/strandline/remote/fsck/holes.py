"""Offsets of a log that are neither local nor in remote storage. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from strandline.model import INT64_MAX, Offset
from strandline.remote.fsck.values import TieredLogBounds
from strandline.remote.topic_based.cache import RemoteLogMetadataCache

Range = tuple[Offset, Offset]
"""First and last offset."""


def find_holes(cache: RemoteLogMetadataCache, bounds: TieredLogBounds, *, log_start: Offset | None) -> list[Range]:
    """The offsets from `log_start` up to the local log start, and converted ones, that lookups find in no segment.

    Where the epochs of the log are known, a segment counts only for offsets of those epochs, as in lookups of readers.
    Of converted offsets all epochs count: no leader has ever written others.
    """
    all_ranges = sorted(each for epoch in cache.epochs() for each in cache.referenced_ranges(epoch))
    found = all_ranges if bounds.epochs is None else list(_in_lineage(cache, bounds))
    if log_start is None:
        log_start = min((start for start, _ in found), default=bounds.local_log_start)
    holes = list(_gaps(found, log_start, bounds.local_log_start - 1))
    if bounds.converted is not None:
        first, end = bounds.converted
        holes += _gaps(all_ranges, max(first, log_start, bounds.local_log_start), end - 1)
    return holes


def _in_lineage(cache: RemoteLogMetadataCache, bounds: TieredLogBounds) -> Iterator[Range]:
    for (epoch, first), (_, following) in pairwise((*(bounds.epochs or ()), (-1, INT64_MAX))):
        for start, end in cache.referenced_ranges(epoch):
            if end >= first and start < following:
                yield max(start, first), min(end, following - 1)


def _gaps(ranges: Iterable[Range], first: Offset, last: Offset) -> Iterator[Range]:
    """The gaps of ascending ranges between two offsets."""
    wanted = first
    for start, end in ranges:
        if start > last:
            break
        if start > wanted:
            yield wanted, start - 1
        wanted = max(wanted, end + 1)
    if wanted <= last:
        yield wanted, last
