"""How long nobody could write to a partition: the longest time between two acknowledgements, around one event.

Pure: times are given. A time between two acknowledgements belongs to an event if the second one comes after it, also
if the first one came before. What was not acknowledged again until the end is counted up to the end, and named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """What writers saw of one event."""

    kind: str
    node_id: int
    seconds_by_partition: tuple[float, ...]
    """The longest time without an acknowledgement, by partition."""
    unwritable: tuple[int, ...] = ()
    """Partitions that acknowledged nothing more until the end."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """What the writers were told, and how often."""

    @property
    def seconds(self) -> float:
        """The longest of all partitions."""
        return max(self.seconds_by_partition)


class Pauses:
    """The acknowledgements of some partitions, of which only the last and the longest gap are kept."""

    def __init__(self, partitions: int) -> None:
        self._last: list[float | None] = [None] * partitions
        self._longest = [0.0] * partitions
        self._has_more = [False] * partitions
        self._errors: Counter[str] = Counter()
        self.acknowledged = [0] * partitions
        """How many records of each partition."""
        self.errors: Counter[str] = Counter()
        """Of all events, and of the times between them."""

    @property
    def has_begun(self) -> bool:
        """Whether every partition has acknowledged something."""
        return all(last is not None for last in self._last)

    def acknowledge(self, partition: int, at: float) -> None:
        """A record of the partition was acknowledged at this moment."""
        last = self._last[partition]
        if last is not None and at - last > self._longest[partition]:
            self._longest[partition] = at - last
        self._last[partition] = at
        self._has_more[partition] = True
        self.acknowledged[partition] += 1

    def fail(self, error: str) -> None:
        """A writer was told that a record was not written."""
        self._errors[error] += 1
        self.errors[error] += 1

    def begin(self) -> None:
        """An event comes now: what was longest before does not count. Raises ValueError before the first records."""
        if not self.has_begun:
            raise ValueError("A partition has not acknowledged anything yet: its pause has no beginning.")
        self._longest = [0.0] * len(self._last)
        self._has_more = [False] * len(self._last)
        self._errors.clear()

    def longest(self, partition: int) -> float:
        """The longest time between two acknowledgements of the partition since the event began."""
        return self._longest[partition]

    def is_written_since(self, at: float) -> bool:
        """Whether each partition has acknowledged something at this moment or later."""
        return all(last is not None and last >= at for last in self._last)

    def end(self, kind: str, node_id: int, at: float) -> Outage:
        """What there was since the event began. What is not acknowledged by now is a pause that lasts until now."""
        open_gaps = [at - last if last is not None else 0.0 for last in self._last]
        return Outage(
            kind=kind,
            node_id=node_id,
            seconds_by_partition=tuple(map(max, self._longest, open_gaps)),
            unwritable=tuple(number for number, has_more in enumerate(self._has_more) if not has_more),
            errors=dict(self._errors),
        )


def longest_of(outages: Sequence[Outage]) -> float:
    """In seconds."""
    return max(outage.seconds for outage in outages)
