"""How the room of one response is divided. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def fair_shares(wants: Sequence[int], total: int) -> list[int]:
    """What each gets of `total`: nobody more than he wants, nobody less than another while he wants more."""
    shares = [0] * len(wants)
    left = max(total, 0)
    for served, index in enumerate(sorted(range(len(wants)), key=lambda index: wants[index])):
        shares[index] = min(max(wants[index], 0), left // (len(wants) - served))
        left -= shares[index]
    return shares
