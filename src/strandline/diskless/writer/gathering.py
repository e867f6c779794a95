"""Batches on their way into one WAL object, and whom to tell what became of them."""

from __future__ import annotations

import logging

from strandline.diskless.values import AppendDone, DisklessAppend, DisklessAppended
from strandline.diskless.writer.rotation import Gathered
from strandline.errors import StrandlineError
from strandline.model import TimestampMs

logger = logging.getLogger(__name__)


class GatheredFile:
    """The batches of one object, in the order in which they came, from the first of them until all are answered."""

    __slots__ = (
        "_answers",
        "batches",
        "byte_count",
        "created_ms",
        "key",
        "number",
        "placed",
        "since",
        "size",
        "uploaded_at",
    )

    def __init__(self) -> None:
        self.batches: list[DisklessAppend] = []
        self.byte_count = 0
        self.since = 0.0
        """When the first batch came, by the monotonic clock."""
        self._answers: list[AppendDone | None] = []
        # Known from the rotation on.
        self.number = 0
        self.created_ms: TimestampMs = 0
        # Known from the upload on.
        self.key = ""
        self.size = 0
        self.placed: list[tuple[int, int]] = []
        """In the order of the object: which of the batches, at which byte."""
        self.uploaded_at = 0.0

    @property
    def batch_count(self) -> int:
        return len(self.batches)

    def add(self, batch: DisklessAppend, done: AppendDone) -> None:
        """One more batch."""
        self.batches.append(batch)
        self._answers.append(done)
        self.byte_count += len(batch.buffer)

    def gathered(self, now: float) -> Gathered:
        """What the rules of rotation look at."""
        return Gathered(self.byte_count, len(self.batches), now - self.since)

    def answer(self, index: int, result: DisklessAppended | StrandlineError) -> None:
        """Tell whoever sent batch `index` what became of it. Only the first answer counts."""
        done, self._answers[index] = self._answers[index], None
        if done is None:
            return
        try:
            done(result)
        except Exception:  # one that fails must not keep the others waiting
            logger.exception("an answer about a diskless batch could not be delivered")

    def answer_rest(self, error: StrandlineError) -> int:
        """Tell everybody who has not been told anything yet; how many there were."""
        waiting = [index for index, done in enumerate(self._answers) if done is not None]
        for index in waiting:
            self.answer(index, error)
        return len(waiting)
