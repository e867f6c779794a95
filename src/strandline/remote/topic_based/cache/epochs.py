"""The segments of one leader epoch: which of them answers for an offset, and which only wait to be deleted.

Segments that answer never contain one another, so their starts and their ends both rise: a lookup is one binary search,
and no offset that any of them has is hidden behind another.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Self

from strandline.model import Offset


class RemoteLogLeaderEpochState:
    """Offsets of one epoch to segment ids (16 bytes). Only finished segments answer for offsets."""

    __slots__ = ("_ends", "_ids", "_starts", "finished_bytes", "highest_offset", "unreferenced")

    def __init__(self) -> None:
        self._starts, self._ends = array("q"), array("q")
        self._ids: list[bytes] = []
        self.unreferenced: set[bytes] = set()
        """Segments being copied or deleted, and those that others cover: they are listed until they are gone."""
        self.highest_offset: Offset | None = None
        self.finished_bytes = 0

    def copy(self) -> Self:
        """The state as it is now."""
        made = type(self)()
        made._starts, made._ends, made._ids = self._starts[:], self._ends[:], self._ids[:]
        made.unreferenced = set(self.unreferenced)
        made.highest_offset, made.finished_bytes = self.highest_offset, self.finished_bytes
        return made

    # Asking

    def find(self, offset: Offset) -> bytes | None:
        """The segment that has `offset` in this epoch."""
        at = bisect_right(self._starts, offset) - 1
        return self._ids[at] if at >= 0 and offset <= self._ends[at] else None

    def from_offset(self, offset: Offset) -> Iterator[bytes]:
        """The segments that answer for `offset` and for what follows it, in order."""
        return iter(self._ids[bisect_left(self._ends, offset) :])

    def referenced(self) -> Iterable[tuple[Offset, Offset, bytes]]:
        """(first offset, last offset, segment) in order of offsets."""
        return zip(self._starts, self._ends, self._ids, strict=True)

    def segment_ids(self) -> Iterator[bytes]:
        """All of them, in no order."""
        yield from self._ids
        yield from self.unreferenced

    # Changing

    def finished(self, segment: bytes, start: Offset, end: Offset) -> None:
        """A segment has been copied: it answers for its offsets, unless another has all of them and more.

        Segments that it covers answer no more. An epoch without records in the segment has `end` before `start`.
        """
        if end < start:
            return
        if self.highest_offset is None or end > self.highest_offset:
            self.highest_offset = end
        at = bisect_right(self._starts, start) - 1
        if at >= 0 and self._ends[at] >= end and (self._starts[at], self._ends[at]) != (start, end):
            return
        first = bisect_left(self._starts, start)
        last = bisect_right(self._ends, end, first)
        self.unreferenced.update(self._ids[first:last])
        self._starts[first:last], self._ends[first:last] = array("q", (start,)), array("q", (end,))
        self._ids[first:last] = [segment]
        self.unreferenced.discard(segment)

    def unreference(self, segment: bytes, start: Offset) -> None:
        """A segment answers no more."""
        at = bisect_left(self._starts, start)
        if at < len(self._ids) and self._ids[at] == segment:
            del self._starts[at], self._ends[at], self._ids[at]
        self.unreferenced.add(segment)

    def restore(self, start: Offset, end: Offset, segment: bytes) -> None:
        """Append what `referenced` gave, in the same order. Raises ValueError if the order is wrong."""
        if self._ids and not (self._starts[-1] < start and self._ends[-1] < end):
            raise ValueError(f"the segment from {start} to {end} comes after one from {self._starts[-1]}")
        self._starts.append(start)
        self._ends.append(end)
        self._ids.append(segment)
