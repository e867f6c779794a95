"""What a broker tells about its diskless topics. Values only; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCalls:
    """One kind of request to the object store, since it was opened."""

    calls: int = 0
    errors: int = 0
    bytes: int = 0
    oldest_pending_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DisklessStatus:
    """The diskless tier at one instant. Everything is 0 while there is no diskless topic."""

    objects_url: str = ""
    """Where the objects are; empty while the tier is not open."""
    topics: int = 0
    partitions: int = 0
    """Partitions of the cluster that this broker serves: all of them."""
    unserved_partitions: int = 0
    """Partitions whose log in the control plane is not made yet."""
    watched_partitions: int = 0
    pending_bytes: int = 0
    oldest_pending_s: float = 0.0
    uploads_running: int = 0
    wal_files: int = 0
    wal_bytes: int = 0
    batches: Mapping[str, int] = field(default_factory=dict)
    """Batches since the start, by what became of them."""
    uploads_failed: int = 0
    commits_failed: int = 0
    cache_bytes: Mapping[str, int] = field(default_factory=dict)
    """By part: what was written lately (hot), what lagging readers brought in (cold)."""
    cache_limits: Mapping[str, int] = field(default_factory=dict)
    queries: int = 0
    object_calls: Mapping[str, ObjectCalls] = field(default_factory=dict)
    object_retries: int = 0
    retention_rows_deleted: int = 0
    retention_bytes_deleted: int = 0
    files_deleted: int = 0
    orphans_found: int = 0
    upkeep_failures: Mapping[str, int] = field(default_factory=dict)
    """Failures in a row of each kind of background work; 0 is well."""
