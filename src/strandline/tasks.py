"""Tasks beside the one that starts them: work that lasts as long as a block, and work that nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def in_background(work: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Do endless work, by name, while the block lasts. Work that dies ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one, name=name) for name, one in work.items()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


class TaskSet:
    """Tasks that go on until they are through, or until their owner ends them all.

    The event loop alone would let go of them while they wait.
    """

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Begin something in the next turn of the loop."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel what still runs, and return when it has ended, however it does."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
