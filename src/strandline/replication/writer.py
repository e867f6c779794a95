"""A thread that writes large appends, so that the event loop never waits for the kernel to take them."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

logger = logging.getLogger(__name__)

# Called on the event loop, in the order of submission, with the error of the write if it failed.
Written: TypeAlias = Callable[[OSError | None], None]


class Writable(Protocol):
    """An append that has begun: a `PendingAppend`."""

    def write(self) -> None:
        """Write it. Blocking. Raises OSError."""


class _NothingToWrite:
    def write(self) -> None:
        """Nothing."""


_NOTHING_TO_WRITE = _NothingToWrite()


class _Job(NamedTuple):
    append: Writable
    written: Written


class LogWriter:
    """Carries out appends in the order they were submitted, and reports on the event loop in that order.

    One for each log directory: a directory that hangs must not hold up the others.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._name = name
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._done: deque[tuple[Written, OSError | None]] = deque()
        self._thread: threading.Thread | None = None
        self._wakeup_is_due = False

    def submit(self, append: Writable, written: Written) -> None:
        """Queue one append. `written` is called on the event loop when it is in the file, or has failed."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"log-writer-{self._name}", daemon=True)
            self._thread.start()
        self._jobs.put(_Job(append, written))

    def call_behind(self, done: Callable[[], None]) -> None:
        """Call `done` on the event loop when everything that is queued now is in its files, or has failed."""
        self.submit(_NOTHING_TO_WRITE, lambda _: done())

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._done.append((job.written, _write(job.append)))
            # While this thread waits it must not keep a request's memory or a deleted topic's files.
            del job
            # Benign race: a second wake-up finds an empty queue. A missing one cannot happen, since the
            # loop clears the flag before it looks at the queue.
            if not self._wakeup_is_due:
                self._wakeup_is_due = True
                self._loop.call_soon_threadsafe(self._report)

    def _report(self) -> None:
        self._wakeup_is_due = False
        while self._done:
            written, error = self._done.popleft()
            try:
                written(error)
            except Exception:  # the others must not wait for their report until something else is written
                logger.exception("a written append could not be reported")

    def close(self) -> None:
        """Finish what is queued, then stop."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
        self._report()


def _write(append: Writable) -> OSError | None:
    try:
        append.write()
    except OSError as error:
        return error.with_traceback(None)
    except Exception as bug:  # the edge of the thread: without it, every later append would wait forever
        logger.exception("an append could not be written")
        return OSError(f"An append could not be written: {bug!r}")
    return None
