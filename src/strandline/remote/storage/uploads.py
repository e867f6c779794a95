"""Copies a segment into an object store, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from strandline.crash import crash_point
from strandline.objects import ObjectNotFound, ObjectStore, ObjectStoreError
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError
from strandline.remote.storage.names import SegmentKeys
from strandline.remote.values import IndexType, LogSegmentData, RemoteLogSegmentMetadata


class SegmentCopies(Protocol):
    """Copies segments with their indexes into objects, here or in a process of its own."""

    async def copy(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> None:
        """All of it is durable when this returns. A cancelled copy writes nothing more. Raises RemoteStorageError."""

    async def close(self) -> None:
        """End the copies under way."""


class ObjectCopies:
    """Copies into a store that is open already.

    The log is the last object that is written: a segment with a log is complete.
    """

    def __init__(self, objects: ObjectStore, keys: SegmentKeys) -> None:
        self._objects, self._keys = objects, keys

    async def copy(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> None:
        files = {
            IndexType.OFFSET: data.offset_index,
            IndexType.TIMESTAMP: data.time_index,
            IndexType.TRANSACTION: data.transaction_index,
            IndexType.PRODUCER_SNAPSHOT: data.producer_snapshot_index,
        }
        with translated():
            try:
                async with asyncio.TaskGroup() as writes:
                    for kind, path in files.items():
                        if path is not None:
                            writes.create_task(self._objects.put_file(self._keys.index(metadata, kind), path))
                    epochs = self._keys.index(metadata, IndexType.LEADER_EPOCH)
                    writes.create_task(self._objects.put(epochs, [data.leader_epoch_index]))
            except* ObjectStoreError as errors:
                raise _first(errors) from errors
            crash_point("remote.storage.after_indexes")
            await self._objects.put_file(self._keys.log(metadata), data.log_segment)

    async def close(self) -> None:
        """Nothing to do: the caller that opened the store closes it."""


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the object store as those of a remote storage."""
    try:
        yield
    except ObjectNotFound as error:
        raise RemoteResourceNotFound(str(error)) from error
    except ObjectStoreError as error:
        raise RemoteStorageError(str(error)) from error


def _first(errors: ExceptionGroup[ObjectStoreError]) -> ObjectStoreError:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, ObjectStoreError)
    return found
