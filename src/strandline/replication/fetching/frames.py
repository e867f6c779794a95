"""Buffers in which answers of leaders are received, and from which their records are written."""

from __future__ import annotations

import mmap
from typing import Final

SMALLEST: Final = 64 * 1024
_MOST_FREE: Final = 2
_SMALL_IN_A_ROW: Final = 64


class FrameRoom:
    """Memory for one answer. Pages cost nothing before bytes arrive in them.

    Writes under way hold it: it gets no other answer before they have ended.
    """

    __slots__ = ("_holds", "_rooms", "capacity", "view")

    def __init__(self, capacity: int, rooms: FrameRooms) -> None:
        self.capacity: Final = capacity
        self.view: Final = memoryview(mmap.mmap(-1, capacity))
        self._rooms = rooms
        self._holds = 0

    @property
    def is_held(self) -> bool:
        """True while a write needs what is in it."""
        return self._holds > 0

    def hold(self) -> None:
        """A write needs it until `release`."""
        self._holds += 1

    def release(self) -> None:
        """A write has ended."""
        self._holds -= 1
        if not self._holds:
            self._rooms.written(self)


class FrameRooms:
    """The rooms of one connection: as large as its answers are, and given up when they have become small."""

    __slots__ = ("_free", "_held", "_small")

    def __init__(self) -> None:
        self._free: list[FrameRoom] = []
        self._held: set[FrameRoom] = set()
        self._small = 0

    @property
    def held(self) -> int:
        """How many are held by writes."""
        return len(self._held)

    def take(self, size: int = SMALLEST) -> FrameRoom:
        """A room of at least this size: the largest that is free, or a new one."""
        if self._free:
            room = max(self._free, key=_capacity_of)
            if room.capacity >= size:
                self._free.remove(room)
                return room
        return FrameRoom(max(SMALLEST, 1 << (size - 1).bit_length()), self)

    def read(self, room: FrameRoom, size: int) -> None:
        """An answer of this size was read in the room, which is another one's when it is not held."""
        self._small = self._small + 1 if size * 4 <= room.capacity else 0
        if self._small >= _SMALL_IN_A_ROW:
            self._small = 0
            self._free.clear()
            if not room.is_held and room.capacity > SMALLEST:
                return
        if room.is_held:
            self._held.add(room)
        else:
            self._give_back(room)

    def written(self, room: FrameRoom) -> None:
        """No write needs the room any more."""
        if room in self._held:
            self._held.discard(room)
            self._give_back(room)

    def _give_back(self, room: FrameRoom) -> None:
        if len(self._free) < _MOST_FREE:
            self._free.append(room)


def _capacity_of(room: FrameRoom) -> int:
    return room.capacity
