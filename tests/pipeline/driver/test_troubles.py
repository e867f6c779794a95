"""What fails is tried again for ever, later each time."""

from __future__ import annotations

from strandline.pipeline.driver.troubles import LONGEST_WAIT_SECONDS, Troubles
from strandline.testing.clock import VirtualClock


def test_waits_grow_up_to_a_limit_and_end_with_a_success() -> None:
    clock = VirtualClock()
    troubles = Troubles(clock)
    waits = []
    for _ in range(12):
        trouble = troubles.failed("wal/1", "It is damaged.")
        waits.append(trouble.retry_at - clock.monotonic())
        assert troubles.is_waiting("wal/1")
        clock.move(waits[-1])
        assert not troubles.is_waiting("wal/1")
    assert waits[:4] == [2, 4, 8, 16]
    assert waits[-1] == LONGEST_WAIT_SECONDS
    assert trouble.attempts == 12
    assert troubles.sentences() == ["It is damaged."]

    troubles.over("wal/1")
    assert not troubles.sentences()
    assert troubles.failed("wal/1", "Again.").attempts == 1


def test_one_thing_does_not_wait_for_another() -> None:
    troubles = Troubles(VirtualClock())
    troubles.failed("wal/1", "It is damaged.")
    assert not troubles.is_waiting("wal/2")


def test_the_next_pass_is_due_when_something_is_to_be_tried_again() -> None:
    clock = VirtualClock()
    troubles = Troubles(clock)
    assert troubles.seconds_until_retry(str, since=0) is None
    troubles.failed("wal/1", "It is damaged.")
    troubles.failed("wal/2", "It is damaged.")
    troubles.failed(7, "Something else.")
    clock.move(1.5)
    troubles.failed("wal/2", "Again.")
    assert troubles.seconds_until_retry(str, since=clock.monotonic()) == 0.5
    # A pass that began when it was due has not met it: it is gone.
    clock.move(0.5)
    started = clock.monotonic()
    assert troubles.seconds_until_retry(str, since=started) == 3.5
    assert sorted(troubles.sentences()) == ["Again.", "Something else."]


def test_what_has_failed_often_enough_is_counted() -> None:
    troubles = Troubles(VirtualClock())
    for key in ("a", "a", "a", "b"):
        troubles.failed(key, "It is damaged.")
    assert [troubles.failing(attempts) for attempts in (1, 2, 4)] == [2, 1, 0]
    troubles.over("a")
    assert troubles.failing(2) == 0
