"""Partitions of one broker that were switched to diskless."""

from __future__ import annotations

from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.parts.prefix_here import PrefixHere


def is_switched(partition: ServedPartition | None) -> bool:
    """Whether the partition is served as two parts, of the older of which this broker has the log."""
    return partition is not None and isinstance(partition.newest.older, PrefixHere)


def prefix_of(partition: ServedPartition) -> PrefixHere:
    """The older part of a partition that was switched here."""
    prefix = partition.newest.older
    assert isinstance(prefix, PrefixHere)
    return prefix
