"""Closes files that were deleted, one after the other, in a thread with a low priority.

With the last descriptor of a deleted file its blocks and its cached pages go, which takes the kernel up to 100 ms for a
gigabyte. Retention deletes many segments at once, after a backlog was copied to remote storage for instance: a thread
for each of them kept requests waiting for a processor.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from contextlib import suppress
from typing import Final

logger = logging.getLogger(__name__)

_POLITENESS: Final = 10


class DeletedFiles:
    """A thread and its descriptors. The thread starts with the first of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        # This queue may be used from a destructor, whatever the thread was doing when it ran.
        self._descriptors: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._starts = iter([True])

    def close(self, descriptor: int) -> None:
        """Close a descriptor soon."""
        self._descriptors.put(descriptor)
        if next(self._starts, False):
            try:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            except RuntimeError as error:  # there are too many; the next descriptor tries again
                self._starts = iter([True])
                logger.warning("deleted files stay open until another one is closed: %s", error)

    def _run(self) -> None:
        with suppress(OSError):  # where only processes have a priority
            own = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own + _POLITENESS)
        while True:
            with suppress(OSError):  # the descriptor is gone all the same
                os.close(self._descriptors.get())


close_soon: Final = DeletedFiles("close-deleted").close
"""Closes the descriptor of a deleted file soon. Never blocks; may be called from a destructor."""
