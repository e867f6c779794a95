"""Work for many partitions at a time, of which some may hang."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
P = TypeVar("P")


class Lane(Generic[K, P]):
    """One piece of work at a time for each key, several keys at once; the key that has waited longest comes first.

    A key whose work hangs takes one of the places, and comes behind all others when it is wanted again. Lives on the
    event loop. Work that raises ends the task group.
    """

    def __init__(
        self, group: asyncio.TaskGroup, name: str, work: Callable[[P], Coroutine[Any, Any, None]], *, at_once: int
    ) -> None:
        self._group, self._name, self._work, self._at_once = group, name, work, at_once
        self._waiting: dict[K, P] = {}
        self._running: set[K] = set()

    @property
    def waiting(self) -> int:
        """How many pieces have no place yet."""
        return len(self._waiting)

    def want(self, key: K, piece: P) -> None:
        """There is something to do. A piece of the same key that waits is replaced: it was older.

        While one runs, nothing is noted: what is left to do then is found at the next look.
        """
        if key not in self._running:
            self._waiting[key] = piece
            self._start()

    def drop(self, key: K) -> None:
        """There is nothing to do any more. What runs goes on."""
        self._waiting.pop(key, None)

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._at_once:
            key = next(iter(self._waiting))
            piece = self._waiting.pop(key)
            self._running.add(key)
            self._group.create_task(self._run(key, piece), name=self._name)

    async def _run(self, key: K, piece: P) -> None:
        await self._work(piece)
        self._running.discard(key)
        self._start()
