"""Background tasks: work that lasts as long as a block, work that its starter does not wait for, and its setbacks."""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_MOST_SENTENCES: Final = 16


@types.coroutine
def next_turn() -> Generator[None, None, None]:
    """Go on in the next turn of the event loop: long work calls it now and then, so that others get their turn."""
    yield


async def in_turns(steps: Generator[None, None, T]) -> T:
    """The result of work that is divided into steps, each in a turn of the event loop of its own."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await next_turn()


def in_one_go(steps: Generator[None, None, T]) -> T:
    """The result of work that is divided into steps, where no other task has to run meanwhile."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


async def map_in_turns(work: Callable[[T], R], items: Sequence[T], *, size: int) -> list[R]:
    """What `work` makes of each item, so many of them in a turn of the event loop."""
    made: list[R] = []
    for at in range(0, len(items), size):
        if at:
            await next_turn()
        made += map(work, items[at : at + size])
    return made


@asynccontextmanager
async def in_background(work: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run endless coroutines, by name, while the block lasts. A coroutine that raises ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one, name=name) for name, one in work.items()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


@asynccontextmanager
async def in_background_or_failed(
    work: Callable[[], Awaitable[None]], name: str, *, on_failure: Callable[[str], None], log: logging.Logger
) -> AsyncIterator[None]:
    """Run endless work while the block lasts. Work that dies is logged, and `on_failure` told."""

    async def run() -> None:
        try:
            await work()
        except Exception as error:
            log.exception("%s has failed", name)
            on_failure(f"{name} has failed: {error}")

    task = asyncio.create_task(run(), name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class TaskSet:
    """Tasks that run to their end, or until their owner cancels all of them.

    The event loop holds only weak references to tasks: without this one they could be collected while they wait.
    """

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Start a task; it runs from the next turn of the loop on."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel the tasks that still run, and return when all have ended. Their errors are dropped."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Setbacks:
    """Failures of work that is tried again until it succeeds. Each sentence is logged once, and so is the end."""

    __slots__ = ("_attempts", "_logger", "_said", "_what")

    def __init__(self, what: str, logger: logging.Logger) -> None:
        self._what, self._logger = what, logger
        self._said: set[str] = set()
        self._attempts = 0

    def met(self, error: Exception) -> None:
        """An attempt has failed, and there will be another one."""
        sentence = str(error) or type(error).__name__
        if len(self._said) >= _MOST_SENTENCES:
            self._said.clear()
        if sentence not in self._said:
            self._logger.warning("%s failed, trying again: %s", self._what, sentence)
        self._said.add(sentence)
        self._attempts += 1

    def over(self) -> None:
        """An attempt has succeeded."""
        if self._attempts:
            self._logger.info("%s succeeds again, after %d attempts that failed", self._what, self._attempts)
            self._said.clear()
            self._attempts = 0
