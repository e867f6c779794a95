"""Ranges of files that are not in memory are loaded by a thread before the event loop touches them.

A consumer that reads old data must not make other clients wait for the disk: sendfile and pread block on bytes that are
not in the page cache. Asking first costs two system calls of a microsecond for each megabyte.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from strandline.log import SegmentFile

_THREADS: Final = 2


class PageCache:
    """The kernel's page cache. Where the kernel cannot be asked, everything counts as cached."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._threads: ThreadPoolExecutor | None = None
        self._byte = [bytearray(1)]
        self._can_ask = hasattr(os, "RWF_NOWAIT")
        self.loads = 0

    def has(self, fd: int, position: int, length: int) -> bool:
        """True if both ends of the range are in memory, which makes it likely that the rest is too."""
        if not self._can_ask:
            return True
        try:
            os.preadv(fd, self._byte, position, os.RWF_NOWAIT)
            os.preadv(fd, self._byte, position + length - 1, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            self._can_ask = False  # this file system does not know the flag
        return True

    def read(self, fd: int, position: int, length: int) -> bytes | bytearray | None:
        """The bytes, if all of them are in memory; None if some are not. Fewer only where the file ends."""
        if not self._can_ask:
            return os.pread(fd, length, position)
        data = bytearray(length)
        try:
            count = os.preadv(fd, [data], position, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError:
            self._can_ask = False
            return os.pread(fd, length, position)
        if count == length:
            return data
        # Short at the end of the file, or where the cached pages end: only a blocking read can tell.
        return os.pread(fd, length, position) if count == 0 else None

    def load(self, file: SegmentFile, position: int, length: int, done: Callable[[], None]) -> None:
        """Read the range in a thread, then call `done` on the event loop."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="cold-read")
        self.loads += 1
        future = self._loop.run_in_executor(self._threads, file.read_through, position, length)
        future.add_done_callback(lambda finished: _finish(finished, done))

    def close(self) -> None:
        """Stop the threads."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _finish(finished: asyncio.Future[None], done: Callable[[], None]) -> None:
    # A read error shows again, with its consequences, when the range is sent.
    if not finished.cancelled():
        finished.exception()
        done()
