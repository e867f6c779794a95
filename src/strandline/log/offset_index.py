"""The offset index: where in a segment's file the batch with a given offset is."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import ClassVar, Final, NamedTuple

from strandline.log.files import OFFSET_INDEX
from strandline.log.index_file import IndexFile

_IS_LITTLE_ENDIAN: Final = sys.byteorder == "little"
_POSITION_MASK: Final = 0xFFFFFFFF


class OffsetPosition(NamedTuple):
    """The last offset of a batch, and where that batch starts in the file."""

    offset: int
    position: int


class OffsetIndex(IndexFile):
    """Sparse map from the last offset of a batch to the position of the batch.

    An entry is 8 bytes: offset relative to the base, position. Read as one big-endian number an entry sorts by
    offset, so the entries are an array of such numbers and a lookup is one bisection in C.
    """

    __slots__ = ("_entries",)

    ENTRY_SIZE: ClassVar[int] = 8
    SUFFIX = OFFSET_INDEX

    def __init__(self, directory: str, base_offset: int) -> None:
        super().__init__(directory, base_offset)
        self._entries: array[int] | None = None

    def _loaded(self) -> array[int]:
        entries = self._entries
        if entries is None:
            entries = array("Q")
            entries.frombytes(self._read_entries())
            if _IS_LITTLE_ENDIAN:
                entries.byteswap()
            self._entries = entries
        return entries

    @property
    def is_loaded(self) -> bool:
        """True if the entries are in memory."""
        return self._entries is not None

    @property
    def count(self) -> int:
        """How many entries there are."""
        return len(self._loaded())

    @property
    def unwritten_count(self) -> int:
        """How many entries are not in the file yet."""
        return len(self._entries) - self._written if self._entries is not None else 0

    @property
    def entries(self) -> list[OffsetPosition]:
        """All entries."""
        return [OffsetPosition(self.base_offset + (e >> 32), e & _POSITION_MASK) for e in self._loaded()]

    @property
    def last(self) -> OffsetPosition:
        """The newest entry, or the start of the segment."""
        entries = self._loaded()
        if not entries:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + (entries[-1] >> 32), entries[-1] & _POSITION_MASK)

    def is_sane(self) -> bool:
        """False if the entries are not in strictly ascending order: the index has to be rebuilt."""
        entries = self._loaded()
        if not entries:
            return True
        offsets = [entry >> 32 for entry in entries]
        return offsets[-1] <= 0x7FFFFFFF and all(a < b for a, b in pairwise(offsets))

    def append(self, offset: int, position: int) -> None:
        """Add an entry. Offsets must ascend."""
        self._loaded().append((offset - self.base_offset) << 32 | position)

    def lookup(self, offset: int) -> int:
        """The position to start scanning from: that of the last entry not above `offset`, else 0."""
        entries = self._entries
        if entries is None:
            entries = self._loaded()
        index = bisect_right(entries, (offset - self.base_offset) << 32 | _POSITION_MASK)
        return entries[index - 1] & _POSITION_MASK if index else 0

    def offset_at_or_after(self, position: int) -> int | None:
        """The offset of the first entry at `position` or later."""
        entries = self._loaded()
        index = bisect_left(entries, position, key=lambda entry: entry & _POSITION_MASK)
        return self.base_offset + (entries[index] >> 32) if index < len(entries) else None

    def position_at_or_before(self, position: int) -> int:
        """The start of the last batch with an entry that starts at `position` or earlier, else 0."""
        entries = self._loaded()
        index = bisect_right(entries, position, key=lambda entry: entry & _POSITION_MASK)
        return entries[index - 1] & _POSITION_MASK if index else 0

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at `offset` and above."""
        entries = self._loaded()
        keep = bisect_left(entries, (offset - self.base_offset) << 32)
        del entries[keep:]
        self._cut(keep)

    def clear(self) -> None:
        """Drop all entries."""
        self._entries = array("Q")
        self._written = 0
        self._is_longer_on_disk = True

    @property
    def memory_bytes(self) -> int:
        return 8 * len(self._entries) if self._entries is not None else 0

    def unload(self) -> None:
        self._entries = None

    def _start_empty(self) -> None:
        self._entries = array("Q")

    def _unwritten(self) -> bytes:
        entries = self._entries
        if entries is None or len(entries) == self._written:
            return b""
        fresh = entries[self._written :]
        if _IS_LITTLE_ENDIAN:
            fresh.byteswap()
        return fresh.tobytes()
