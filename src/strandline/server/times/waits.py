"""Notes when a handler begins to wait."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class NotingWaits(Generic[T]):
    """Awaits a coroutine, and calls `waits` whenever it waits for something."""

    __slots__ = ("_coroutine", "_waits")

    def __init__(self, coroutine: Coroutine[Any, Any, T], waits: Callable[[], None]) -> None:
        self._coroutine, self._waits = coroutine, waits

    def __await__(self) -> Generator[Any, Any, T]:
        return _Steps(self._coroutine, self._waits)  # type: ignore[return-value]  # all that `await` needs of one


class _Steps:
    """The steps of a coroutine between its waits."""

    __slots__ = ("_coroutine", "_waits")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits: Callable[[], None]) -> None:
        self._coroutine, self._waits = coroutine, waits

    def __iter__(self) -> _Steps:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        waited_for = self._coroutine.send(value)  # StopIteration, with the result, goes to who awaits
        self._waits()
        return waited_for

    def throw(self, *error: Any) -> Any:
        waited_for = self._coroutine.throw(*error)
        self._waits()
        return waited_for

    def close(self) -> None:
        self._coroutine.close()
