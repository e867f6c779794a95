"""Frame buffers: pooled, because a fresh megabyte per frame costs more than everything else done with the frame."""

from __future__ import annotations

import mmap
from typing import Final

_SMALLEST: Final = 64 * 1024
_LARGEST_POOLED: Final = 4 * 1024 * 1024
_POOLED_PER_CLASS: Final = 8


class FrameBuffer:
    """Anonymous memory for one frame. Pages cost nothing until bytes arrive in them."""

    __slots__ = ("capacity", "view")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.view = memoryview(mmap.mmap(-1, capacity))


class BufferPool:
    """Lends frame buffers by size class, powers of two from 64 KB to 4 MB. Larger ones are allocated and dropped.

    An announced length costs address space only: a page of an anonymous mapping becomes memory when it is
    written, so memory follows the bytes received and not the bytes a client says it will send.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[FrameBuffer]] = {}

    def take(self, size: int) -> FrameBuffer:
        """A buffer of at least `size` bytes."""
        capacity = max(_SMALLEST, 1 << (size - 1).bit_length())
        if capacity > _LARGEST_POOLED:
            return FrameBuffer(size)
        free = self._free.get(capacity)
        return free.pop() if free else FrameBuffer(capacity)

    def give_back(self, buffer: FrameBuffer) -> None:
        """Return a buffer. No view of it may be in use any more."""
        if buffer.capacity > _LARGEST_POOLED:
            return
        free = self._free.setdefault(buffer.capacity, [])
        if len(free) < _POOLED_PER_CLASS:
            free.append(buffer)

    def trim(self) -> None:
        """Drop all free buffers: an idle broker holds none."""
        self._free.clear()

    @property
    def free_bytes(self) -> int:
        """How much memory waits for the next frame."""
        return sum(capacity * len(free) for capacity, free in self._free.items())
