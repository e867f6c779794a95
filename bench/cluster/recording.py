"""What writers have in common: they note acknowledgements in a thread of their own, while faults happen in another."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

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

    def wait_begun(self) -> None:
        """Until every partition was written to."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._has_begun():
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


class Writer(Protocol):
    """Writes to every partition of a topic, every few milliseconds, from the beginning of its block to its end."""

    recording: Recording

    def __enter__(self) -> Writer: ...

    def __exit__(self, *_: object) -> None:
        """Raises what has ended the writer early."""
