"""How the bytes of one response are divided among partitions. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def fair_shares(wanted: Sequence[int], budget: int) -> list[int]:
    """Split `budget` fairly (max-min): no share exceeds its demand; what small demands leave goes to larger ones."""
    shares = [0] * len(wanted)
    left = max(budget, 0)
    ascending = sorted(range(len(wanted)), key=wanted.__getitem__)
    for place, index in enumerate(ascending):
        shares[index] = min(max(wanted[index], 0), left // (len(ascending) - place))
        left -= shares[index]
    return shares
