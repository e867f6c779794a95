"""How many reads of topics with a diskless part each tier has answered, since the start of the broker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class TierReads:
    """Shared by all such partitions of one broker, so that counting costs the same whatever their number."""

    local: int = 0
    tiered: int = 0
    diskless: int = 0
