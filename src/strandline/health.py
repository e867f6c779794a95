"""Whether something outside the broker answers: an object store, remote storage, the database.

By level: what is shown follows from the newest outcome of each kind of request, whichever component made it. Checks,
where there are any, only make sure that there is a recent outcome.
"""

from __future__ import annotations

import asyncio
import enum
import itertools
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from strandline.clock import Clock

logger = logging.getLogger(__name__)

# Kinds of requests: what can be read may not be writable.
READS: Final = "reads"
WRITES: Final = "writes"
CHECKS: Final = "checks"  # whether it can be used at all: a store of another cluster can be read, too

# One request may fail for reasons of its own. A failed check says more, see `failed`.
_FAILURES_UNTIL_AWAY: Final = 3
_STOPPED_S: Final = 30.0
_MOST_SENTENCES: Final = 16


class HealthState(enum.StrEnum):
    """What is known."""

    UNKNOWN = "unknown"
    """Nothing was asked yet, or the first answer has not come."""
    UP = "up"
    AWAY = "away"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthStatus:
    """One dependency at one instant."""

    name: str
    """For metrics: diskless, remote, database."""
    what: str
    """For people: "the object store of diskless topics"."""
    url: str
    """Where it is, without credentials."""
    state: HealthState = HealthState.UNKNOWN
    problem: str = ""
    """A sentence; empty unless it is away."""
    away_since_ms: int = -1
    away_seconds: float = 0.0

    is_wrong: bool = False
    """Whether it answers, but is not the one of this cluster: it counts as away until an operator acts."""

    @property
    def is_away(self) -> bool:
        return self.state is HealthState.AWAY


@dataclass(slots=True)
class _Trouble:
    """Requests of one kind that failed, without one that was answered since the first of them."""

    since: float
    since_ms: int
    last: float = 0.0
    failures: int = 0
    is_certain: bool = False
    is_wrong: bool = False
    sentence: str = ""

    @property
    def is_away(self) -> bool:
        return self.is_certain or self.failures >= _FAILURES_UNTIL_AWAY


class Health:
    """Keeps the outcomes of requests to one dependency. Belongs to the event loop."""

    def __init__(self, name: str, what: str, url: str, clock: Clock, *, hangs_after: float = math.inf) -> None:
        """A request that waits for longer than `hangs_after` seconds counts as away until one is answered."""
        self.name, self.what, self.url = name, what, url
        self._clock = clock
        self._hangs_after = hangs_after
        self._troubles: dict[str, _Trouble] = {}
        self._waiting: dict[int, tuple[float, int]] = {}  # in the order of starting
        self._numbers = itertools.count()
        self._answered_at = -math.inf
        self._told: set[str] = set()
        """The sentences in the log since it is away."""
        self._has_answered = False
        self.has_worked = False
        """Whether a request other than a read ever succeeded: a store that can be read may belong to another cluster,
        or take no writes."""
        self.suspected = asyncio.Event()
        """Set by failures, for a check that wants to look sooner. The check clears it."""

    def answered(self, kind: str = "") -> None:
        """A request of this kind was answered, also if the answer is a refusal that concerns only the request."""
        self._has_answered = True
        self.has_worked = self.has_worked or kind != READS
        self._answered_at = self._clock.monotonic()
        trouble = self._troubles.pop(kind, None)
        if trouble is not None and self._told and not any(one.is_away for one in self._troubles.values()):
            self._told.clear()
            logger.info("%s (%s) answers again", self.what, self.url)

    def passed(self, kind: str) -> None:
        """A check of this kind was answered. Failures of other requests count until they have stopped for a while.

        A nearly full disk takes the few bytes of a check, and nothing else.
        """
        trouble = self._troubles.get(kind)
        if trouble is None or self._clock.monotonic() - trouble.last >= _STOPPED_S:
            self.answered(kind)

    def failed(self, sentence: str, kind: str = "", *, is_certain: bool = False, is_wrong: bool = False) -> None:
        """A request of this kind was not answered, or was refused for reasons that concern every request.

        It counts as away after some failures in a row, or at once if the failure is certain: that of a check.
        """
        now = self._clock.monotonic()
        trouble = self._troubles.get(kind)
        if trouble is None:
            trouble = self._troubles[kind] = _Trouble(now, self._clock.now_ms())
        trouble.failures += 1
        trouble.last = now
        if is_certain or not trouble.is_certain:  # the sentence of a check says more than that of another request
            trouble.sentence = sentence
        trouble.is_certain = trouble.is_certain or is_certain
        trouble.is_wrong = is_wrong or (trouble.is_wrong and not is_certain)
        self.suspected.set()
        # Sentences of requests name their objects, and no two are alike: the first one has to do. Checks say more.
        if trouble.is_away and (not self._told or (is_certain and sentence not in self._told)):
            if len(self._told) >= _MOST_SENTENCES:
                self._told.clear()
            self._told.add(trouble.sentence)
            logger.warning("%s is away: %s", self.what, trouble.sentence)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The block waits for an answer. Says nothing about how it ends."""
        number = next(self._numbers)
        self._waiting[number] = self._clock.monotonic(), self._clock.now_ms()
        try:
            yield
        finally:
            del self._waiting[number]

    def is_failing(self, kind: str) -> bool:
        """Whether the newest request of this kind failed."""
        return kind in self._troubles

    def status(self, *, ignoring: str | None = None) -> HealthStatus:
        """What is known now, without requests of the kind `ignoring`: for components that make none of them."""
        now = self._clock.monotonic()
        troubles = [one for kind, one in self._troubles.items() if one.is_away and kind != ignoring]
        trouble = min(troubles, key=lambda one: one.since, default=None)
        if trouble is None:
            trouble = self._hanging(now)
        if trouble is None:
            state = HealthState.UP if self._has_answered else HealthState.UNKNOWN
            return HealthStatus(name=self.name, what=self.what, url=self.url, state=state)
        return HealthStatus(
            name=self.name,
            what=self.what,
            url=self.url,
            state=HealthState.AWAY,
            # A check names the settings to look at, a request only its object.
            problem=next((one.sentence for one in troubles if one.is_certain), trouble.sentence),
            away_since_ms=trouble.since_ms,
            away_seconds=now - trouble.since,
            is_wrong=any(one.is_wrong for one in troubles),
        )

    def _hanging(self, now: float) -> _Trouble | None:
        since, since_ms = next(iter(self._waiting.values()), (now, 0))
        if now - since <= self._hangs_after or self._answered_at > since:
            return None
        return _Trouble(since, since_ms, sentence=f"It has not answered for {now - since:.0f} seconds.")
