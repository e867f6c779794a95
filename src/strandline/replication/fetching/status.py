"""What metrics and the status page say of the partitions that this broker copies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchersStatus:
    """The fetchers of a broker at one instant."""

    connections: int = 0
    """Fetchers: connections to leaders, open or tried to open."""
    partitions: int = 0
    failed_partitions: int = 0
    """Those that are not copied until their metadata changes."""
    max_lag: int = 0
    """The most records below a leader's high watermark that a partition lacks here."""
    bytes_in: int = 0
    """Bytes of records that were copied since the start."""
