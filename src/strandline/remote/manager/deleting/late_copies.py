"""Uploads that were given up but reach the storage later.

What a broker has sent may lie in the network, or in a storage that hangs, while the broker gives up the copy, deletes
its objects and forgets the segment: an object that arrives then belongs to no segment, and would never be deleted. So a
segment whose copy did not end well is deleted twice, with a pause as long as an upload may be under way, and is
DELETE_SEGMENT_FINISHED only after the second time. The pause begins when the storage has carried out the first
deletion, not when it was asked: until then it was perhaps away.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final
from uuid import UUID

from strandline.clock import Clock
from strandline.remote.manager.deleting.plan import Deletion, DeletionReason

_OF_COPIES: Final = frozenset({DeletionReason.INTERRUPTED, DeletionReason.ABANDONED})


class DeletionStep(Enum):
    """What is to be done with a segment that is to be deleted."""

    CLEAR = auto()
    """Delete its objects, for the first time."""
    WAIT = auto()
    FINISH = auto()
    """Delete its objects and forget the segment."""


class LateCopies:
    """The deletions of one partition that wait for late uploads."""

    def __init__(self, late_seconds: float, clock: Clock) -> None:
        self._late, self._clock = late_seconds, clock
        self._cleared: dict[UUID, float] = {}

    def step(self, deletion: Deletion) -> DeletionStep:
        """What to do with this segment now."""
        if self._late <= 0 or deletion.reason not in _OF_COPIES:
            return DeletionStep.FINISH
        since = self._cleared.get(deletion.segment.segment_id.id)
        if since is None:
            return DeletionStep.CLEAR
        return DeletionStep.FINISH if self._clock.monotonic() >= since + self._late else DeletionStep.WAIT

    def cleared(self, deletion: Deletion) -> None:
        """Its objects are deleted for the first time."""
        self._cleared[deletion.segment.segment_id.id] = self._clock.monotonic()

    def keep(self, deletions: Iterable[Deletion]) -> None:
        """Forget all segments but these: they are finished, or others finish them."""
        wanted = {deletion.segment.segment_id.id for deletion in deletions}
        self._cleared = {id_: since for id_, since in self._cleared.items() if id_ in wanted}

    def due_ms(self) -> int | None:
        """When the next of them can be finished; None if none waits."""
        if not self._cleared:
            return None
        left = min(self._cleared.values()) + self._late - self._clock.monotonic()
        return self._clock.now_ms() + max(int(left * 1000) + 1, 0)
