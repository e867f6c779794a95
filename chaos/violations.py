"""What can be wrong with a history."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What went wrong."""

    LOST = "lost"
    """What was acknowledged or read is gone, or a consumer was not given it."""
    DOUBLED = "doubled"
    REORDERED = "reordered"
    ABORTED_READ = "aborted-read"
    """G1a: somebody read what was aborted."""
    EARLY_READ = "early-read"
    """Somebody read a value before anybody had asked to commit its transaction."""
    PARTIAL = "partial"
    """A transaction is there in part: records without others, or without the offsets that belong to it."""
    CYCLE = "cycle"
    """G1c: transactions that each must have ended before the other."""
    CHANGED = "changed"
    """One offset holds different values, for two readers or at two times."""
    GAP = "gap"
    """An offset holds neither a record nor a marker."""
    WENT_BACK = "went-back"
    """The end of a partition, its last stable offset, its start, or an offset of a group is less than before."""
    INVENTED = "invented"
    """A value that nobody wrote."""
    TORN = "torn"
    """A record or a batch whose bytes are not those that were sent."""
    DIVERGED = "diverged"
    """Two replicas of a partition hold different bytes below its high watermark."""
    STUCK = "stuck"
    """Nothing is acknowledged in a partition, or given to a group, although all faults are over."""
    NOT_READ = "not-read"
    """The history has no end: it cannot be judged."""
    TROUBLE = "trouble"
    """No matter of records: a broker that ended by itself, a transaction or a switch that never ends."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that must not be."""

    kind: Kind
    text: str
