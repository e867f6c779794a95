"""What writers have in common: they note acknowledgements in a thread of their own, while faults happen in another."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Self

from bench.cluster.pauses import Outage, Pauses

PATIENCE_SECONDS: Final = 60.0
_STEP_SECONDS: Final = 0.01


class Recording:
    """Pauses that several threads may tell of, in real time."""

    def __init__(self, partitions: int) -> None:
        self._pauses = Pauses(partitions)
        self._lock = threading.Lock()

    # Of the writer

    def acknowledge(self, partition: int) -> None:
        with self._lock:
            self._pauses.acknowledge(partition, time.monotonic())

    def fail(self, error: str) -> None:
        with self._lock:
            self._pauses.fail(error)

    # Of what happens to the brokers

    def begin(self) -> float:
        """An event comes now: the moment."""
        with self._lock:
            self._pauses.begin()
        return time.monotonic()

    def end(self, kind: str, node_id: int) -> Outage:
        with self._lock:
            return self._pauses.end(kind, node_id, time.monotonic())

    def wait_begun(self, check: Callable[[], None]) -> None:
        """Until every partition was written to. `check` raises what has ended the writer."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._has_begun():
            check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"Not all partitions were written to in {PATIENCE_SECONDS:g} s: {self.errors}.")
            time.sleep(_STEP_SECONDS)

    def is_written_since(self, at: float) -> bool:
        with self._lock:
            return self._pauses.is_written_since(at)

    def _has_begun(self) -> bool:
        with self._lock:
            return self._pauses.has_begun

    @property
    def acknowledged(self) -> Sequence[int]:
        """How many records of each partition."""
        with self._lock:
            return tuple(self._pauses.acknowledged)

    @property
    def errors(self) -> Mapping[str, int]:
        with self._lock:
            return dict(self._pauses.errors)


class Writer(ABC):
    """Writes to every partition of a topic, every few milliseconds, from the beginning of its block to its end.

    The block begins when every partition was written to. At its end it raises what has ended the writer early.
    """

    def __init__(self, partitions: int) -> None:
        self.recording = Recording(partitions)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._working: Future[None] | None = None

    @abstractmethod
    def _work(self) -> None:
        """In a thread of its own, until it is asked to stop."""

    @abstractmethod
    def _ask_to_stop(self) -> None:
        """From another thread."""

    def check(self) -> None:
        """Raises what has ended it, if it has ended."""
        if self._working is not None and self._working.done():
            self._working.result()

    def __enter__(self) -> Self:
        self._working = self._pool.submit(self._work)
        try:
            self.recording.wait_begun(self.check)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._ask_to_stop()
        if self._working is not None:
            self._working.result()
        self._pool.shutdown()
