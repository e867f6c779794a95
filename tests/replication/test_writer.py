"""The writer thread: order, and what one bad append may not do to the others."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import weakref

import pytest

from strandline.log import PendingAppend
from strandline.replication import LogWriter
from tests.replication.conftest import Fixture

pytestmark = pytest.mark.plain


class Scripted(PendingAppend):
    """A write that does what the test says."""

    __slots__ = ("__weakref__", "_work")

    def __init__(self, work: object) -> None:
        self._work = work

    def write(self) -> None:
        if isinstance(self._work, Exception):
            raise self._work
        if isinstance(self._work, threading.Event):
            self._work.wait(20)


async def test_reports_come_in_the_order_of_submission(fixture: Fixture) -> None:
    order: list[int] = []
    last = asyncio.get_running_loop().create_future()
    for number in range(500):
        fixture.writer.submit(Scripted(None), lambda error, number=number: order.append(number))  # type: ignore[misc]
    fixture.writer.submit(Scripted(None), lambda error: last.set_result(None))
    await last
    assert order == list(range(500))


async def test_what_is_called_behind_the_queue_is_called_when_it_is_written(fixture: Fixture) -> None:
    order: list[str] = []
    called = asyncio.get_running_loop().create_future()
    gate = threading.Event()
    fixture.writer.submit(Scripted(gate), lambda error: order.append("first"))
    fixture.writer.submit(Scripted(OSError("the disk is full")), lambda error: order.append("failed"))
    fixture.writer.call_behind(lambda: called.set_result(None))
    gate.set()
    async with asyncio.timeout(10):
        await called
    assert order == ["first", "failed"]


@pytest.mark.parametrize("failure", [OSError("the disk is full"), ValueError("a released memoryview")])
async def test_a_write_that_fails_in_any_way_does_not_end_the_thread(fixture: Fixture, failure: Exception) -> None:
    loop = asyncio.get_running_loop()
    outcomes = [loop.create_future() for _ in range(2)]
    fixture.writer.submit(Scripted(failure), outcomes[0].set_result)
    fixture.writer.submit(Scripted(None), outcomes[1].set_result)
    async with asyncio.timeout(10):
        first, second = [await outcome for outcome in outcomes]
    assert isinstance(first, OSError)
    assert str(failure) in str(first)
    assert second is None


async def test_a_report_that_fails_does_not_hold_back_the_others(
    fixture: Fixture, caplog: pytest.LogCaptureFixture
) -> None:
    second = asyncio.get_running_loop().create_future()
    gate = threading.Event()
    fixture.writer.submit(Scripted(gate), lambda error: [].pop())
    fixture.writer.submit(Scripted(None), second.set_result)
    with caplog.at_level(logging.ERROR):
        gate.set()
        # Nothing else is ever submitted: both must be reported by what is under way.
        async with asyncio.timeout(10):
            await second
    assert "IndexError" in caplog.text


@pytest.mark.parametrize("work", [None, OSError("the disk is full")])
async def test_an_idle_thread_keeps_nothing_of_what_it_wrote(fixture: Fixture, work: object) -> None:
    """Not the frame of a large request, nor the files of a deleted topic."""
    append = Scripted(work)
    written = asyncio.get_running_loop().create_future()
    fixture.writer.submit(append, lambda error: written.set_result(None))
    await written
    trace = weakref.ref(append)
    del append
    async with asyncio.timeout(10):
        while trace() is not None:
            await asyncio.to_thread(os.stat, "/")


async def test_closing_finishes_what_is_queued() -> None:
    writer = LogWriter(asyncio.get_running_loop(), "test")
    reported: list[int] = []
    for number in range(50):
        writer.submit(Scripted(None), lambda error, number=number: reported.append(number))  # type: ignore[misc]
    assert "log-writer-test" in names_of_threads()
    writer.close()
    assert reported == list(range(50))
    assert "log-writer-test" not in names_of_threads()
    writer.close()


def names_of_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}
