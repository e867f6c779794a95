"""Waiting for an answer that comes through a callback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

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
