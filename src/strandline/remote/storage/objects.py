"""Segments as objects: the `RemoteStorageManager` that comes with the broker."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from strandline.crash import crash_point
from strandline.errors import InvalidConfig
from strandline.objects import (
    ObjectStore,
    ObjectStoreError,
    ObjectStoreMisconfigured,
    open_objects,
)
from strandline.objects.address import parse_address
from strandline.objects.checking import advised, check_key, check_readable, check_writable
from strandline.objects.marker import REMOTE_STORE_ID_KEY, store_id
from strandline.objects.store import Buffer
from strandline.remote.plugins import PluginContext
from strandline.remote.ports import RemoteStorageError
from strandline.remote.storage.copy_process import CopyProcess
from strandline.remote.storage.names import SegmentKeys
from strandline.remote.storage.settings import ObjectSettings, parse_object_settings, rsm_place
from strandline.remote.storage.uploads import ObjectCopies, SegmentCopies, translated
from strandline.remote.values import IndexType, LogSegmentData, RemoteLogSegmentMetadata


class ObjectRemoteStorage:
    """Segments in an object store.

    The log is the last object that is written and the first that is deleted: a segment with a log is complete.
    """

    def __init__(self, objects: ObjectStore, prefix: str = "", directory: Path | None = None) -> None:
        """`directory` holds the objects if the object store is a directory of this machine."""
        self._objects, self._directory = objects, directory
        self.settings: ObjectSettings | None = None
        """What it was opened with."""
        self._keys = SegmentKeys(prefix)
        self._copies: SegmentCopies = ObjectCopies(objects, self._keys)
        self._stack = AsyncExitStack()
        self._checked = objects  # without retries: a check is one attempt
        self._check_key = check_key(0, prefix)
        self._id_key = prefix + REMOTE_STORE_ID_KEY
        self._place = rsm_place(objects.url, None)
        self.late_seconds = 0.0
        """See `LateWrites`. A directory or the memory carries out a write at once or never."""

    @classmethod
    async def open(cls, config: Mapping[str, str], context: PluginContext) -> ObjectRemoteStorage:
        """The storage that rsm.config.* describes. Sends no request to a bucket yet. Raises InvalidConfig."""
        settings = parse_object_settings(config, context.data_dir)
        async with AsyncExitStack() as stack:
            try:
                objects = await stack.enter_async_context(
                    open_objects(
                        settings.url, settings.options, clock=context.clock, ids=context.ids, chance=context.chance
                    )
                )
            except ObjectStoreMisconfigured as error:
                raise InvalidConfig(f"rsm.config.url cannot be used. {error}") from error
            except ObjectStoreError as error:
                raise RemoteStorageError(str(error)) from error
            address = parse_address(objects.url)
            storage = cls(objects, settings.prefix, Path(address.path) if address.scheme == "file" else None)
            storage.settings = settings
            storage._checked = objects.unretried
            storage._check_key = check_key(context.node_id, settings.prefix)
            storage._place = rsm_place(objects.url, settings.options.s3.endpoint_url)
            if address.scheme not in ("file", "memory"):
                storage.late_seconds = settings.options.patience.attempt_deadline
            if context.serves_clients and address.scheme != "memory":
                storage._copies = CopyProcess(settings, clock=context.clock)
            storage._stack = stack.pop_all()
        return storage

    @property
    def url(self) -> str:
        return self._objects.url

    async def copy_log_segment_data(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> bytes | None:
        await self._copies.copy(metadata, data)
        crash_point("remote.storage.after_log")
        return None

    async def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, start: int, length: int) -> Buffer:
        key = self._keys.log(metadata)
        wanted = max(min(length, metadata.segment_size_in_bytes - start), 0)
        with translated():
            data = await self._objects.get_range(key, start, wanted)
        if len(data) < wanted:
            raise RemoteStorageError(
                f"Object {key} in {self.url} ends at {start + len(data)}, but the segment has "
                f"{metadata.segment_size_in_bytes} bytes: it is damaged. Restore it from a copy, or delete its records."
            )
        return data

    async def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        with translated():
            return bytes(await self._objects.get(self._keys.index(metadata, index_type)))

    async def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        with translated():
            await self._objects.delete([self._keys.log(metadata)])
            crash_point("remote.storage.after_log_deleted")
            await self._objects.delete([self._keys.index(metadata, kind) for kind in IndexType])

    def log_segment_path(self, metadata: RemoteLogSegmentMetadata) -> Path | None:
        """See `LocalSegmentFiles`."""
        return self._directory / self._keys.log(metadata) if self._directory is not None else None

    async def check(self, *, writes: bool) -> None:
        """See `CheckedStorage`."""
        with translated(), advised(self._place):
            if writes:
                await check_writable(self._checked, self._check_key)
            else:
                await check_readable(self._checked, self._check_key)

    async def store_id(self) -> str | None:
        """The id that brokers have given to the storage; None if it has none. Raises RemoteStorageError."""
        with translated(), advised(self._place):
            return await store_id(self._objects, self._id_key)

    async def close(self) -> None:
        try:
            await self._copies.close()
        finally:
            await self._stack.aclose()

    def log_key(self, metadata: RemoteLogSegmentMetadata) -> str:
        """The key of the log of a segment."""
        return self._keys.log(metadata)

    def index_key(self, metadata: RemoteLogSegmentMetadata, kind: IndexType) -> str:
        """The key of one of its indexes."""
        return self._keys.index(metadata, kind)
