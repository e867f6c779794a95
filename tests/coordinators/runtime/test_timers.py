"""Timers: order, restarts, and a queue that does not grow with heartbeats."""

from __future__ import annotations

import asyncio
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.runtime.timers import Timer, Timers
from strandline.testing.clock import VirtualClock


def test_timers_fire_in_order_and_once() -> None:
    clock = VirtualClock()
    timers = Timers(clock)
    fired: list[str] = []
    timers.after(20, lambda: fired.append("b"))
    timers.after(10, lambda: fired.append("a"))
    timers.after(30, lambda: fired.append("c"))
    clock.move(0.020)
    assert timers.run_due() == 2
    assert fired == ["a", "b"]
    clock.move(1)
    assert timers.run_due() == 1
    assert timers.run_due() == 0
    assert len(timers) == 0


def test_a_cancelled_timer_never_fires() -> None:
    clock = VirtualClock()
    timers = Timers(clock)
    timer = timers.after(10, lambda: fired.append(1))
    fired: list[int] = []
    timer.cancel()
    timer.cancel()
    clock.move(1)
    assert timers.run_due() == 0
    assert timers.next_deadline() is None
    assert not fired


def test_heartbeats_do_not_grow_the_queue() -> None:
    clock = VirtualClock()
    timers = Timers(clock)
    sessions = [timers.after(45_000, lambda: None) for _ in range(100)]
    for _ in range(1000):
        clock.move(0.01)
        for session in sessions:
            session.restart(45_000)
    assert timers.entries == 100


def test_a_failing_timer_does_not_stop_the_others() -> None:
    clock = VirtualClock()
    timers = Timers(clock)
    fired: list[int] = []
    timers.after(1, lambda: fired[10])  # type: ignore[arg-type]
    timers.after(2, lambda: fired.append(1))
    clock.move(1)
    assert timers.run_due() == 2
    assert fired == [1]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("after"), st.integers(0, 50)),
            st.tuples(st.just("restart"), st.integers(0, 19), st.integers(0, 50)),
            st.tuples(st.just("cancel"), st.integers(0, 19)),
            st.tuples(st.just("move"), st.integers(0, 40)),
        ),
        max_size=120,
    )
)
def test_timers_agree_with_a_dictionary_of_deadlines(steps: list[tuple[object, ...]]) -> None:
    clock = VirtualClock()
    timers = Timers(clock)
    made: list[Timer] = []
    fired: set[int] = set()
    model: dict[int, int] = {}
    now = 0
    for step in steps:
        match step:
            case ("after", int(delay)):
                made.append(timers.after(delay, partial(fired.add, len(made))))
                model[len(made) - 1] = now + delay
            case ("restart", int(which), int(delay)) if made:
                made[which % len(made)].restart(delay)
                model[which % len(made)] = now + delay
            case ("cancel", int(which)) if made:
                made[which % len(made)].cancel()
                model.pop(which % len(made), None)
            case ("move", int(by)):
                now += by
                clock.move(by / 1000)
                fired.clear()
                timers.run_due()
                expected = {at for at, deadline in model.items() if deadline <= now}
                # Milliseconds become seconds: one that is due this very instant may be a rounding error away.
                exact = {at for at in expected if model[at] < now}
                assert exact <= fired <= expected
                for at in fired:
                    del model[at]
        assert len(timers) == len(model)
        assert timers.entries <= max(64, 4 * len(model)) + len(made)


async def test_the_task_sleeps_until_the_earliest_timer() -> None:
    clock = VirtualClock()
    timers = Timers(clock)
    fired: list[str] = []
    task = asyncio.create_task(timers.run())
    await clock.settle()
    timers.after(5000, lambda: fired.append("late"))
    await clock.settle()
    timers.after(1000, lambda: fired.append("early"))
    await clock.advance(1.5)
    assert fired == ["early"]
    await clock.advance(4)
    assert fired == ["early", "late"]
    task.cancel()
