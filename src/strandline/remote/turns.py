"""Long work on the event loop, cut into short turns, so that other tasks run in between."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final, TypeVar

from strandline.clock import Clock

T = TypeVar("T")

# Metadata of segments that is made or looked at in one turn: some milliseconds of work.
AT_ONCE: Final = 100


async def gathered(clock: Clock, items: Iterable[T]) -> list[T]:
    """All items of an iterator that makes them one at a time, in short turns."""
    found: list[T] = []
    for item in items:
        found.append(item)
        if len(found) % AT_ONCE == 0:
            await clock.sleep(0)
    return found


async def in_turns(clock: Clock, steps: Generator[None, None, T]) -> T:
    """What a generator returns; each of its steps is one turn."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await clock.sleep(0)


def at_once(steps: Generator[None, None, T]) -> T:
    """The same without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
