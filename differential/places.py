"""Partitions under comparison, and what is known of them between two steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

MISSING_TOPIC = "missing"
MISSING_ID = UUID(int=0xABCDEF0123456789)
PARTITIONS_OF_NONE = 9
"""A partition number that no topic has."""


class Place(NamedTuple):
    """A partition. Its topic is named after its kind: `tiered-small`."""

    topic: str
    partition: int

    @property
    def kind(self) -> str:
        return self.topic.partition("-")[0]

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class Ends(NamedTuple):
    """What ListOffsets says of a partition: for each question the error, the offset and the leader epoch."""

    latest: tuple[int, int, int]
    stable: tuple[int, int, int]
    earliest: tuple[int, int, int]
    local: tuple[int, int, int]
    tiered: tuple[int, int, int]
    pending: tuple[int, int, int]

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {offset} in epoch {epoch}" if not error else f"{name} error {error}"
            for name, (error, offset, epoch) in self._asdict().items()
        )


@dataclass(slots=True)
class Known:
    """Where to aim: the ends of the log, its boundaries and its batches, as both brokers have told them."""

    end: int = 0
    stable: int = 0
    start: int = 0
    local: int = 0
    tiered: int = -1
    epoch: int = 0
    """The current one of the leader."""
    boundary: int = -1
    """B0."""
    is_limited: bool = False
    """Whether retention moves its log start, at a time of its own."""
    is_stamped: bool = False
    """Whether the broker's clock gives its records their times."""
    bases: list[int] = field(default_factory=list)
    """First offsets of batches that were written."""
    times: list[int] = field(default_factory=list)
    """Timestamps of records that were written."""

    def learn(self, ends: Ends) -> None:
        self.end = _offset(ends.latest, self.end)
        self.stable = _offset(ends.stable, self.stable)
        self.start = _offset(ends.earliest, self.start)
        self.local = _offset(ends.local, self.local)
        self.tiered = _offset(ends.tiered, self.tiered)

    @property
    def landmarks(self) -> list[int]:
        """Offsets at which something begins or ends."""
        boundary = [self.boundary] if self.boundary >= 0 else []
        return [self.start, self.local, self.tiered + 1, self.stable, self.end, *boundary]


def _offset(answer: tuple[int, int, int], before: int) -> int:
    error, offset, _ = answer
    return before if error else offset
