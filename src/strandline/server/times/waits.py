"""Notes when a handler begins to wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

_NOTHING: Final = object()


class NotingWaits(Generic[T]):
    """Awaits something, and calls `waits` whenever that waits in turn."""

    __slots__ = ("_first", "_steps", "_waits")

    def __init__(self, work: Awaitable[T], waits: Callable[[], None]) -> None:
        self._steps: Generator[Any, Any, T] | Coroutine[Any, Any, T] = work.__await__()
        self._waits = waits
        self._first: Any = _NOTHING

    @classmethod
    def going_on(cls, work: Coroutine[Any, Any, T], waited_for: Any, waits: Callable[[], None]) -> NotingWaits[T]:
        """Work whose first step was taken by `send(None)`, outside of any task: it waits for `waited_for`."""
        started = cls.__new__(cls)
        started._steps, started._waits, started._first = work, waits, waited_for
        return started

    def __await__(self) -> Generator[Any, Any, T]:
        value: Any = None
        send: Callable[[Any], Any] = self._steps.send
        waited_for, self._first = self._first, _NOTHING
        while True:
            if waited_for is _NOTHING:
                try:
                    waited_for = send(value)
                except StopIteration as end:
                    result: T = end.value
                    return result
            self._waits()
            try:
                value = yield waited_for
                waited_for, send = _NOTHING, self._steps.send
            except GeneratorExit:
                self._steps.close()
                raise
            except BaseException as error:  # noqa: BLE001 - it is for the work: a cancellation, as a rule
                waited_for, value, send = _NOTHING, error, self._steps.throw
