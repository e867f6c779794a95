"""Compares the clock of a broker with that of the database which it shares with others.

Diskless topics go by the clock of the database, but a broker judges its classic logs by its own: with one that is days
ahead, retention deletes records days too early, and offsets and producers expire.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from strandline.clock import Clock
from strandline.sql.errors import ClockDiffers, SqlError
from strandline.sql.store import Row, Transaction
from strandline.sql.watched import WatchedStore

logger = logging.getLogger(__name__)

_INTERVAL_S: Final = 60.0
# Clocks that are synchronised differ by less; nothing that brokers do needs them to be as exact.
_WORTH_A_WORD_MS: Final = 60_000


class ClockWatch:
    """Compares at the start, and every minute from then on. Nothing is compared with a database of the broker's own."""

    def __init__(self, sql: WatchedStore, clock: Clock, *, most_ms: int) -> None:
        """A broker whose clock differs by more than `most_ms` does not start."""
        self._sql, self._clock, self._most_ms = sql, clock, most_ms
        self.problem = ""
        """A sentence while the clocks differ too much; else empty."""

    async def begin(self) -> None:
        """Raises ClockDiffers, and other SqlErrors."""
        difference_ms = await self._compare()
        if abs(difference_ms) > self._most_ms:
            raise ClockDiffers(
                f"{self.problem} A broker whose clock differs by more than {self._most_ms} ms does not start "
                "(strandline.clock.difference.max.ms)."
            )

    async def run(self) -> None:
        """Compare until cancelled."""
        while True:
            await self._clock.sleep(_INTERVAL_S)
            try:
                await self._compare()
            except SqlError as error:  # shown as a database that is away; what was found before holds
                logger.debug("the clock cannot be compared with that of the database: %s", error)

    async def _compare(self) -> int:
        """How many milliseconds the clock is ahead at least; below 0 if it is behind."""
        if self._sql.is_exclusive:
            return 0
        before_ms = self._clock.now_ms()
        row = await self._sql.read(_now)
        assert row is not None
        after_ms = self._clock.now_ms()
        ahead, behind = before_ms - row[0], row[0] - after_ms
        difference_ms: int = ahead if ahead > 0 else -behind if behind > 0 else 0
        was_told, self.problem = bool(self.problem), self._sentence(difference_ms)
        if self.problem and not was_told:
            logger.warning("%s", self.problem)
        elif was_told and not self.problem:
            logger.info("the clock agrees with that of the database again")
        return difference_ms

    def _sentence(self, difference_ms: int) -> str:
        if abs(difference_ms) <= _WORTH_A_WORD_MS:
            return ""
        by = timedelta(seconds=abs(difference_ms) // 1000)
        where, when = ("ahead of", "early") if difference_ms > 0 else ("behind", "late")
        return (
            f"The clock of this broker is {by} {where} that of the database ({self._sql.health.url}): classic records, "
            f"committed offsets and producers would expire that much too {when}. Set the clock that is wrong."
        )


async def _now(tx: Transaction) -> Row | None:
    return await tx.fetch_one("SELECT {now_ms}")
