"""Where the work of a pass is done: a process of its own, so that the broker's event loop never waits for it."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Event as ProcessEvent
from typing import Protocol, TypeVar

from strandline.log.cleaning.requests import GroupRequest, GroupResult, MapRequest, MapResult
from strandline.log.cleaning.worker import build_map, clean_group, start_worker

Request = TypeVar("Request")
Result = TypeVar("Result")


class CleaningWorker(Protocol):
    """Does the work of one pass at a time, call after call.

    A call that raises leaves at most `.cleaned` files behind. Cancelling a call does not stop the work: `close` does.
    """

    async def build_map(self, request: MapRequest) -> MapResult:
        """Begin a pass. Raises CleaningStopped, CorruptMessage and its kin, or OSError."""

    async def clean_group(self, request: GroupRequest) -> GroupResult:
        """Go on with the pass that was begun last. Raises as `build_map` does."""

    async def close(self) -> None:
        """Stop working and give all memory back. The next call starts again."""


class ProcessWorker:
    """One worker process, started when first needed."""

    __slots__ = ("_pool", "_stop")

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._stop: ProcessEvent | None = None

    async def build_map(self, request: MapRequest) -> MapResult:
        return await self._run(build_map, request)

    async def clean_group(self, request: GroupRequest) -> GroupResult:
        return await self._run(clean_group, request)

    async def _run(self, function: Callable[[Request], Result], request: Request) -> Result:
        pool = self._started()
        # The first submission starts the process, which takes milliseconds: not on the event loop.
        future = await asyncio.to_thread(pool.submit, function, request)
        return await asyncio.wrap_future(future)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._stop = context.Event()
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=start_worker, initargs=(self._stop,))
        return self._pool

    async def close(self) -> None:
        pool, stop = self._pool, self._stop
        self._pool = self._stop = None
        if pool is not None and stop is not None:
            stop.set()
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)
