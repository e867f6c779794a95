"""Averages over the last minute."""

from __future__ import annotations

import pytest

from strandline.averages import OneMinuteAverage
from strandline.testing.clock import VirtualClock


def test_an_average_forgets_what_is_older_than_a_minute() -> None:
    clock = VirtualClock()
    average = OneMinuteAverage(clock, total=100)
    assert average.per_second(100) == 0
    total = 100
    for _ in range(30):
        clock.move(10)
        total += 20
        average.per_second(total)
    assert average.per_second(total) == pytest.approx(2)
    for _ in range(7):
        clock.move(10)
        average.per_second(total)
    assert average.per_second(total) == 0


def test_who_asks_rarely_gets_the_average_since_the_last_time() -> None:
    clock = VirtualClock()
    average = OneMinuteAverage(clock)
    clock.move(600)
    assert average.per_second(1200) == pytest.approx(2)
    clock.move(600)
    assert average.per_second(1200 + 600) == pytest.approx(1)


def test_questions_in_quick_succession_do_not_shorten_the_minute() -> None:
    clock = VirtualClock()
    average = OneMinuteAverage(clock)
    for _ in range(1000):
        clock.move(0.05)
        average.per_second(0)
    assert average.per_second(50) == pytest.approx(1, rel=0.1)
