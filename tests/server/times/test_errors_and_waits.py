"""Errors are found wherever an API puts them; waits of handlers are noticed and not disturbed."""

from __future__ import annotations

import asyncio

import pytest

from strandline.server.times.errors import error_codes
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
