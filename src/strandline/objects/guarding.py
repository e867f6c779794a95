"""A store that is not used while something speaks against it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

from strandline.objects.store import Buffer, ObjectInfo, ObjectRange, ObjectStore, ObjectStoreError


class GuardedStore:
    """See ObjectStore. Each call is refused with the error that `why_not` gives; with None it goes on."""

    def __init__(self, store: ObjectStore, why_not: Callable[[], ObjectStoreError | None]) -> None:
        self._store, self._why_not = store, why_not

    @property
    def store(self) -> ObjectStore:
        """The store itself, for the code that finds out whether it may be used."""
        return self._store

    @property
    def url(self) -> str:
        return self._store.url

    @property
    def ranges_at_once(self) -> int:
        return self._store.ranges_at_once

    @property
    def _allowed(self) -> ObjectStore:
        error = self._why_not()
        if error is not None:
            raise error
        return self._store

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._allowed.put(key, parts)

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._allowed.put_new(key, parts)

    async def put_file(self, key: str, path: Path) -> None:
        await self._allowed.put_file(key, path)

    async def get(self, key: str) -> Buffer:
        return await self._allowed.get(key)

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        return await self._allowed.get_range(key, start, length)

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        error = self._why_not()
        return await self._store.get_ranges(ranges) if error is None else [error] * len(ranges)

    async def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        async with aclosing(self._allowed.list(prefix, after=after)) as infos:
            async for info in infos:
                yield info

    async def delete(self, keys: Sequence[str]) -> None:
        await self._allowed.delete(keys)
