"""Closes files that were deleted, one after the other, in a thread with a low priority.

With the last descriptor of a deleted file its blocks and its cached pages go, which takes the kernel up to 100 ms for a
gigabyte. Retention deletes many segments at once, after a backlog was copied to remote storage for instance: a thread
for each of them kept requests waiting for a processor.
"""

from __future__ import annotations

import os
import queue
import threading
from contextlib import suppress
from typing import Final

_POLITENESS: Final = 10


class _Closer:
    """The thread and its descriptors. The thread starts with the first of them."""

    def __init__(self) -> None:
        # This queue may be used from a destructor, whatever the thread was doing when it ran.
        self._descriptors: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._starts = iter([True])

    def close(self, descriptor: int) -> None:
        """Close a descriptor soon."""
        self._descriptors.put(descriptor)
        if next(self._starts, False):
            threading.Thread(target=self._run, name="close-deleted", daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):  # where only processes have a priority
            own = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own + _POLITENESS)
        while True:
            with suppress(OSError):  # the descriptor is gone all the same
                os.close(self._descriptors.get())


close_soon: Final = _Closer().close
"""Closes the descriptor of a deleted file soon. Never blocks; may be called from a destructor."""
