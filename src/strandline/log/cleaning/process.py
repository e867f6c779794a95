"""Where the work of a pass is done: a process of its own, so that the broker's event loop never waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from strandline.log.cleaning.requests import GroupRequest, GroupResult, MapRequest, MapResult

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection

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
    """One worker process, started when first needed.

    What only that process needs is imported when it starts: most brokers never compact anything.
    """

    __slots__ = ("_pipe", "_pool")

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._pipe: tuple[Connection, Connection] | None = None

    async def build_map(self, request: MapRequest) -> MapResult:
        from strandline.log.cleaning.worker import build_map

        return await self._run(build_map, request)

    async def clean_group(self, request: GroupRequest) -> GroupResult:
        from strandline.log.cleaning.worker import clean_group

        return await self._run(clean_group, request)

    async def _run(self, function: Callable[[Request], Result], request: Request) -> Result:
        pool = self._started()
        # The first submission starts the process, which takes milliseconds: not on the event loop.
        future = await asyncio.to_thread(pool.submit, function, request)
        return await asyncio.wrap_future(future)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            from strandline.log.cleaning.worker import start_worker

            context = multiprocessing.get_context("spawn")
            self._pipe = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=start_worker, initargs=(self._pipe[0],))
        return self._pool

    async def close(self) -> None:
        pool, pipe = self._pool, self._pipe
        self._pool = self._pipe = None
        if pool is not None and pipe is not None:
            reader, writer = pipe
            writer.close()  # tells the worker to stop
            try:
                await asyncio.to_thread(pool.shutdown, cancel_futures=True)
            finally:
                reader.close()
