"""Objects in the memory of this process: for tests and trials. They are lost when the process ends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import NamedTuple

from strandline.clock import Clock
from strandline.objects.keys import checked_key
from strandline.objects.source_file import SourceFile
from strandline.objects.store import (
    Buffer,
    ObjectExists,
    ObjectInfo,
    ObjectNotFound,
    ObjectRange,
    ObjectStoreError,
    range_or_error,
)


class _Object(NamedTuple):
    data: bytes
    modified_ms: int


class MemoryStore:
    """A dictionary. Every call ends in one turn of the event loop, which suits clocks that tests move."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[str, _Object] = {}

    @property
    def url(self) -> str:
        return "memory://"

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        self._objects[checked_key(key)] = _Object(b"".join(parts), self._clock.now_ms())

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        if checked_key(key) in self._objects:
            raise ObjectExists(f"Object {key} exists in {self.url} already.")
        await self.put(key, parts)

    async def put_file(self, key: str, path: Path) -> None:
        with SourceFile(path) as source:
            data = bytearray(source.size)
            source.read_into(memoryview(data), 0)
        await self.put(key, [data])

    async def get(self, key: str) -> Buffer:
        found = self._objects.get(checked_key(key))
        if found is None:
            raise ObjectNotFound(f"There is no object {key} in {self.url}.")
        return found.data

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        if start < 0 or length < 0:
            raise ObjectStoreError(f"Object {key} has no {length} bytes from {start} on: neither may be negative.")
        return memoryview(await self.get(key))[start : start + length]

    @property
    def ranges_at_once(self) -> int:
        return 1

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        return [await range_or_error(self, wanted) for wanted in ranges]

    async def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        keys = sorted(self._objects)
        for key in keys[max(bisect_left(keys, prefix), bisect_right(keys, after)) :]:
            if not key.startswith(prefix):
                return
            found = self._objects.get(key)
            if found is not None:  # not deleted since the listing began
                yield ObjectInfo(key, len(found.data), found.modified_ms)

    async def delete(self, keys: Sequence[str]) -> None:
        for key in [checked_key(key) for key in keys]:
            self._objects.pop(key, None)
