"""What the reader has done and holds, for metrics and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class TopicReads:
    """Reads of one topic so far."""

    requests: int = 0
    bytes: int = 0
    """Given to clients."""
    errors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteReaderStatus:
    """One look at the reader."""

    topics: Mapping[str, TopicReads]
    running: int
    """Reads of the remote storage under way."""
    waiting: int
    """Reads that wait for their turn (RemoteLogReaderTaskQueueSize)."""
    idle_percent: float
    """How much of what may run at once does not, from 0 to 100, at this moment (RemoteLogReaderAvgIdlePercent)."""
    storage_requests: int
    storage_bytes: int
    """Read from the remote storage so far, ahead or asked for."""
    read_seconds: float
    """Spent by all reads of the remote storage so far, waiting included."""
    throttled: int
    """Reads that came to nothing because the fetch quota was used up."""
    throttle_seconds: float
    """How long the fetch quota still holds up reads."""
    cache_bytes: int
    cache_limit: int
    open_segments: int
