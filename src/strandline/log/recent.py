"""Where the newest batches of the active segment are, so that readers at the tail need no index and no file."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Final

_MOST: Final = 128


class RecentBatches:
    """Last offset and position of the newest finished batches of one segment."""

    __slots__ = ("_last_offsets", "_positions")

    def __init__(self) -> None:
        self._last_offsets: array[int] = array("q")
        self._positions: array[int] = array("q")

    def add(self, last_offset: int, position: int) -> None:
        """Note a finished batch. They come in the order of their offsets."""
        self._last_offsets.append(last_offset)
        self._positions.append(position)
        if len(self._positions) > _MOST:
            del self._last_offsets[: _MOST // 2], self._positions[: _MOST // 2]

    def find(self, offset: int, end_position: int) -> tuple[int, int] | None:
        """(position, end position) of the batch that holds `offset`, None if it is not known here.

        `end_position` is where the segment ends at present.
        """
        offsets, positions = self._last_offsets, self._positions
        index = bisect_left(offsets, offset)
        # Without a batch before it, one that is not remembered could hold the offset as well.
        if index == len(offsets) or (index == 0 and positions[0] != 0):
            return None
        return positions[index], positions[index + 1] if index + 1 < len(positions) else end_position

    def clear(self) -> None:
        """Forget everything, since the segment was changed or replaced."""
        del self._last_offsets[:], self._positions[:]
