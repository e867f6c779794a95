"""How much clients write and read in a second: from two looks at totals that only grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from strandline.admin.status import BrokerStatus
from strandline.hybrid.traffic import NO_TRAFFIC, TrafficTotals

# Rates are measured from an earlier look that is at least, and at most, this old.
_SHORTEST_S: Final = 5.0
_LONGEST_S: Final = 60.0
ALL_TOPICS: Final = ""


@dataclass(frozen=True, slots=True)
class Rate:
    """Of one topic, or of all of them, in one second."""

    messages_in: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """By topic; `ALL_TOPICS` is all of them."""

    seconds: float
    """The time over which they were measured."""
    by_topic: Mapping[str, Rate]

    def of(self, topic: str = ALL_TOPICS) -> Rate:
        """The rate of one topic."""
        return self.by_topic.get(topic, Rate())


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    totals: Mapping[str, TrafficTotals]


class RateMeter:
    """Remembers earlier looks. Without a suitable one, a rate is the average since the start of the broker."""

    def __init__(self) -> None:
        self._looks: list[_Look] = []

    def look(self, status: BrokerStatus) -> Rates:
        """The rates until now. Remembers this look for later ones."""
        now = status.uptime_s
        totals = {row.name: row.traffic for row in status.topic_rows} | {ALL_TOPICS: status.traffic}
        self._looks = [look for look in self._looks if now - _LONGEST_S <= look.at <= now]
        fitting = [look for look in self._looks if look.at <= now - _SHORTEST_S]
        base = fitting[-1] if fitting else _Look(0.0, {})
        if not self._looks or self._looks[-1].at <= now - _SHORTEST_S:
            self._looks.append(_Look(now, totals))
        seconds = max(now - base.at, 1.0)
        return Rates(seconds, {name: _rate(base.totals.get(name), now, seconds) for name, now in totals.items()})


def _rate(before: TrafficTotals | None, now: TrafficTotals, seconds: float) -> Rate:
    # A topic that was deleted and created again begins at 0.
    is_older = before is not None and before.bytes_in <= now.bytes_in and before.bytes_out <= now.bytes_out
    old = before if before is not None and is_older else NO_TRAFFIC
    return Rate(
        (now.messages_in - old.messages_in) / seconds,
        (now.bytes_in - old.bytes_in) / seconds,
        (now.bytes_out - old.bytes_out) / seconds,
    )
