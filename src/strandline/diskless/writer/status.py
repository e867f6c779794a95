"""What the writer is doing and has done, for metrics, people and tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterStatus:
    """The writer at one moment, and what it has done since it was made."""

    gathered_bytes: int
    gathered_batches: int
    pending_bytes: int
    """Gathered and on their way together."""
    uploads_running: int
    uploads_waiting: int
    """Rotated, until others are uploaded."""
    files_waiting_for_commit: int
    files_committing: int
    oldest_pending_seconds: float
    """For how long the oldest batch has waited for its answer; 0 if none waits."""
    totals: WriterTotals


@dataclass(slots=True)
class WriterTotals:
    """Counters that only grow."""

    files: int = 0
    """Committed objects."""
    bytes: int = 0
    """Of committed objects, footers included."""
    batches: int = 0
    """Committed, duplicates included."""
    batches_refused: int = 0
    """By the control plane, or because an earlier batch of their producer was lost."""
    batches_failed: int = 0
    """Whose object was not uploaded, or not committed, or was left at the end."""
    batches_over_limit: int = 0
    """Refused at once, because too much was on its way."""
    uploads_failed: int = 0
    """Objects that could not be uploaded with all attempts."""
    commits_failed: int = 0
    """Objects that were uploaded and not committed, as far as is known."""
