"""Bytes a second, on average, first come, first served."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from strandline.model import INT64_MAX
from strandline.remote.quota import RateQuota
from strandline.testing.clock import VirtualClock


def quota(clock: VirtualClock, limit: int = 100) -> RateQuota:
    return RateQuota(limit, windows=11, window_seconds=1, clock=clock)


def test_without_a_limit_no_transfer_waits_and_nothing_is_recorded() -> None:
    unlimited = quota(VirtualClock(), INT64_MAX)
    unlimited.record(10**15)
    assert unlimited.throttle_seconds() == 0


def test_a_burst_is_allowed_until_the_average_is_at_the_limit() -> None:
    limited = quota(VirtualClock())
    limited.record(1000)
    assert limited.throttle_seconds() == 0
    limited.record(1)
    assert limited.throttle_seconds() > 0


def test_what_is_too_large_goes_through_and_is_made_up_for() -> None:
    clock = VirtualClock()
    limited = quota(clock)
    limited.record(1100)
    assert limited.throttle_seconds() == 11 - 10
    clock.move(10.5)
    assert limited.throttle_seconds() == 0.5
    clock.move(0.5)
    assert limited.throttle_seconds() == 0


def test_nothing_counts_for_longer_than_all_windows() -> None:
    clock = VirtualClock()
    limited = quota(clock)
    limited.record(10**9)
    assert limited.throttle_seconds() == 11
    clock.move(11)
    assert limited.throttle_seconds() == 0


async def test_those_who_wait_go_in_the_order_in_which_they_came() -> None:
    clock = VirtualClock()
    limited = quota(clock)
    done: list[int] = []

    async def copy(number: int) -> None:
        await limited.wait_for_room(1000)
        done.append(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(4):
            tasks.create_task(copy(number))
        await clock.advance(100)
    assert done == [0, 1, 2, 3]


async def test_one_who_gives_up_while_waiting_does_not_hold_up_the_others() -> None:
    clock = VirtualClock()
    limited = quota(clock)
    limited.record(5000)
    first, second = (asyncio.ensure_future(limited.wait_for_room(1)) for _ in range(2))
    await clock.settle()
    first.cancel()
    await clock.advance(20)
    assert second.done()


@given(pieces=st.lists(st.tuples(st.integers(1, 3000), st.floats(0, 5)), min_size=1, max_size=40))
def test_over_any_long_time_the_average_is_kept_but_for_one_burst_and_one_piece(
    pieces: list[tuple[int, float]],
) -> None:
    clock = VirtualClock()
    limited = quota(clock)
    moved = 0
    for size, pause in pieces:
        clock.move(pause)
        while (wait := limited.throttle_seconds()) > 0:
            clock.move(wait)
        # A burst of ten seconds may be followed by another as soon as the first is forgotten; pieces go as a whole.
        assert moved <= 100 * (clock.monotonic() + 20) + 3000 * (1 + clock.monotonic() // 11)
        limited.record(size)
        moved += size
