"""Memory for batches that live as long as the cache keeps them, used again when nobody looks at it any more.

Fresh memory costs a page fault for every 4 KB, three times as much as the copy that fills it. Here a large batch gets
a buffer that an evicted one had before. When its last view dies, wherever that was (the cache, a response on its way to
a slow client), the buffer comes back by itself.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import defaultdict, deque
from functools import cache
from typing import Any, Final

from strandline.records import Buffer

# Smaller ones come from the allocator's own free lists, which make no page faults either.
SMALLEST: Final = 64 * 1024
# At most a fifth of a buffer is unused.
_STEPS: Final = 4
SPARE_LIMIT: Final = 32 * 1024 * 1024


class RecycledMemory:
    """Copies of batches in memory that was used before. `copy` is for one thread; views may die in any."""

    def __init__(self, spare_limit: int = SPARE_LIMIT) -> None:
        self._spare: defaultdict[int, list[bytearray]] = defaultdict(list)
        self._returned: deque[bytearray] = deque()
        self._spare_limit = spare_limit
        self.spare_bytes = 0
        """Held in store, in no use."""

    def copy(self, data: Buffer) -> bytearray | memoryview:
        """A writable copy of its own."""
        size = len(data)
        if size < SMALLEST:
            return bytearray(data)
        self._sort_returned()
        capacity = capacity_for(size)
        spare = self._spare[capacity]
        if spare:
            raw = spare.pop()
            self.spare_bytes -= capacity
        else:
            raw = bytearray(capacity)
        # A view keeps the object alive that it was made of. This one exists for that: its end is the end of all views.
        lease = _lease_type(capacity).from_buffer(raw)
        weakref.finalize(lease, self._returned.append, raw).atexit = False
        view = memoryview(lease).cast("B")[:size]
        view[:] = data
        return view

    def _sort_returned(self) -> None:
        while self._returned:
            raw = self._returned.popleft()
            capacity = len(raw)
            if self.spare_bytes + capacity <= self._spare_limit:
                self._spare[capacity].append(raw)
                self.spare_bytes += capacity


def capacity_for(size: int) -> int:
    """The size of the buffer that `copy` uses for so many bytes: quarters of powers of two."""
    step = 1 << max(size - 1, 1).bit_length() - 1 - (_STEPS.bit_length() - 1)
    return -(-size // step) * step


def held_bytes(buffer: bytearray | memoryview) -> int:
    """Memory that goes away with a buffer."""
    return memoryview(buffer.obj).nbytes if isinstance(buffer, memoryview) else buffer.__sizeof__()


@cache
def _lease_type(capacity: int) -> Any:
    return type(f"Lease{capacity}", (ctypes.c_char * capacity,), {})
