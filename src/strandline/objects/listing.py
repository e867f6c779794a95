"""A listing that survives the failure of the one below it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from strandline.objects.store import ObjectInfo, ObjectStore

_PAGE: Final = 1000


class PagedListing:
    """The pages of a listing. One that failed can be asked for again: what arrived before is not listed twice."""

    def __init__(self, store: ObjectStore, prefix: str, after: str) -> None:
        self._store, self._prefix, self._after = store, prefix, after
        self._infos: AsyncGenerator[ObjectInfo, None] | None = None

    async def next_page(self) -> Sequence[ObjectInfo]:
        """The objects that follow; empty at the end."""
        if self._infos is None:
            self._infos = self._store.list(self._prefix, after=self._after)
        page: list[ObjectInfo] = []
        arrived = False
        try:
            while len(page) < _PAGE and (info := await anext(self._infos, None)) is not None:
                page.append(info)
            arrived = True
        finally:
            if not arrived:  # cancelled or failed: the generator is of no use any more
                await self.aclose()
        if page:
            self._after = page[-1].key
        return page

    async def aclose(self) -> None:
        """End the listing."""
        infos, self._infos = self._infos, None
        if infos is not None:
            await infos.aclose()
