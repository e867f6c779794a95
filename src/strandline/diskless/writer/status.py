"""The state of the writer and its counters, for metrics, operators and tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterStatus:
    """The state of the writer at one moment, and its counters since the start."""

    gathered_bytes: int
    gathered_batches: int
    pending_bytes: int
    """Bytes of all batches without an answer, gathered or in flight."""
    uploads_running: int
    uploads_waiting: int
    """Rotated, and waiting for a free upload."""
    files_waiting_for_commit: int
    files_committing: int
    oldest_pending_seconds: float
    """How long the oldest batch has waited for its answer; 0 if none waits."""
    totals: WriterTotals


@dataclass(slots=True)
class WriterTotals:
    """Counters that only grow."""

    files: int = 0
    """Committed objects."""
    bytes: int = 0
    """Bytes of committed objects, footers included."""
    batches: int = 0
    """Committed batches, duplicates included."""
    batches_refused: int = 0
    """Refused by the control plane, or because an earlier batch of their producer was lost."""
    batches_failed: int = 0
    """Batches whose object was not uploaded or not committed, or was unfinished when the writer closed."""
    batches_over_limit: int = 0
    """Refused at once, because too many bytes were pending."""
    uploads_failed: int = 0
    """Objects whose upload failed in every attempt."""
    commits_failed: int = 0
    """Uploaded objects whose commit failed, or whose result is not known."""
