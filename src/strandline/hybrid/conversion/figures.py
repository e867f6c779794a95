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


class FailingConversions:
    """How many things have failed so often that an operator has to look, as reported by runs of the pipeline."""

    __slots__ = ("_by_claimant",)

    def __init__(self) -> None:
        self._by_claimant: dict[str, tuple[int, float]] = {}

    def heard(self, claimant: str, failing: int, *, until: float) -> None:
        """A run reports a number, which holds up to a moment of the monotonic clock, or until its next report."""
        if failing:
            self._by_claimant[claimant] = failing, until
        else:
            self._by_claimant.pop(claimant, None)

    def total(self, *, now: float) -> int:
        """The sum over all runs that have reported lately. Others are forgotten."""
        self._by_claimant = {name: said for name, said in self._by_claimant.items() if said[1] > now}
        return sum(failing for failing, _ in self._by_claimant.values())


@dataclass(slots=True)
class TieringFigures:
    """Counters. Shared by the parts of `hybrid.conversion` on one broker."""

    batches_split: int = 0
    """Rows of the control plane that became parts of split files."""
    segments_created: int = 0
    segments_aborted: int = 0
    segments_expired: int = 0
    failing: FailingConversions = field(default_factory=FailingConversions)
    split_latency: LatencyCounts = field(default_factory=LatencyCounts)
    """From the claim of a WAL file to its splits, of claims that this broker has passed on."""
    merge_latency: LatencyCounts = field(default_factory=LatencyCounts)
    """From the beginning of a segment to its commit, of partitions led here."""
