"""How the room of one response is divided among partitions. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def fair_shares(wanted: Sequence[int], budget: int) -> list[int]:
    """Split `budget`: nobody gets more than he wants, nor more than another who wants more than he got."""
    shares = [0] * len(wanted)
    left = max(budget, 0)
    hungry = sorted(range(len(wanted)), key=wanted.__getitem__)
    for place, index in enumerate(hungry):
        shares[index] = min(max(wanted[index], 0), left // (len(hungry) - place))
        left -= shares[index]
    return shares
