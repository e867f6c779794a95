"""Waiting for an answer that comes through a callback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from strandline.coordinators.runtime.timers import Timers
from strandline.errors import CoordinatorNotAvailable

T = TypeVar("T")


async def wait_result(start: Callable[[Callable[[T], None]], None]) -> T:
    """Start work that answers through a callback, and wait for its answer. A cancelled wait does not stop the work.

    An answer that is there when the work has started costs no wait.
    """
    results: list[T] = []
    future: asyncio.Future[None] | None = None

    def answer(result: T) -> None:
        if not results:
            results.append(result)
            if future is not None and not future.done():
                future.set_result(None)

    start(answer)
    if not results:
        future = asyncio.get_running_loop().create_future()
        await future
    return results[0]


async def wait_result_in_time(start: Callable[[Callable[[T], None]], None], timers: Timers, timeout_ms: int) -> T:
    """The same, for a limited time. Raises CoordinatorNotAvailable: then the work goes on, and its
    answer is not waited for."""
    results: list[T] = []
    future: asyncio.Future[None] | None = None

    def wake() -> None:
        if future is not None and not future.done():
            future.set_result(None)

    def answer(result: T) -> None:
        if not results:
            results.append(result)
            wake()

    start(answer)
    if not results:
        future = asyncio.get_running_loop().create_future()
        timer = timers.after(timeout_ms, wake)
        try:
            await future
        finally:
            timer.cancel()
        if not results:
            raise CoordinatorNotAvailable(f"The coordinator's log was not replicated in {timeout_ms} ms. Try again.")
    return results[0]
