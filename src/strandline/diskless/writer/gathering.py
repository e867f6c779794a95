"""The batches of one WAL object, and the callbacks that get their results."""

from __future__ import annotations

import logging

from strandline.diskless.values import AppendDone, DisklessAppend, DisklessAppended
from strandline.diskless.writer.rotation import Gathered
from strandline.errors import StrandlineError
from strandline.model import TimestampMs

logger = logging.getLogger(__name__)


class GatheredFile:
    """The batches of one object in the order of their arrival, from the first one until all are answered."""

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
        """When the first batch arrived, by the monotonic clock."""
        self._answers: list[AppendDone | None] = []
        # Known from the rotation on.
        self.number = 0
        self.created_ms: TimestampMs = 0
        # Known from the upload on.
        self.key = ""
        self.size = 0
        self.placed: list[tuple[int, int]] = []
        """Index and byte position of each batch, in the order of the object."""
        self.uploaded_at = 0.0

    @property
    def batch_count(self) -> int:
        return len(self.batches)

    def add(self, batch: DisklessAppend, done: AppendDone) -> None:
        """Add a batch."""
        self.batches.append(batch)
        self._answers.append(done)
        self.byte_count += len(batch.buffer)

    def gathered(self, now: float) -> Gathered:
        """What the rotation rules judge by."""
        return Gathered(self.byte_count, len(self.batches), now - self.since)

    def answer(self, index: int, result: DisklessAppended | StrandlineError) -> None:
        """Pass the result of batch `index` to its sender. Only the first result counts."""
        done, self._answers[index] = self._answers[index], None
        if done is None:
            return
        try:
            done(result)
        except Exception:  # a callback that fails must not keep the others waiting
            logger.exception("the result of a diskless batch could not be delivered")

    def answer_rest(self, error: StrandlineError) -> int:
        """Answer the batches that have no answer yet; returns how many there were."""
        waiting = [index for index, done in enumerate(self._answers) if done is not None]
        for index in waiting:
            self.answer(index, error)
        return len(waiting)
