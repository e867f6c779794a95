"""The history by what the judge asks of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar, cast

from chaos.history import (
    Attempt,
    Bounds,
    Calm,
    Content,
    Delivery,
    Event,
    GroupOffset,
    Promise,
    Replica,
    Run,
    Seen,
    Trouble,
)
from chaos.values import Place

TIMED_OUT = "_MSG_TIMED_OUT"
"""The error of a record that waited for longer than the delivery timeout."""

E = TypeVar("E", bound=Event)


class Index:
    """Events by their kind, each in the order of the history."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events: dict[type[object], list[Event]] = defaultdict(list)
        for event in events:
            self._events[type(event)].append(event)
        self.attempts = self._of(Attempt)
        self.seen = self._of(Seen)
        self.deliveries = self._of(Delivery)
        self.contents = self._of(Content)
        self.bounds = self._of(Bounds)
        self.offsets = self._of(GroupOffset)
        self.replicas = self._of(Replica)
        self.calm = self._of(Calm)
        self.troubles = self._of(Trouble)
        self.run = next(iter(self._of(Run)), None)

    def _of(self, kind: type[E]) -> list[E]:
        return cast(list[E], self._events[kind])

    def final(self, isolation: str) -> dict[Place, list[tuple[int, str]]]:
        """The first full read of each partition at this level."""
        found: dict[Place, list[tuple[int, str]]] = {}
        for content in self.contents:
            if content.isolation == isolation:
                found.setdefault((content.topic, content.partition), content.records)
        return found

    def places(self) -> set[Place]:
        """Every partition that somebody wrote to or read."""
        written = {(one.topic, one.partition) for attempt in self.attempts for one in attempt.appends}
        read = {(one.topic, one.partition) for one in self.seen}
        return written | read | {(one.topic, one.partition) for one in self.contents}

    def repeating_streams(self) -> set[str]:
        """Producers whose values may be there more than once: plain ones, and those of which a record has timed out.

        After a timeout librdkafka takes the next epoch, and sends what may have been written once more: no broker can
        know that (its issue 4953). What is promised for each epoch is judged by sequences.
        """
        return {
            one.writer
            for one in self.attempts
            if one.promise is Promise.PLAIN or (one.promise is Promise.IDEMPOTENT and one.error == TIMED_OUT)
        }
