"""Requests wait after a time in which the process did not run, until the broker has been told what it is."""

from __future__ import annotations

import asyncio
import math

import pytest

from strandline.errors import StaleBrokerEpoch
from strandline.server.exchange import Exchange
from strandline.server.suspension import SuspensionWatch
from strandline.testing.clock import VirtualClock
from tests.server.test_connection import METADATA, PRODUCE, echo, receive, request, serving, turn

SESSION = 8.0
GAP = SESSION / 2


class Requests:
    """What the watch asks of a server, and a controller that answers when the test says so."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.awake_until = math.inf
        self.suspended, self.confirmed = asyncio.Event(), asyncio.Event()
        self.is_held = False
        self.asked = 0
        self.failure: StaleBrokerEpoch | None = None

    def hold_requests(self) -> None:
        self.is_held = True
        self.suspended.set()

    def serve_again(self) -> None:
        self.is_held = False

    async def confirm(self) -> None:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        await self.confirmed.wait()

    def watching(self) -> asyncio.Task[None]:
        clock = self.clock
        watch = SuspensionWatch(self, self.suspended, self.confirm, clock, clock.monotonic, session_seconds=SESSION)
        return asyncio.create_task(watch.run())


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_process_that_runs_asks_nobody() -> None:
    requests = Requests()
    task = requests.watching()
    await requests.clock.advance(100 * SESSION)
    assert requests.asked == 0
    assert requests.clock.monotonic() < requests.awake_until <= requests.clock.monotonic() + GAP
    await ended(task)


async def test_after_a_gap_requests_wait_until_the_controller_has_answered() -> None:
    requests = Requests()
    task = requests.watching()
    await requests.clock.settle()
    requests.clock.move(GAP + 0.1)
    await requests.clock.settle()
    assert requests.is_held
    assert requests.asked == 1
    requests.confirmed.set()
    await requests.clock.settle()
    assert not requests.is_held
    await requests.clock.advance(10 * SESSION)
    assert requests.asked == 1
    await ended(task)


async def test_a_server_that_notices_the_gap_first_has_it_cleared_up() -> None:
    requests = Requests()
    task = requests.watching()
    await requests.clock.settle()
    requests.hold_requests()
    requests.confirmed.set()
    await requests.clock.settle()
    assert (requests.asked, requests.is_held) == (1, False)
    await ended(task)


async def test_an_answer_from_before_another_gap_confirms_nothing() -> None:
    requests = Requests()
    task = requests.watching()
    await requests.clock.settle()
    requests.clock.move(GAP + 0.1)
    await requests.clock.settle()
    assert requests.asked == 1
    requests.confirmed.set()
    requests.clock.move(2 * SESSION)
    requests.confirmed.clear()
    await requests.clock.settle()
    assert (requests.asked, requests.is_held) == (2, True)
    requests.confirmed.set()
    await requests.clock.settle()
    assert not requests.is_held
    await ended(task)


async def test_a_broker_that_reaches_no_controller_goes_on_after_a_session() -> None:
    requests = Requests()
    task = requests.watching()
    await requests.clock.settle()
    requests.clock.move(GAP + 0.1)
    await requests.clock.advance(SESSION - 0.1)
    assert requests.is_held
    await requests.clock.advance(0.2)
    assert not requests.is_held
    await ended(task)


async def test_a_broker_that_is_no_member_any_more_serves_nothing() -> None:
    requests = Requests()
    requests.failure = StaleBrokerEpoch("Another process is this broker.")
    task = requests.watching()
    await requests.clock.settle()
    requests.clock.move(GAP + 0.1)
    for _ in range(10):
        await requests.clock.settle()
    assert requests.asked == 1, "the next answer would be the same"
    await requests.clock.advance(10 * SESSION)
    assert requests.is_held
    await ended(task)


@pytest.mark.parametrize("api_key", [METADATA, PRODUCE])
async def test_bytes_that_arrive_after_a_gap_are_not_read_until_it_is_cleared_up(api_key: int) -> None:
    served: list[int] = []

    def serve(exchange: Exchange, frame: memoryview) -> None:
        served.append(exchange.correlation_id)
        echo(exchange, frame)

    async with serving(serve) as (server, connect):
        known, one, two = await connect(), await connect(), await connect()
        known[1].write(request(api_key, 1))
        assert await receive(known[0]) == (1, b"")
        server.awake_until = server.loop.time() - 1.0
        for number, (_, writer) in enumerate((known, one, two), 2):
            writer.write(request(api_key, number))
        await asyncio.wait_for(server.suspended.wait(), 10)
        for _ in range(200):
            await turn()
        assert served == [1]
        assert server.awake_until == math.inf, "noticed once"
        server.suspended.clear()
        server.serve_again()
        for number, (reader, _) in enumerate((known, one, two), 2):
            assert await receive(reader) == (number, b"")


async def test_a_broker_that_stops_serves_nothing_although_a_gap_was_cleared_up() -> None:
    async with serving(echo) as (server, _):
        server.hold_requests()
        server.is_draining = True
        server.serve_again()
        assert server.is_holding
