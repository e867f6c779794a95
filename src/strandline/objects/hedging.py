"""Sends a read a second time when its answer is late. One slow answer is common, two in a row are rare."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from strandline.clock import Clock
from strandline.objects.counting import Traffic
from strandline.objects.store import Buffer, ObjectInfo, ObjectRange, ObjectStore, ObjectStoreError

# A store that is slow for all reads must not get twice the load.
_MOST_AT_ONCE: Final = 16

T = TypeVar("T")


class HedgingStore:
    """A store whose reads are sent again after `after` seconds. The first answer wins, the other call is cancelled."""

    def __init__(self, store: ObjectStore, *, after: float, clock: Clock, traffic: Traffic) -> None:
        self._store, self._after, self._clock, self._traffic = store, after, clock, traffic
        self._running = 0

    @property
    def url(self) -> str:
        return self._store.url

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._store.put(key, parts)

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._store.put_new(key, parts)

    async def put_file(self, key: str, path: Path) -> None:
        await self._store.put_file(key, path)

    async def get(self, key: str) -> Buffer:
        return await self._hedged(lambda: self._store.get(key))

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        return await self._hedged(lambda: self._store.get_range(key, start, length))

    @property
    def ranges_at_once(self) -> int:
        return self._store.ranges_at_once

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        return await self._hedged(lambda: self._store.get_ranges(ranges))

    def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        return self._store.list(prefix, after=after)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._store.delete(keys)

    async def _hedged(self, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        first = asyncio.create_task(read())
        alarm = asyncio.create_task(self._clock.sleep(self._after))
        calls = [first]
        try:
            await asyncio.wait([first, alarm], return_when=asyncio.FIRST_COMPLETED)
            if first.done() or self._running >= _MOST_AT_ONCE:
                return await first
            self._running += 1
            try:
                self._traffic.hedges += 1
                calls.append(asyncio.create_task(read()))
                return await self._first_answer(calls)
            finally:
                self._running -= 1
        finally:
            for task in (alarm, *calls):
                task.cancel()
            await asyncio.gather(alarm, *calls, return_exceptions=True)

    async def _first_answer(self, calls: Sequence[asyncio.Task[T]]) -> T:
        """The first answer. An error counts only if the other call fails, too."""
        done, late = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        winner = next((call for call in calls if call in done and call.exception() is None), None)
        if winner is None and late:
            winner = late.pop()
            await asyncio.wait([winner])
        if winner is None or winner.exception() is not None:
            return await calls[0]  # raises
        self._traffic.hedges_won += winner is calls[1]
        return winner.result()
