"""Distributions of durations in buckets that double, and what can be said of them.

Bucket 0 holds what is shorter than 8.2 µs, each further one up to twice the duration of the one before. A duration's
bucket is a shift and a `bit_length`, the cheapest there is in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SHIFT: Final = 13
"""Nanoseconds are counted in units of 2**13."""
BUCKETS: Final = 64 - SHIFT
"""Enough for any duration that fits into 64 bits."""


def upper_bound_ns(bucket: int) -> int:
    """Durations in the bucket are shorter than this."""
    return 1 << (bucket + SHIFT)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Durations since the start, and those of the last minutes."""

    counts: Sequence[int]
    """By bucket, since the start."""
    sum_ns: int
    recent: Sequence[int]
    """By bucket, of the last minutes."""

    @property
    def count(self) -> int:
        """How many durations there were since the start."""
        return sum(self.counts)

    def quantile_ns(self, quantile: float) -> float:
        """The duration that this part of the recent ones did not exceed; 0 if there were none.

        Durations are taken to be spread evenly within their bucket: wrong by less than a factor of two.
        """
        rank = quantile * sum(self.recent)
        below = 0
        for bucket, count in enumerate(self.recent):
            if count and below + count >= rank:
                upper = upper_bound_ns(bucket)
                lower = upper // 2 if bucket else 0
                return lower + (upper - lower) * max(rank - below, 0.0) / count
            below += count
        return 0.0


def plus(one: Distribution, other: Distribution) -> Distribution:
    """Both together."""
    return Distribution(
        [a + b for a, b in zip(one.counts, other.counts, strict=True)],
        one.sum_ns + other.sum_ns,
        [a + b for a, b in zip(one.recent, other.recent, strict=True)],
    )
