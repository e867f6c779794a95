"""Writes the history down while it happens, and knows what of it went on when."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TextIO

from chaos.history import COMMITTED, Attempt, Content, Delivery, Event, Fault, Outcome, to_line
from chaos.progress import progress_of
from chaos.values import SHARE_GROUP, Place


class Recorder:
    """Writes events down as they happen, from any thread."""

    def __init__(self, output: TextIO) -> None:
        self._output, self._lock = output, threading.Lock()
        self._counts: dict[str, int] = {}
        self.last_fault = "none"
        self.heard: dict[Place | str, float] = {}
        """When something was acknowledged last in a partition, or given to a group."""
        self._shared: dict[Place, set[int]] = {}
        self._committed: dict[Place, set[int]] = {}

    def write(self, *events: Event) -> None:
        """Append lines; those of one call stay together."""
        lines = "".join(to_line(event) + "\n" for event in events)
        with self._lock:
            self._output.write(lines)
            self._count(events)

    def _count(self, events: Iterable[Event]) -> None:
        for event in events:
            self.heard.update(progress_of(event))
            self._note_offsets(event)
            name = type(event).__name__.lower()
            if isinstance(event, Attempt):
                name = event.outcome.value
            elif isinstance(event, Fault):
                self.last_fault = f"{event.kind} of {event.target} at {event.at:.1f} s"
            self._counts[name] = self._counts.get(name, 0) + 1

    def _note_offsets(self, event: Event) -> None:
        if isinstance(event, Delivery) and event.group == SHARE_GROUP:
            found = self._shared.setdefault((event.topic, event.partition), set())
            found.update(offset for offset, _ in event.records)
        elif isinstance(event, Content) and event.isolation == COMMITTED:
            self._committed[event.topic, event.partition] = {offset for offset, _ in event.records}

    def is_shared(self, place: Place) -> bool:
        """Whether the share group was given all that was committed in a partition; True if nothing was read of it."""
        with self._lock:
            return self._committed.get(place, set()) <= self._shared.get(place, set())

    def progress(self) -> str:
        """What there is up to now, in a line."""
        with self._lock:
            count = self._counts.get
            outcomes = ", ".join(f"{count(outcome.value, 0)} {outcome}" for outcome in Outcome)
            more = f"{count('fault', 0)} faults, {count('ended', 0)} clients replaced"
            troubles = f", {count('trouble', 0)} TROUBLES" if count("trouble", 0) else ""
            return f"{outcomes}, {more}{troubles}; last fault: {self.last_fault}"

    def flush(self) -> None:
        """Have all of it in the file."""
        with self._lock:
            self._output.flush()
