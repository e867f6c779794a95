"""One fsync of a directory for all threads that wait for one. Everything here blocks its thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait


class DirectorySync:
    """Makes names durable. Callers that arrive while a directory is being flushed share the next flush of it.

    A flush covers only what happened before it began, so a caller never joins one that is running.
    """

    def __init__(self, flush: Callable[[str], None]) -> None:
        self._flush = flush
        self._lock = threading.Lock()
        self._running: dict[str, Future[None]] = {}
        self._next: dict[str, Future[None]] = {}
        self._sharing: Counter[str] = Counter()

    def waiting(self, directory: str) -> int:
        """How many callers wait for a flush of the directory that has not begun."""
        return self._sharing[directory]

    def wait_durable(self, directory: str) -> None:
        """Return when the names that `directory` has now are on the disk."""
        with self._lock:
            turn = self._next.get(directory)
            is_first = turn is None
            if turn is None:
                turn = self._next[directory] = Future()
            self._sharing[directory] += 1
            running = self._running.get(directory)
        if is_first:
            if running is not None:
                wait([running])
            self._take_turn(directory, turn)
        turn.result()

    def _take_turn(self, directory: str, turn: Future[None]) -> None:
        with self._lock:
            self._running[directory] = self._next.pop(directory)
            del self._sharing[directory]
        try:
            self._flush(directory)
        except BaseException as error:  # noqa: BLE001 - raised to all waiting callers, this one included
            turn.set_exception(error)
        else:
            turn.set_result(None)
        finally:
            with self._lock:
                if self._running.get(directory) is turn:
                    del self._running[directory]
