"""Objects in S3, GCS or Azure, through obstore.

Nothing is retried here: the library's own retries are off, only `RetryingStore` retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import obstore
from obstore.exceptions import GenericError
from obstore.store import ObjectStore as LibraryStore

from strandline.objects.cloud.errors import LIBRARY_ERRORS, status_of, translate
from strandline.objects.keys import checked_key
from strandline.objects.source_file import SourceFile, size_of
from strandline.objects.store import (
    Buffer,
    ObjectInfo,
    ObjectRange,
    ObjectStoreError,
    ObjectStoreUnavailable,
    range_or_error,
)

_PAGE: Final = 1000
_RANGE_NOT_SATISFIABLE: Final = 416
# Fewer bytes are copied faster than a thread is reached.
_COPY_HERE: Final = 256 * 1024
# Files are uploaded in parts, and read in pieces. Copies of 32, 128 and 384 MiB took 17, 33 and 27 MiB of memory, in
# one run of each.
_PART: Final = 8 * 1024 * 1024
_MOST_PARTS: Final = 10_000
_PARTS_AT_ONCE: Final = 2
_PIECE: Final = 1024 * 1024


class CloudStore:
    """A bucket."""

    def __init__(self, store: LibraryStore, url: str) -> None:
        self._store, self._url = store, url

    @property
    def url(self) -> str:
        return self._url

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._put(key, parts, "overwrite")

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._put(key, parts, "create")

    async def put_file(self, key: str, path: Path) -> None:
        """Large files in parts. Some stores keep the parts of a failed upload, unlisted: let the bucket expire them."""
        size = size_of(path)
        if size <= _PART:
            await self.put(key, [await asyncio.to_thread(_whole, path)])
            return
        with self._translated(f"write object {checked_key(key)} to"):
            await obstore.put_async(
                self._store,
                key,
                _pieces(path, size),
                use_multipart=True,
                chunk_size=max(_PART, -(-size // _MOST_PARTS)),
                max_concurrency=_PARTS_AT_ONCE,
            )

    async def get(self, key: str) -> Buffer:
        with self._translated(f"read object {checked_key(key)} from"):
            result = await obstore.get_async(self._store, key)
            data = memoryview(await result.bytes_async())
        self._check_size(key, data, result.meta["size"])
        return data

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        if start < 0 or length < 0:
            raise ObjectStoreError(f"Object {key} has no {length} bytes from {start} on: neither may be negative.")
        with self._translated(f"read object {checked_key(key)} from"):
            if length == 0:
                await obstore.head_async(self._store, key)
                return b""
            try:
                result = await obstore.get_async(self._store, key, options={"range": (start, start + length)})
            except GenericError as error:
                # Some stores refuse a range that begins at or behind the end of the object, in many wordings.
                if status_of(error) not in (None, _RANGE_NOT_SATISFIABLE):
                    raise
                if start < (await obstore.head_async(self._store, key))["size"]:
                    raise
                return b""
            data = memoryview(await result.bytes_async())
        self._check_size(key, data, min(length, result.meta["size"] - start))
        return data

    @property
    def ranges_at_once(self) -> int:
        return 1

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        return await asyncio.gather(*(range_or_error(self, wanted) for wanted in ranges))

    async def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        # The library lists only by prefixes that end with a slash.
        directory = prefix.rpartition("/")[0]
        last = after
        with self._translated(f"list objects {prefix}* of"):
            pages = obstore.list(self._store, directory or None, offset=after or None, chunk_size=_PAGE)
            async for page in pages:
                for meta in page:
                    key = meta["path"]
                    if key.startswith(prefix):
                        if key <= last:
                            raise ObjectStoreError(f"{self._url} lists {key} after {last}: it does not sort by key.")
                        last = key
                        yield ObjectInfo(key, meta["size"], int(meta["last_modified"].timestamp() * 1000))
                    elif key > prefix:
                        return

    async def delete(self, keys: Sequence[str]) -> None:
        for first in range(0, len(keys), _PAGE):
            page = [checked_key(key) for key in keys[first : first + _PAGE]]
            with self._translated(f"delete {len(page)} objects, among them {page[0]}, from"):
                try:
                    await obstore.delete_async(self._store, page)
                except FileNotFoundError:  # stores without bulk deletes stop at the first key that is missing
                    await self._delete_one_by_one(page)

    async def _delete_one_by_one(self, keys: Sequence[str]) -> None:
        for key in keys:
            try:
                await obstore.delete_async(self._store, key)
            except FileNotFoundError:
                continue

    async def _put(self, key: str, parts: Sequence[Buffer], mode: Literal["create", "overwrite"]) -> None:
        with self._translated(f"write object {checked_key(key)} to"):
            data = await _joined(parts)
            await obstore.put_async(self._store, key, data, mode=mode, use_multipart=False)

    def _check_size(self, key: str, data: Buffer, size: int) -> None:
        if len(data) != size:
            raise ObjectStoreUnavailable(f"{self._url} answered {len(data)} of {size} bytes of object {key}.")

    @contextmanager
    def _translated(self, action: str) -> Iterator[None]:
        try:
            yield
        except LIBRARY_ERRORS as error:
            raise translate(error, action, self._url) from error


async def _joined(parts: Sequence[Buffer]) -> Buffer:
    """One buffer for all parts. The library could take them one by one, but takes the interpreter lock for each.

    A single part is copied, too, if it can change: after a cancelled call the library may still read it.
    """
    if len(parts) == 1 and isinstance(parts[0], bytes):
        return parts[0]
    if sum(len(part) for part in parts) < _COPY_HERE:
        return b"".join(parts)
    return await asyncio.to_thread(_copied, parts)


def _copied(parts: Sequence[Buffer]) -> bytearray:
    """Part by part, so that other threads can run in between."""
    joined = bytearray()
    for part in parts:
        joined += part
    return joined


def _whole(path: Path) -> bytearray:
    with SourceFile(path) as source:
        return source.read(0, source.size)


def _pieces(path: Path, size: int) -> Iterator[bytearray]:
    """The bytes of a file, read by a thread of the library. The file stays open until that thread is done."""
    with SourceFile(path) as source:
        for position in range(0, size, _PIECE):
            yield source.read(position, min(_PIECE, size - position))
