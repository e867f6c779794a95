"""Judges whether everything goes on once all faults are over, and says how long it stood still meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from chaos.history import Attempt, Calm, Delivery, Event, Fault, Outcome, Undone
from chaos.values import COPIERS, Place
from chaos.violations import Kind, Violation

_COPIER = "copy-"


@dataclass(frozen=True, slots=True)
class Pause:
    """The longest time between two acknowledgements in one partition of a topic."""

    topic: str
    partition: int
    seconds: float
    begin: float
    faults: tuple[str, ...]
    """Kinds of those that were at work meanwhile."""


def progress_of(event: Event) -> Mapping[Place | str, float]:
    """What has gone on and when: a partition, since a value in it was acknowledged, or a group by its name."""
    if isinstance(event, Delivery):
        return {event.group: event.at}
    if not isinstance(event, Attempt) or event.outcome is not Outcome.COMMITTED:
        return {}
    if event.writer.startswith(_COPIER):
        return {COPIERS: event.at}
    return {(one.topic, one.partition): event.at for one in event.appends}


def check_progress(events: Iterable[Event]) -> Iterator[Violation]:
    """In every calm time each partition gets an acknowledged value, and each group gets records."""
    known = list(events)
    heard: dict[Place | str, list[float]] = {}
    for event in known:
        for what, at in progress_of(event).items():
            heard.setdefault(what, []).append(at)
    for calm in (event for event in known if isinstance(event, Calm)):
        text = f"from {calm.at:.1f} s, when all faults were over, to {calm.until:.1f} s"
        for place in calm.places:
            if not any(calm.at <= at <= calm.until for at in heard.get(place, ())):
                yield Violation(Kind.STUCK, f"Nothing was acknowledged in {place[0]}-{place[1]} {text}.")
        for group in calm.groups:
            if not any(calm.at <= at <= calm.until for at in heard.get(group, ())):
                yield Violation(Kind.STUCK, f"The group of {group} got nothing {text}.")


def longest_pauses(events: Iterable[Event]) -> list[Pause]:
    """For each topic the longest pause between two acknowledgements in one of its partitions."""
    last: dict[Place, float] = {}
    longest: dict[str, tuple[float, float, int]] = {}
    faults: list[tuple[str, float, float]] = []
    for event in events:
        if isinstance(event, Fault):
            faults.append((event.kind, event.at, event.at + event.seconds))
        elif isinstance(event, Undone) and faults:
            kind, at, _ = faults[-1]
            faults[-1] = (kind, at, event.at)
        for what, at in progress_of(event).items():
            if isinstance(what, str):
                continue
            seconds = at - last.get(what, at)
            if seconds > longest.get(what[0], (0.0, 0.0, 0))[0]:
                longest[what[0]] = (seconds, at - seconds, what[1])
            last[what] = max(at, last.get(what, at))
    return [
        Pause(topic, partition, seconds, begin, _at_work(faults, begin, begin + seconds))
        for topic, (seconds, begin, partition) in sorted(longest.items())
    ]


def _at_work(faults: Iterable[tuple[str, float, float]], begin: float, end: float) -> tuple[str, ...]:
    return tuple(kind for kind, first, last in faults if first < end and last > begin)
