"""The aborted transactions of one diskless log, as far as this broker knows them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from strandline.controlplane import AbortedRange
from strandline.model import NO_OFFSET, Offset
from strandline.reads import AbortedTransaction

# More are not kept in memory for one log.
MOST_RANGES: Final = 10_000


class KnownAborts:
    """All aborted transactions whose markers are from `start` on, up to the known end of the log.

    A log that never had one is known from its beginning on: the database need not be asked for them.
    """

    __slots__ = ("_ranges", "end", "start")

    def __init__(self) -> None:
        self.start: Offset = 0
        self.end: Offset = NO_OFFSET
        """The end of the log, as far as it is known."""
        self._ranges: list[AbortedRange] = []
        """In the order of their markers."""

    def covers(self, offset: Offset) -> bool:
        """Whether all are known that a reader at `offset` may need."""
        return self.start <= offset

    def log_ends_at(self, end: Offset, last_aborted: Offset) -> None:
        """The log has grown to `end`. Nothing is known of markers among the new records but the newest."""
        if last_aborted >= self.end:
            self._ranges.clear()
            self.start = last_aborted + 1
        self.end = end

    def committed(self, base: Offset, end: Offset, ranges: Sequence[AbortedRange], last_aborted: Offset) -> None:
        """This broker has committed records from `base` to `end` (not included), with these among them."""
        is_known_before = base == self.end or (ranges[0].last_offset if ranges else last_aborted) < self.end
        if ranges and not is_known_before:
            self._ranges.clear()
            self.start = base
        elif not is_known_before:
            self.log_ends_at(end, last_aborted)
        self._ranges += ranges
        self.end = end
        if len(self._ranges) > MOST_RANGES:
            surplus = len(self._ranges) - MOST_RANGES // 2
            self.start = self._ranges[surplus - 1].last_offset + 1
            del self._ranges[:surplus]

    def loaded(self, start: Offset, ranges: Iterable[AbortedRange], known_end: Offset) -> None:
        """A query has found all from `start` on, at least up to the end that was known before it.

        What became known meanwhile is kept. If that is not all that there was behind the query, the query is of no use.
        """
        if start < self.start <= known_end:
            self._ranges[:0] = [one for one in ranges if one.last_offset < self.start]
            self.start = start

    def ending_from(self, offset: Offset) -> Sequence[AbortedRange]:
        """Those whose markers are at `offset` or later."""
        return self._ranges[bisect_left(self._ranges, offset, key=_marker) :]


def _marker(one: AbortedRange) -> Offset:
    return one.last_offset


def overlapping(ranges: Iterable[AbortedRange], offset: Offset, end: Offset) -> list[AbortedTransaction]:
    """What a consumer has to skip that gets records from `offset` to `end` (not included). The ranges are in order."""
    found = []
    for one in ranges:
        if one.last_offset >= offset and one.first_offset < end:
            found.append(AbortedTransaction(one.producer_id, one.first_offset))
        if one.last_stable_offset >= end:
            break  # later ones begin there or later
    return found
