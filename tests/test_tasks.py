"""Tasks beside the one that starts them."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from strandline.tasks import Setbacks, TaskSet, in_background, in_background_or_failed


async def test_work_in_the_background_ends_with_the_block() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with in_background({"work": work()}):
        await asyncio.to_thread(lambda: None)
        assert not ended.is_set()
    assert ended.is_set()


async def test_work_in_the_background_that_dies_ends_the_block() -> None:
    async def die() -> None:
        raise ValueError("a test failed on purpose")

    with pytest.raises(ExceptionGroup) as failure:
        async with in_background({"dies": die(), "waits": _wait()}):
            await asyncio.Event().wait()
    assert [str(error) for error in failure.value.exceptions] == ["a test failed on purpose"]


async def test_work_that_dies_is_told_and_the_block_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[str] = []
    died, log = asyncio.Event(), logging.getLogger("strandline.test")

    async def die() -> None:
        raise ValueError("a test failed on purpose")

    def told(sentence: str) -> None:
        failures.append(sentence)
        died.set()

    async with in_background_or_failed(die, "a part", on_failure=told, log=log):
        await died.wait()
    assert failures == ["a part has failed: a test failed on purpose"]
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("strandline.test", "a part has failed")
    ]


async def test_such_work_ends_with_the_block_and_that_is_no_failure() -> None:
    ended, failures = asyncio.Event(), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with in_background_or_failed(work, "work", on_failure=failures.append, log=logging.getLogger(__name__)):
        await asyncio.to_thread(lambda: None)
    assert ended.is_set()
    assert failures == []


async def test_closing_ends_what_runs_and_waits_for_it() -> None:
    tasks, steps = TaskSet(), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(lambda: None)
            steps.append("tidied")

    task = tasks.start(work(), name="work")
    await asyncio.to_thread(lambda: None)
    await tasks.close()
    assert (steps, task.cancelled()) == (["tidied"], True)


async def test_what_fails_while_it_is_ended_does_not_keep_others_from_ending() -> None:
    tasks = TaskSet()

    async def fail() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("a test failed on purpose")

    failing, waiting = tasks.start(fail(), name="fails"), tasks.start(_wait(), name="waits")
    await asyncio.to_thread(lambda: None)
    await tasks.close()
    assert waiting.cancelled()
    with pytest.raises(ValueError, match="on purpose"):
        failing.result()


async def test_a_task_that_nothing_else_refers_to_goes_on() -> None:
    tasks, done = TaskSet(), asyncio.Event()

    async def work() -> None:
        await asyncio.get_running_loop().create_future()  # only the task refers to it

    tasks.start(work(), name="forgotten").add_done_callback(lambda _: done.set())
    await asyncio.to_thread(lambda: None)
    gc.collect()
    assert not done.is_set()
    await tasks.close()
    assert done.is_set()


async def _wait() -> None:
    await asyncio.Event().wait()


def test_setbacks_are_logged_once_by_sentence_and_so_is_their_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    setbacks = Setbacks("reading", logging.getLogger("strandline.test"))
    setbacks.over()
    for sentence in ("away", "away", "locked", "away"):
        setbacks.met(ValueError(sentence))
    setbacks.over()
    setbacks.over()
    setbacks.met(ValueError("away"))
    assert caplog.messages == [
        "reading failed, trying again: away",
        "reading failed, trying again: locked",
        "reading succeeds again, after 4 attempts that failed",
        "reading failed, trying again: away",
    ]
