"""Object stores that misbehave in ways that take more than one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from strandline.clock import SystemClock
from strandline.objects import ObjectInfo, ObjectStore, ObjectStoreUnavailable
from strandline.testing.objects import FaultyStore


class Throttling(FaultyStore):
    """Deletes a few objects of each request, and then asks for patience if there were more in it."""

    def __init__(self, inner: ObjectStore, most: int) -> None:
        super().__init__(inner, SystemClock())
        self.most = most
        self.deletions: Counter[str] = Counter()

    async def delete(self, keys: Sequence[str]) -> None:
        self.deletions.update(keys)
        await self._store.delete(keys[: self.most])
        if len(keys) > self.most:
            raise ObjectStoreUnavailable("Slow down.")


class Ending(FaultyStore):
    """Its listings break off after some objects, once."""

    def __init__(self, inner: ObjectStore, after: int) -> None:
        super().__init__(inner, SystemClock())
        self.left = after
        self.starts: list[str] = []

    async def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        self.starts.append(after)
        async with aclosing(super().list(prefix, after=after)) as items:
            async for item in items:
                if self.left == 0:
                    self.left = -1
                    raise ObjectStoreUnavailable("The connection was lost.")
                self.left -= 1
                yield item


class Interrupted(FaultyStore):
    """Something happens right after its listing."""

    def __init__(self, inner: ObjectStore, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__(inner, SystemClock())
        self.meanwhile = meanwhile

    async def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        async with aclosing(super().list(prefix, after=after)) as items:
            async for item in items:
                yield item
        await self.meanwhile()
