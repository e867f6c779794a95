"""The clock of a broker beside that of the database that it shares."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from strandline.clock import SystemClock, SystemIds
from strandline.sql.clock_watch import ClockWatch
from strandline.sql.errors import ClockDiffers
from strandline.sql.watched import open_watched_store
from tests.postgres import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class ShiftedClock(SystemClock):
    """A clock that somebody has set."""

    def __init__(self, ahead_ms: int) -> None:
        self.ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@pytest.mark.parametrize(
    ("ahead_ms", "word"),
    [
        (2 * DAY_MS + HOUR_MS, r"2 days, 0:59:\d\d ahead of|2 days, 1:00:00 ahead of"),
        (-2 * HOUR_MS, r" behind that of"),
    ],
)
async def test_a_clock_that_is_far_off_is_refused(postgres_url: str, ahead_ms: int, word: str) -> None:
    clock = ShiftedClock(ahead_ms)
    async with open_watched_store(postgres_url, clock=clock, ids=SystemIds()) as sql:
        with pytest.raises(ClockDiffers, match=word) as raised:
            await ClockWatch(sql, clock, most_ms=HOUR_MS).begin()
        for expected in ("strandline.clock.difference.max.ms", sql.health.url, "3600000 ms"):
            assert expected in str(raised.value)
        await ClockWatch(sql, clock, most_ms=3 * DAY_MS).begin()


async def test_a_clock_that_is_a_little_off_is_told_once_and_when_it_is_right_again(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="strandline.sql.clock_watch")
    clock = ShiftedClock(10 * 60_000)
    async with open_watched_store(postgres_url, clock=clock, ids=SystemIds()) as sql:
        watch = ClockWatch(sql, clock, most_ms=HOUR_MS)
        for _ in range(2):
            await watch.begin()
        assert "ahead of that of the database" in watch.problem
        clock.ahead_ms = 0
        await watch.begin()
    assert watch.problem == ""
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


async def test_a_database_of_the_brokers_own_has_the_same_clock(tmp_path: Path) -> None:
    clock = ShiftedClock(2 * DAY_MS)
    async with open_watched_store(f"sqlite:///{tmp_path}/metadata.db", clock=clock, ids=SystemIds()) as sql:
        watch = ClockWatch(sql, clock, most_ms=HOUR_MS)
        await watch.begin()
        assert watch.problem == ""
