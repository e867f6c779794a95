"""The stores of a cluster, opened when the first record of a task is there: a classic cluster may have neither."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from strandline.objects import ObjectStore
from strandline.pipeline.stores import StoreSettings, open_object_store, open_segment_store
from strandline.remote.ports import RemoteStorageManager


class LazyStores:
    """Both stores, as long as the stack lasts."""

    def __init__(self, settings: StoreSettings, stack: AsyncExitStack) -> None:
        self._settings, self._stack = settings, stack
        self._objects: ObjectStore | None = None
        self._remote: RemoteStorageManager | None = None
        self._opening = asyncio.Lock()

    async def objects(self) -> ObjectStore:
        """Where WAL objects are. Raises InvalidConfig, ObjectStoreErrors."""
        async with self._opening:
            if self._objects is None:
                self._objects = await self._stack.enter_async_context(open_object_store(self._settings))
            return self._objects

    async def remote(self) -> RemoteStorageManager:
        """Where segments are. Raises InvalidConfig, RemoteStorageError."""
        async with self._opening:
            if self._remote is None:
                self._remote = await self._stack.enter_async_context(open_segment_store(self._settings))
            return self._remote
