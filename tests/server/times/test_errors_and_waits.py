"""Errors are found wherever an API puts them; waits of handlers are noticed and not disturbed."""

from __future__ import annotations

import asyncio

import pytest

from strandline.server.times.errors import count_error_codes, error_codes
from strandline.server.times.waits import NotingWaits
from strandline.wire.messages.heartbeat import HeartbeatResponse
from strandline.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from strandline.wire.messages.offset_fetch import OffsetFetchResponse


def test_errors_of_an_answer() -> None:
    assert list(error_codes(HeartbeatResponse())) == []
    assert list(error_codes(HeartbeatResponse(error_code=27))) == [27]
    partitions = [MetadataResponsePartition(error_code=code) for code in (0, 5)]
    topics = [MetadataResponseTopic(error_code=3), MetadataResponseTopic(partitions=partitions)]
    assert list(error_codes(MetadataResponse(topics=topics))) == [3, 5]
    nothing = OffsetFetchResponse()
    nothing.groups = nothing.topics = None  # type: ignore[assignment]  # not written in some versions
    assert list(error_codes(nothing)) == []


def test_errors_are_counted_one_by_one() -> None:
    counted: list[int] = []
    for answer in (
        HeartbeatResponse(),
        HeartbeatResponse(error_code=27),
        MetadataResponse(topics=[MetadataResponseTopic(error_code=3), MetadataResponseTopic(error_code=5)]),
    ):
        count_error_codes(answer, counted.append)
    assert counted == [27, 3, 5]


async def test_a_handler_that_does_not_wait() -> None:
    waits: list[str] = []

    async def handle() -> int:
        return 7

    assert await NotingWaits(handle(), lambda: waits.append("waited")) == 7
    assert waits == []


async def test_a_handler_that_waits() -> None:
    waits: list[str] = []
    opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def handle() -> int:
        return await opened

    async def work() -> int:
        return await NotingWaits(handle(), lambda: waits.append("waited"))

    task = asyncio.create_task(work())
    while not waits:
        await asyncio.wait((task,), timeout=0)
    opened.set_result(8)
    assert await task == 8
    assert waits == ["waited"]


async def test_a_handler_that_is_cancelled_or_fails_while_it_waits() -> None:
    ends: list[str] = []

    async def handle(opened: asyncio.Future[int]) -> int:
        try:
            return await opened
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        except ValueError:
            ends.append("failed")
            raise
        finally:
            ends.append("ended")

    async def work(opened: asyncio.Future[int], waits: asyncio.Event) -> int:
        return await NotingWaits(handle(opened), waits.set)

    loop = asyncio.get_running_loop()
    waits, opened = asyncio.Event(), loop.create_future()
    task = asyncio.create_task(work(opened, waits))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    waits, opened = asyncio.Event(), loop.create_future()
    task = asyncio.create_task(work(opened, waits))
    await waits.wait()
    opened.set_exception(ValueError())
    with pytest.raises(ValueError):  # noqa: PT011 - the one above
        await task
    assert ends == ["cancelled", "ended", "failed", "ended"]


async def test_a_handler_whose_first_step_was_taken_outside_of_a_task_goes_on_in_one() -> None:
    waits: list[str] = []
    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()

    async def handle() -> tuple[int, int]:
        return await first, await second

    async def work(waited_for: object) -> tuple[int, int]:
        return await NotingWaits.going_on(handling, waited_for, lambda: waits.append("waited"))

    handling = handle()
    waited_for = handling.send(None)
    first.set_result(1)  # before the task begins
    task = asyncio.create_task(work(waited_for))
    while len(waits) < 2:
        await asyncio.wait((task,), timeout=0)
    second.set_result(2)
    assert await task == (1, 2)
    assert waits == ["waited", "waited"]


async def test_a_handler_that_goes_on_in_a_task_is_told_of_its_cancellation() -> None:
    ends: list[str] = []
    opened = asyncio.get_running_loop().create_future()
    waits = asyncio.Event()

    async def handle() -> None:
        try:
            await opened
        finally:
            ends.append("ended")

    async def work(waited_for: object) -> None:
        await NotingWaits.going_on(handling, waited_for, waits.set)

    handling = handle()
    task = asyncio.create_task(work(handling.send(None)))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ends == ["ended"]
