"""Producers that wait until the high watermark has passed what they have appended."""

from __future__ import annotations

import logging
from bisect import bisect_right, insort_right
from typing import NamedTuple

from strandline.errors import StrandlineError
from strandline.model import Offset
from strandline.replication.append import Done

logger = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    offset: Offset
    done: Done


class WaitingProducers:
    """Those of one time in which a broker leads a partition without a break, through all its leader epochs.

    A leader that stays leader keeps its log, and what waits for it goes on waiting, as in Kafka. When the broker ceases
    to lead, all that is `over`: also for writes that end later, under another role.
    """

    __slots__ = ("_waiting", "over")

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []  # by offset (an empty deque would take 700 bytes more in each replica)
        self.over: StrandlineError | None = None
        """Why nothing is answered as replicated any more."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: Offset, done: Done) -> None:
        """Call `done` once: with None when everything below `offset` is replicated, or with the error of `end`."""
        waiting, new = self._waiting, _Waiting(offset, done)
        if waiting and offset < waiting[-1].offset:  # a batch was sent again, and later ones wait already
            insort_right(waiting, new, key=_offset_of)
        else:
            waiting.append(new)

    def release(self, high_watermark: Offset) -> None:
        """Answer, in the order of their offsets, all that wait for nothing above the high watermark."""
        waiting = self._waiting
        if not waiting or waiting[0].offset > high_watermark:
            return
        count = bisect_right(waiting, high_watermark, key=_offset_of)
        # An answer may append to this partition: it has to find only what still waits.
        self._waiting = waiting[count:]
        _answer(waiting[:count], None)

    def end(self, error: StrandlineError) -> None:
        """Answer all of them with this error, and let no more be added."""
        self.over = error
        waiting, self._waiting = self._waiting, []
        _answer(waiting, error)


def _offset_of(waiting: _Waiting) -> Offset:
    return waiting.offset


def _answer(waiting: list[_Waiting], error: StrandlineError | None) -> None:
    for _, done in waiting:
        try:
            done(error)
        except Exception:  # the others must get their answers
            logger.exception("the end of an append could not be reported")
