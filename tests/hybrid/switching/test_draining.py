"""Windows in which no transaction begins, so that a topic can be switched."""

from __future__ import annotations

from strandline.hybrid.switching.draining import DrainWindows, OpenTransaction
from strandline.model import TopicPartition

PARTITION = TopicPartition("t", 0)
FIRST, SECOND = OpenTransaction(PARTITION, 3, 7), OpenTransaction(PARTITION, 9, 8)
WINDOW_S = 5.0


def test_without_open_transactions_nobody_is_refused() -> None:
    windows = DrainWindows()
    windows.look([], 10.0, WINDOW_S)
    assert windows.ends_at is None


def test_a_window_stays_open_until_its_end_also_when_all_have_ended() -> None:
    windows = DrainWindows()
    windows.look([FIRST], 10.0, WINDOW_S)
    windows.look([], 12.0, WINDOW_S)
    assert windows.ends_at == 15.0, "others would begin before the boundary is set"
    windows.look([], 15.0, WINDOW_S)
    assert windows.ends_at is None
    assert not windows.held_by


def test_after_a_window_in_vain_the_next_one_waits_for_those_that_held_it() -> None:
    windows = DrainWindows()
    windows.look([FIRST], 10.0, WINDOW_S)
    windows.look([FIRST], 15.0, WINDOW_S)
    assert windows.held_by == {FIRST}
    windows.look([FIRST, SECOND], 100.0, WINDOW_S)
    assert windows.ends_at is None
    assert windows.held_by == {FIRST}
    windows.look([SECOND], 101.0, WINDOW_S)
    assert windows.ends_at == 106.0
    assert not windows.held_by


def test_between_two_windows_writers_have_as_long_as_a_window_takes() -> None:
    windows = DrainWindows()
    windows.look([FIRST], 10.0, WINDOW_S)
    windows.look([FIRST], 15.0, WINDOW_S)
    windows.look([SECOND], 19.9, WINDOW_S)
    assert windows.ends_at is None
    windows.look([SECOND], 20.0, WINDOW_S)
    assert windows.ends_at == 25.0


def test_a_window_that_was_closed_begins_anew_after_a_pause() -> None:
    """Whatever closes it may come and go: writers must not be kept out all the time."""
    windows = DrainWindows()
    windows.look([FIRST], 10.0, WINDOW_S)
    windows.close(14.0)
    assert windows.ends_at is None
    windows.close(15.0)
    windows.look([FIRST], 17.9, WINDOW_S)
    assert windows.ends_at is None
    windows.look([FIRST], 18.0, WINDOW_S)
    assert windows.ends_at == 23.0
