"""One timer for all deadlines: they come in time, in order, and cost nothing once they are cancelled."""

from __future__ import annotations

import asyncio
import logging

import pytest

from strandline.server.deadlines import Deadlines


async def test_deadlines_come_in_the_order_of_their_times() -> None:
    loop = asyncio.get_running_loop()
    deadlines, seen, last = Deadlines(loop), [], loop.create_future()
    deadlines.call_within(0.03, lambda: last.set_result(None))
    for number in (2, 1, 0):
        deadlines.call_within(0.005 * number, lambda number=number: seen.append(number))  # type: ignore[misc]
    await last
    assert seen == [0, 1, 2]


async def test_a_deadline_set_by_another_one_does_not_postpone_the_rest() -> None:
    loop = asyncio.get_running_loop()
    deadlines, second = Deadlines(loop), loop.create_future()

    def first() -> None:
        deadlines.call_within(1000, lambda: None)

    deadlines.call_within(0.01, first)
    deadlines.call_within(0.03, lambda: second.set_result(None))
    async with asyncio.timeout(10):
        await second
    deadlines.close()


async def test_a_deadline_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    deadlines, second = Deadlines(loop), loop.create_future()
    deadlines.call_within(0.01, lambda: [].pop())
    deadlines.call_within(0.01, lambda: second.set_result(None))
    with caplog.at_level(logging.ERROR):
        async with asyncio.timeout(10):
            await second
    assert "IndexError" in caplog.text


async def test_cancelled_deadlines_are_not_called_and_hold_no_memory() -> None:
    loop = asyncio.get_running_loop()
    deadlines, called = Deadlines(loop), []
    kept = deadlines.call_within(1000, lambda: called.append("kept"))
    for _ in range(10_000):
        deadlines.call_within(500, lambda: called.append("cancelled")).cancel()
    assert len(deadlines) < 200
    soon = loop.create_future()
    deadlines.call_within(0, lambda: soon.set_result(None))
    await soon
    kept.cancel()
    kept.cancel()
    assert called == []
    deadlines.close()
