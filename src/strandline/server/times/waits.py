"""Notes when a handler begins to wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class NotingWaits(Generic[T]):
    """Awaits something, and calls `waits` whenever that waits in turn."""

    __slots__ = ("_steps", "_waits")

    def __init__(self, work: Awaitable[T], waits: Callable[[], None]) -> None:
        self._steps, self._waits = work.__await__(), waits

    def __await__(self) -> Generator[Any, Any, T]:
        value: Any = None
        send = self._steps.send
        while True:
            try:
                waited_for = send(value)
            except StopIteration as end:
                result: T = end.value
                return result
            self._waits()
            try:
                value = yield waited_for
                send = self._steps.send
            except GeneratorExit:
                self._steps.close()
                raise
            except BaseException as error:  # noqa: BLE001 - it is for the work: a cancellation, as a rule
                value, send = error, self._steps.throw
