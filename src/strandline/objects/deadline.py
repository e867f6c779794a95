"""An end for every call, on a clock that tests can move."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from strandline.clock import Clock

T = TypeVar("T")


async def within(clock: Clock, seconds: float, call: Coroutine[Any, Any, T]) -> T:
    """The result of `call`, which is cancelled when it takes longer than `seconds`. Raises TimeoutError."""
    work: asyncio.Task[T] = asyncio.ensure_future(call)
    alarm: asyncio.Task[None] = asyncio.ensure_future(clock.sleep(seconds))
    try:
        either: set[asyncio.Task[Any]] = {work, alarm}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise TimeoutError
        return work.result()
    finally:
        work.cancel()
        alarm.cancel()
        # A cancelled call ends at once, and its errors concern nobody any more.
        await asyncio.gather(work, alarm, return_exceptions=True)
