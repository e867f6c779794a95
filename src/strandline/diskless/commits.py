"""Asking the control plane for the offsets of uploaded WAL objects, and asking again when the answer was lost."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from strandline.clock import Chance, Clock
from strandline.controlplane.ports import BatchCommits
from strandline.controlplane.values import CommittedBatch, FileToCommit
from strandline.crash import crash_point
from strandline.sql import SqlError, TransactionConflict

logger = logging.getLogger(__name__)

# Of the pauses between two calls, in milliseconds: the first, and the longest.
_FIRST_PAUSE: Final = 5
_LONGEST_PAUSE: Final = 1000

# Seconds after which a process that has slept must not go on: its objects may have been deleted as orphans meanwhile.
_LATEST_CALL: Final = 15.0


class CommitFailed(Exception):
    """The control plane has not committed, or has not said so in time."""

    def __init__(self, message: str, *, may_have_happened: bool) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened


class Commits:
    """Commits objects, in one call for several of them."""

    def __init__(self, control_plane: BatchCommits, *, clock: Clock, chance: Chance) -> None:
        self._control_plane = control_plane
        self._clock = clock
        self._chance = chance

    async def commit(self, files: Sequence[FileToCommit], *, deadline: float) -> Sequence[Sequence[CommittedBatch]]:
        """The answers of the control plane. Asks until `deadline`, and if that is just over, once. Raises CommitFailed.

        A repeated call is harmless: objects that were committed by the first one get their answers of that time.
        """
        may_have_happened = False
        pause = _FIRST_PAUSE
        while True:
            if self._clock.monotonic() > deadline + _LATEST_CALL:
                raise CommitFailed("too much time has passed since its upload", may_have_happened=may_have_happened)
            crash_point("diskless.writer.before_commit")
            try:
                answers = await self._control_plane.commit_files(files, now_ms=self._clock.now_ms())
            except SqlError as error:
                may_have_happened |= error.retriable and not isinstance(error, TransactionConflict)
                if not error.retriable or self._clock.monotonic() >= deadline:
                    logger.warning("%d WAL objects from %s on were not committed: %s", *_named(files), error)
                    raise CommitFailed(str(error), may_have_happened=may_have_happened) from error
                logger.info("%d WAL objects from %s on are committed again: %s", *_named(files), error)
            else:
                crash_point("diskless.writer.after_commit")
                return answers
            # Brokers that gave way to each other must not meet again.
            await self._clock.sleep((pause + self._chance.below(pause)) / 1000)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _named(files: Sequence[FileToCommit]) -> tuple[int, str]:
    return len(files), files[0].object_key
