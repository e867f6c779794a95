"""One fsync of a directory for everyone who waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class DirectorySync:
    """Makes names durable. Those who come while a directory is being flushed share the next flush of it.

    A flush covers only what happened before it began: who comes later never rides on one that is already running.
    """

    def __init__(self, flush: Callable[[str], Awaitable[None]]) -> None:
        self._flush = flush
        self._running: dict[str, asyncio.Task[None]] = {}
        self._next: dict[str, asyncio.Task[None]] = {}

    async def wait_durable(self, directory: str) -> None:
        """Return when the names that `directory` has now are on the disk."""
        turn = self._next.get(directory)
        if turn is None:
            turn = asyncio.create_task(self._turn(directory, self._running.get(directory)))
            turn.add_done_callback(_look)
            self._next[directory] = turn
        await asyncio.shield(turn)  # one who leaves must not take the flush from the others

    async def _turn(self, directory: str, previous: asyncio.Task[None] | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        turn = self._running[directory] = self._next.pop(directory)
        try:
            await self._flush(directory)
        finally:
            if self._running.get(directory) is turn:
                del self._running[directory]


def _look(turn: asyncio.Task[None]) -> None:
    """An error belongs to those who wait; if all of them have left, it is not one of nobody."""
    if not turn.cancelled():
        turn.exception()
