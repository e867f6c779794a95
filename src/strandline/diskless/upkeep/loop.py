"""The loop of background work on diskless topics: when a round is due, and what happens when one fails."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from strandline.clock import Chance, Clock
from strandline.model import TimestampMs
from strandline.objects import ObjectStoreError
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

# True while this broker has to do the work: one broker of a cluster is enough.
IsOnDuty: TypeAlias = Callable[[], bool]

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_PERMILLE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepStatus:
    """The state of one kind of background work."""

    rounds: int
    """Rounds completed since the start."""
    failures_in_a_row: int
    last_error: str | None
    """Why the last round failed; None if it did not."""
    last_completed_ms: TimestampMs | None


class UpkeepLoop:
    """Repeats a round of work until it is cancelled, at an interval that varies at random by up to a quarter.

    A round that fails with an error of the object store or the database is logged and tried again after a growing
    pause. Rounds must therefore be safe to repeat from any point, as after a crash.
    """

    def __init__(self, what: str, *, interval_ms: int, clock: Clock, chance: Chance, is_on_duty: IsOnDuty) -> None:
        self._what = what
        self._interval_s = interval_ms / 1000
        self._clock, self._chance, self._is_on_duty = clock, chance, is_on_duty
        self._rounds = 0
        self._failures = 0
        self._last_error: str | None = None
        self._last_completed_ms: TimestampMs | None = None

    async def repeat(self, round_of_work: Callable[[], Awaitable[object]]) -> None:
        """Never returns; cancel it."""
        # A random first pause, so that brokers that start together do not work at the same moment. Shorter than an
        # interval, so that the leftovers of a crash do not wait for long.
        await self._clock.sleep(self._interval_s * self._chance.below(_PERMILLE) / _PERMILLE)
        while True:
            await self._clock.sleep(await self._one(round_of_work))

    def status(self) -> UpkeepStatus:
        return UpkeepStatus(
            rounds=self._rounds,
            failures_in_a_row=self._failures,
            last_error=self._last_error,
            last_completed_ms=self._last_completed_ms,
        )

    async def _one(self, round_of_work: Callable[[], Awaitable[object]]) -> float:
        """Run one round; returns the seconds until the next one."""
        pause = self._interval_s * (750 + self._chance.below(501)) / _PERMILLE
        if not self._is_on_duty():
            return pause
        try:
            await round_of_work()
        except (ObjectStoreError, SqlError) as error:
            pause = min(_FIRST_PAUSE_S * 2**self._failures, _LONGEST_PAUSE_S, pause)
            self._failures = min(self._failures + 1, 30)
            self._last_error = str(error)
            logger.warning("%s was interrupted and goes on in %.3g s: %s", self._what, pause, error)
        else:
            self._rounds += 1
            self._failures, self._last_error = 0, None
            self._last_completed_ms = self._clock.now_ms()
        return pause


def always_on_duty() -> bool:
    """For a single broker."""
    return True
