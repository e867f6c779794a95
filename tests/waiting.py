"""Waits for a condition instead of for time to pass. A test that can wait for an event does that."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from strandline.clock import SystemClock
from strandline.testing.clock import VirtualClock

T = TypeVar("T")

PATIENCE_S: Final = 30.0
_TURN_S: Final = 0.002


def wait_until(
    condition: Callable[[], T | None], what: str = "", *, within: float = PATIENCE_S, step: float = 0.02
) -> T:
    """Call `condition` until it returns something true, and return that. Fails after `within` seconds."""
    deadline = time.monotonic() + within
    pause = threading.Event()
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within:g} s in vain for {what or condition}; last seen: {result!r}")
        pause.wait(step)


async def until(condition: Callable[[], T | None], what: str = "", *, within: float = PATIENCE_S) -> T:
    """The same for a test on the event loop: tasks of this process and threads go on meanwhile."""
    return await _until(condition, what, within, _let_others_run)


async def until_in(
    clock: VirtualClock,
    condition: Callable[[], T | None],
    what: str = "",
    *,
    step: float = 1.0,
    within: float = PATIENCE_S,
) -> T:
    """The same where time is virtual: it passes, `step` seconds at a time, until the condition holds.

    Databases and files get real time for their part, of which `within` is the limit.
    """

    async def pass_time() -> None:
        await clock.advance(step)
        await _let_others_run()

    return await _until(condition, what, within, pass_time)


async def _let_others_run() -> None:
    await SystemClock().sleep(_TURN_S)


async def _until(condition: Callable[[], T | None], what: str, within: float, turn: Callable[[], Awaitable[None]]) -> T:
    deadline = time.monotonic() + within
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within:g} s in vain for {what or condition}; last seen: {result!r}")
        await turn()
