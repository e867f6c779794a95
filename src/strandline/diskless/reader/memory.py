"""Memory for batches in the cache, recycled when the last view of a batch is gone.

Fresh memory costs a page fault for every 4 KB, three times as much as the copy that fills it. Here a large batch gets
the buffer of an evicted one. When the last view of a buffer dies, in the cache or in a response to a slow client, the
buffer returns by itself.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import defaultdict, deque
from functools import cache
from typing import Any, Final

from strandline.records import Buffer

# Smaller buffers come from the free lists of the allocator, which cause no page faults either.
SMALLEST: Final = 64 * 1024
# Capacities per power of two: at most a fifth of a buffer is unused.
_STEPS: Final = 4
SPARE_LIMIT: Final = 32 * 1024 * 1024


class RecycledMemory:
    """Copies batches into recycled memory. Call `copy` from one thread; views may die in any."""

    def __init__(self, spare_limit: int = SPARE_LIMIT) -> None:
        self._spare: defaultdict[int, list[bytearray]] = defaultdict(list)
        self._returned: deque[bytearray] = deque()
        self._spare_limit = spare_limit
        self.spare_bytes = 0
        """Bytes of buffers that are kept for reuse."""

    def copy(self, data: Buffer) -> bytearray | memoryview:
        """A writable copy of `data`."""
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
        # A view keeps the object alive from which it was made. The lease is that object: it dies with the last view.
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
    """The size of the buffer that `copy` uses for `size` bytes: multiples of a quarter of a power of two."""
    step = 1 << max(size - 1, 1).bit_length() - 1 - (_STEPS.bit_length() - 1)
    return -(-size // step) * step


def held_bytes(buffer: bytearray | memoryview) -> int:
    """Memory that is freed with a buffer."""
    return memoryview(buffer.obj).nbytes if isinstance(buffer, memoryview) else buffer.__sizeof__()


@cache
def _lease_type(capacity: int) -> Any:
    return type(f"Lease{capacity}", (ctypes.c_char * capacity,), {})
