"""The segments of one leader epoch: which of them lookups find for an offset, and which are only listed.

Segments that lookups find ("referenced") never contain one another, so their starts and ends both ascend: a lookup is
one binary search, and no offset of one segment is hidden behind another.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Self

from strandline.model import Offset


class RemoteLogLeaderEpochState:
    """Offsets of one epoch to segment ids (16 bytes). Only segments in COPY_SEGMENT_FINISHED are referenced."""

    __slots__ = ("_ends", "_ids", "_starts", "finished_bytes", "highest_offset", "unreferenced")

    def __init__(self) -> None:
        self._starts, self._ends = array("q"), array("q")
        self._ids: list[bytes] = []
        self.unreferenced: set[bytes] = set()
        """Segments being copied or deleted, and those that others cover: they are listed until they are deleted."""
        self.highest_offset: Offset | None = None
        self.finished_bytes = 0

    def copy(self) -> Self:
        """A copy of the state."""
        made = type(self)()
        made._starts, made._ends, made._ids = self._starts[:], self._ends[:], self._ids[:]
        made.unreferenced = set(self.unreferenced)
        made.highest_offset, made.finished_bytes = self.highest_offset, self.finished_bytes
        return made

    # Queries

    def find(self, offset: Offset) -> bytes | None:
        """The segment that has `offset` in this epoch."""
        at = bisect_right(self._starts, offset) - 1
        return self._ids[at] if at >= 0 and offset <= self._ends[at] else None

    def first_from(self, offset: Offset) -> Offset | None:
        """Where the first referenced segment begins that reaches up to `offset` or beyond; None if none does."""
        at = bisect_left(self._ends, offset)
        return self._starts[at] if at < len(self._starts) else None

    def from_offset(self, offset: Offset) -> Iterator[bytes]:
        """The referenced segments for `offset` and later ones, in order."""
        return iter(self._ids[bisect_left(self._ends, offset) :])

    def overlapping(self, first: Offset, last: Offset) -> Iterator[bytes]:
        """The referenced segments with some of these offsets, and all that are not referenced."""
        yield from self._ids[bisect_left(self._ends, first) : bisect_right(self._starts, last)]
        yield from self.unreferenced

    def referenced(self) -> Iterable[tuple[Offset, Offset, bytes]]:
        """(first offset, last offset, segment) in order of offsets."""
        return zip(self._starts, self._ends, self._ids, strict=True)

    def segment_ids(self) -> list[bytes]:
        """All segments, unordered."""
        return [*self._ids, *self.unreferenced]

    # Updates

    def finished(self, segment: bytes, start: Offset, end: Offset) -> None:
        """A segment has been copied: it becomes referenced, unless another one has all of its offsets and more.

        Segments that it covers become unreferenced. An epoch without records in the segment has `end` before `start`.
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
        """Lookups do not find a segment any more."""
        at = bisect_left(self._starts, start)
        if at < len(self._ids) and self._ids[at] == segment:
            del self._starts[at], self._ends[at], self._ids[at]
        self.unreferenced.add(segment)

    def restore(self, start: Offset, end: Offset, segment: bytes) -> None:
        """Append an entry of `referenced`, in the same order. Raises ValueError if the order is wrong."""
        if self._ids and not (self._starts[-1] < start and self._ends[-1] < end):
            raise ValueError(f"The segment from {start} to {end} comes after one from {self._starts[-1]}.")
        self._starts.append(start)
        self._ends.append(end)
        self._ids.append(segment)
