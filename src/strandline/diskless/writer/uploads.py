"""Uploads of WAL objects, with retries, a few at a time.

Every attempt has its own key: an abandoned attempt may still complete in the store, and must not overwrite the object
of the next attempt, which may be committed by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Final

from strandline.clock import Clock, Ids
from strandline.crash import crash_point
from strandline.diskless.wal import keys, pack
from strandline.diskless.writer.gathering import GatheredFile
from strandline.diskless.writer.rotation import WriterLimits
from strandline.errors import KafkaStorageError
from strandline.objects import ObjectStore, ObjectStoreError
from strandline.objects.store import Buffer

logger = logging.getLogger(__name__)

# Recent uploads over which their time is averaged, about.
_MEMORY: Final = 8


class Uploads:
    """Uploads objects, at most `limits.parallel_uploads` at a time; the others wait in order."""

    def __init__(
        self, store: ObjectStore, limits: WriterLimits, *, clock: Clock, ids: Ids, broker_id: int, cluster_id: str
    ) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock
        self._ids = ids
        self._broker_id = broker_id
        self._cluster_id = cluster_id
        self._slots = asyncio.Semaphore(limits.parallel_uploads)
        self.running = 0
        self.usual_seconds = 0.0
        """The average time of recent uploads, including the wait for a free slot."""

    async def upload(self, file: GatheredFile, abandoned: list[str]) -> None:
        """Upload `file` and set its key. Raises KafkaStorageError.

        `abandoned` gets the keys of failed attempts: an object may exist under them, and is never committed.
        """
        begun = self._clock.monotonic()
        async with self._slots:
            self.running += 1
            try:
                packed = pack(
                    file.batches,
                    broker_id=self._broker_id,
                    cluster_id=self._cluster_id,
                    created_ms=file.created_ms,
                )
                crash_point("diskless.writer.before_upload")
                file.key = await self._put(packed.parts, file.created_ms, abandoned)
                crash_point("diskless.writer.after_upload")
                file.size, file.placed = packed.size, packed.placed
                file.uploaded_at = self._clock.monotonic()
                self.usual_seconds += (file.uploaded_at - begun - self.usual_seconds) / _MEMORY
            finally:
                self.running -= 1

    async def _put(self, parts: list[Buffer], created_ms: int, abandoned: list[str]) -> str:
        backoff = self._limits.upload_backoff
        deadline = self._clock.monotonic() + self._limits.patience
        attempt = 1
        while True:
            key = keys.make(created_ms, self._broker_id, self._ids.uuid())
            try:
                await self._store.put(key, parts)
            except ObjectStoreError as error:
                abandoned.append(key)
                is_last = attempt >= self._limits.upload_attempts or self._clock.monotonic() >= deadline
                if is_last or not error.retriable:
                    logger.warning("%s could not be written to %s: %s", key, self._store.url, error)
                    raise KafkaStorageError(
                        f"The object store {self._store.url} did not accept the batch ({error}). Nothing of it was "
                        "written; send it again."
                    ) from error
            else:
                return key
            await self._clock.sleep(backoff)
            backoff *= 2
            attempt += 1

    async def discard(self, object_keys: Collection[str]) -> None:
        """Delete objects that were certainly not committed. The search for orphans finds those that remain."""
        try:
            await self._store.delete(list(object_keys))
        except ObjectStoreError as error:
            logger.info(
                "objects that were never committed stay in %s until the next search for orphans: %s",
                self._store.url,
                error,
            )
