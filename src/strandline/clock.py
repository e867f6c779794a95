"""Time, ids and chance. The only module that may ask the operating system for them."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

thread_seconds: Final = time.thread_time
"""CPU time that the calling thread has used."""
ticks_ns: Final = time.monotonic_ns
"""The clock of `SystemClock.monotonic`, for measurements on the hot path that nothing depends on."""


class Clock(Protocol):
    """The source of time. `strandline.testing` has one that tests can move."""

    def now_ms(self) -> int:
        """Wall-clock time in milliseconds since 1970, as records carry it."""

    def monotonic(self) -> float:
        """Seconds that never go back, for deadlines and durations."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""

    async def wait_set(self, event: asyncio.Event, *, within: float) -> bool:
        """Wait until `event` is set, at most `within` seconds. True if it was set."""


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait_set(self, event: asyncio.Event, *, within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True


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
        # Wait until both have ended. The error of a cancelled call has no receiver any more.
        await asyncio.gather(work, alarm, return_exceptions=True)


class Ids(Protocol):
    """The source of identifiers."""

    def uuid(self) -> uuid.UUID:
        """A new random UUID."""


class SystemIds:
    """Random UUIDs that Kafka accepts: never zero or one, and no leading dash in text form."""

    def uuid(self) -> uuid.UUID:
        while True:
            value = uuid.uuid4()
            # A leading '-' in the base64 form is read as an option by command-line tools.
            if value.bytes[0] >> 2 != 62:
                return value


class Chance(Protocol):
    """The source of randomness."""

    def below(self, limit: int) -> int:
        """A number in [0, limit); 0 if `limit` is not positive."""

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in random order."""


class SystemChance:
    """The process's random generator."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit) if limit > 0 else 0

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return self._random.sample(items, len(items))
