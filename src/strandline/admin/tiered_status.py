"""What a broker tells about its tiered topics. Values only; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredTopic:
    """One topic: what was done since the start, and how things are now in the partitions led here."""

    fetch_requests: int = 0
    fetch_bytes: int = 0
    fetch_errors: int = 0
    copy_requests: int = 0
    copy_bytes: int = 0
    copy_errors: int = 0
    delete_requests: int = 0
    delete_errors: int = 0
    copy_lag_segments: int = 0
    copy_lag_bytes: int = 0
    delete_lag_segments: int = 0
    delete_lag_bytes: int = 0
    remote_segments: int = 0
    remote_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCalls:
    """One kind of call to the remote storage, since it was opened."""

    calls: int = 0
    errors: int = 0
    timeouts: int = 0
    bytes: int = 0
    oldest_pending_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredStatus:
    """Tiered storage at one instant. Everything is 0 on a broker that does not have it."""

    storage_url: str = ""
    """Where the segments are; empty without tiered storage."""
    topics: Mapping[str, TieredTopic] = field(default_factory=dict)
    partitions: int = 0
    """Tiered partitions led here."""
    reads_running: int = 0
    reads_waiting: int = 0
    reader_idle_percent: float = 0.0
    reads_throttled: int = 0
    manager_idle_percent: float = 0.0
    copies_running: int = 0
    oldest_copy_s: float = 0.0
    deletions_running: int = 0
    """Partitions of deleted topics whose segments are being deleted."""
    storage_calls: Mapping[str, StorageCalls] = field(default_factory=dict)
    storage_stuck: int = 0
    index_cache_bytes: int = 0
    index_cache_limit: int = 0
    index_memory_bytes: int = 0
    index_memory_limit: int = 0
    read_cache_bytes: int = 0
    read_cache_limit: int = 0
