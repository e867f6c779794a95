"""Figures of many small consumers, and the shapes that they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from bench.figure import Figure, Target


@dataclass(frozen=True, slots=True)
class Tail:
    """Consumers that wait at the ends of 100 partitions, and how many records of 100 B arrive in a second."""

    title: str
    rate: int
    shape: Mapping[str, int]


TAILS: Final[Mapping[str, Tail]] = {
    "sessions": Tail("1,000 consumers of one partition each, fetch sessions", 500, {"consumers": 1000}),
    "plain": Tail("1,000 consumers of one partition each, no sessions", 500, {"consumers": 1000, "sessions": 0}),
    "wide": Tail("100 consumers of 100 partitions each, fetch sessions", 30, {"consumers": 100, "width": 100}),
}
CALLS: Final[Mapping[str, str]] = {
    "heartbeat": "Heartbeat",
    "modern": "ConsumerGroupHeartbeat",
    "commit": "OffsetCommit of one partition",
    "offsets": "OffsetFetch of one partition",
}
_AT_MOST: Final = Target(1.0)


def tail_figures() -> Iterable[Figure]:
    for case, tail in TAILS.items():
        section = f"At the tail of 100 partitions: {tail.title}, {tail.rate} records/s of 100 B"
        yield from _figures(f"tail.{case}", section, "records delivered", "record", {"p50": "p50", "p99": "p99"})
    for name, title in CALLS.items():
        yield from _figures(f"calls.{name}", f"{title}, 50 connections", "requests", "req", {"p99": "p99"})


def _figures(name: str, section: str, what: str, unit: str, times: Mapping[str, str]) -> Iterable[Figure]:
    yield Figure(
        name=f"{name}.cpu",
        title="broker CPU",
        unit=f"µs/{unit}",
        more_is_better=False,
        target=_AT_MOST,
        section=section,
    )
    yield Figure(name=f"{name}.rate", title=what, unit="/s", section=section)
    for part, title in times.items():
        yield Figure(name=f"{name}.{part}", title=title, unit="ms", more_is_better=False, section=section)
