"""The index cache in memory: the indexes in use, with a bound on their bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, Protocol, TypeVar
from uuid import UUID

# Approximate overhead of every value, beside its entries.
VALUE_SIZE: Final = 500


class Kept(Protocol):
    """A value that can be cached."""

    @property
    def memory_bytes(self) -> int:
        """Approximate memory that it takes."""

    @property
    def is_dense(self) -> bool:
        """Whether `thin` makes it smaller."""

    def thin(self) -> None:
        """Take less memory from now on."""


T = TypeVar("T", bound=Kept)


class IndexMemory(Generic[T]):
    """One value for each segment. Lives on the event loop.

    When there is no room, large values are thinned first, the least recently used before the others; only when no
    value is left to thin, the least recently used are evicted.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept: OrderedDict[UUID, tuple[T, int]] = OrderedDict()
        self._dense: OrderedDict[UUID, None] = OrderedDict()
        self.max_bytes = max_bytes
        self.bytes = 0

    def get(self, segment_id: UUID) -> T | None:
        """The value of a segment, which counts as used now."""
        kept = self._kept.get(segment_id)
        if kept is None:
            return None
        self._kept.move_to_end(segment_id)
        if segment_id in self._dense:
            self._dense.move_to_end(segment_id)
        return kept[0]

    def put(self, segment_id: UUID, value: T) -> None:
        """Cache a value, and make room for it."""
        self.drop(segment_id)
        self._account(segment_id, value)
        if value.is_dense:
            self._dense[segment_id] = None
        while self.bytes > self.max_bytes and self._dense:
            self._thin(next(iter(self._dense)))
        while self.bytes > self.max_bytes:
            self.drop(next(iter(self._kept)))

    def drop(self, segment_id: UUID) -> None:
        """Drop a value, if it is there."""
        kept = self._kept.pop(segment_id, None)
        if kept is not None:
            self.bytes -= kept[1]
            self._dense.pop(segment_id, None)

    def _thin(self, segment_id: UUID) -> None:
        del self._dense[segment_id]
        value, size = self._kept[segment_id]
        value.thin()
        self.bytes -= size
        self._account(segment_id, value)

    def _account(self, segment_id: UUID, value: T) -> None:
        size = VALUE_SIZE + value.memory_bytes
        self._kept[segment_id] = (value, size)
        self.bytes += size
