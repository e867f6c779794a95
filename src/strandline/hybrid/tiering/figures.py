"""What this broker has seen of the tiering pipeline since its start."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

LATENCY_BOUNDS_S: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of the buckets of `LatencyCounts`; the last bucket has none."""


class LatencyCounts:
    """A histogram of durations."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BOUNDS_S) + 1)
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(LATENCY_BOUNDS_S, seconds)] += 1
        self.total_s += seconds

    def snapshot(self) -> tuple[Sequence[int], float]:
        """Counts by bucket, and the sum in seconds."""
        return tuple(self.counts), self.total_s


@dataclass(slots=True)
class TieringFigures:
    """Counters. Shared by the parts of `hybrid.tiering` on one broker."""

    batches_split: int = 0
    """Rows of the control plane that became parts of split files."""
    segments_created: int = 0
    segments_aborted: int = 0
    segments_expired: int = 0
    split_latency: LatencyCounts = field(default_factory=LatencyCounts)
    """From the claim of a WAL file to its splits, of claims that this broker has passed on."""
    merge_latency: LatencyCounts = field(default_factory=LatencyCounts)
    """From the beginning of a segment to its commit, of partitions led here."""
