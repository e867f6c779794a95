"""The status of the reader, for metrics and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class TopicReads:
    """Reads of one topic so far."""

    requests: int = 0
    bytes: int = 0
    """Sent to clients."""
    errors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteReaderStatus:
    """The reader as of one moment."""

    topics: Mapping[str, TopicReads]
    running: int
    """In-flight reads of remote storage."""
    waiting: int
    """Reads that wait for a slot (RemoteLogReaderTaskQueueSize)."""
    idle_percent: float
    """Free slots over the last minute, from 0 to 100 percent (RemoteLogReaderAvgIdlePercent)."""
    storage_requests: int
    storage_bytes: int
    """Read from remote storage so far, for requests or ahead."""
    read_seconds: float
    """Duration of all reads of remote storage so far, waiting included."""
    throttled: int
    """Reads that returned no records because the fetch quota was exhausted."""
    throttle_seconds: float
    """How long the fetch quota still delays reads."""
    cache_bytes: int
    cache_limit: int
    open_segments: int
