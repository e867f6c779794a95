"""Background tasks: work that lasts as long as a block, and work that its starter does not wait for."""

from __future__ import annotations

import asyncio
import types
from collections.abc import AsyncIterator, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager
from typing import Any


@types.coroutine
def next_turn() -> Generator[None, None, None]:
    """Go on in the next turn of the event loop: long work calls it now and then, so that others get their turn."""
    yield


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
