"""How much the reader may use at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderLimits:
    """Bounds of the reader. The words in brackets are the settings they come from."""

    parallel_reads: int = 10
    """Reads of the remote storage at the same time (remote.log.reader.threads)."""
    max_pending: int = 100
    """Reads that may wait for their turn; more are refused (remote.log.reader.max.pending.tasks)."""
    cache_max_bytes: int = 64 * 1024 * 1024
    """Memory for what was read; reads under way may take as much again (strandline.remote.read.cache.max.bytes)."""
    fetch_max_wait_ms: int = 500
    """How long a Fetch waits for remote records (remote.fetch.max.wait.ms)."""
    list_offsets_timeout_ms: int = 30_000
    """How long ListOffsets searches (remote.list.offsets.request.timeout.ms)."""
