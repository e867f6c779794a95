"""The segments of a log in the order of their offsets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from strandline.log.segment import LogSegment


class Segments:
    """Segments by base offset. There is always at least one once a log is loaded; the last one is active."""

    __slots__ = ("_bases", "_segments", "active")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[LogSegment] = []
        self.active: LogSegment
        """Where the next batch goes."""

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    @property
    def first(self) -> LogSegment:
        return self._segments[0]

    @property
    def bases(self) -> list[int]:
        """The base offsets, ascending. For reading only."""
        return self._bases

    def as_list(self) -> list[LogSegment]:
        """A copy that stays as it is while the log goes on."""
        return list(self._segments)

    def add(self, segment: LogSegment) -> None:
        """Put a segment in its place. One with the same base offset is replaced."""
        index = bisect_left(self._bases, segment.base_offset)
        if index < len(self._bases) and self._bases[index] == segment.base_offset:
            self._segments[index] = segment
        else:
            self._bases.insert(index, segment.base_offset)
            self._segments.insert(index, segment)
        self.active = self._segments[-1]

    def remove(self, segment: LogSegment) -> None:
        """Take a segment out, if it is still the one at its base offset."""
        index = bisect_left(self._bases, segment.base_offset)
        if index < len(self._segments) and self._segments[index] is segment:
            del self._bases[index], self._segments[index]
            if self._segments:
                self.active = self._segments[-1]

    def floor(self, offset: int) -> LogSegment | None:
        """The last segment that starts at or before `offset`."""
        index = bisect_right(self._bases, offset) - 1
        return self._segments[index] if index >= 0 else None

    def after(self, base_offset: int) -> LogSegment | None:
        """The first segment that starts above `base_offset`."""
        index = bisect_right(self._bases, base_offset)
        return self._segments[index] if index < len(self._segments) else None

    def covering(self, offset: int) -> list[LogSegment]:
        """The segment that holds `offset` and all later ones."""
        index = max(bisect_right(self._bases, offset) - 1, 0)
        return self._segments[index:]
