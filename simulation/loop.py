"""An event loop whose time passes when nothing is left to do, and never otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from strandline.clock import SystemClock

_DISK_SECONDS: Final = 0.0005


class NothingLeft(RuntimeError):
    """Everything waits, and for nothing: the run would never go on."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in the order of their times. No sockets, no threads.

    Work for threads is done at once, and reported a little later: what a thread has begun, a killed process may have
    finished, and nothing of it happens afterwards.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seconds = 0.0
        self._selector = self  # `BaseEventLoop` asks it what happens outside
        self.connect: Callable[..., Any] | None = None
        """A coroutine function which stands for `create_connection`."""

    def time(self) -> float:
        return self._seconds

    def select(self, timeout: float | None) -> list[Any]:
        """Nothing happens outside. Let the time pass until the next callback is due."""
        if timeout is None:
            raise NothingLeft("nothing is left to happen")
        if timeout > 0:
            self._seconds = max(self._seconds, self._scheduled[0].when())  # type: ignore[attr-defined]
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """The only thread is the one that runs the loop."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        done = self.create_future()
        try:
            result, error = func(*args), None
        except Exception as failure:  # noqa: BLE001  (it is the caller's)
            result, error = None, failure

        def report() -> None:
            if done.cancelled():
                return
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

        self.call_later(_DISK_SECONDS, report)
        return done

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        if self.connect is None:
            raise ConnectionRefusedError("There is no network.")
        return await self.connect(protocol_factory, host, port)


class LoopClock(SystemClock):
    """The time of a `VirtualLoop`, which began at some moment."""

    def __init__(self, loop: asyncio.AbstractEventLoop, began_ms: int) -> None:
        self._loop, self._began_ms = loop, began_ms

    def now_ms(self) -> int:
        return self._began_ms + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()
