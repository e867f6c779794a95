"""The interface of an object store, and its errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


class ObjectStoreError(Exception):
    """The store refused a call. Base of all errors of this package; a retry does not help."""

    retriable: ClassVar[bool] = False


class ObjectStoreUnavailable(ObjectStoreError):
    """The store cannot be reached, throttles, or did not answer in time. A write may have happened."""

    retriable = True


class ObjectNotFound(ObjectStoreError):
    """There is no object under this key."""


class ObjectExists(ObjectStoreError):
    """There is an object under this key already, and the write asked for a new one."""


class ObjectStoreMisconfigured(ObjectStoreError):
    """The address, the credentials or the rights do not allow the use of the store."""


class NoSuchBucket(ObjectStoreMisconfigured):
    """The bucket that the address names does not exist."""


class AccessRefused(ObjectStoreMisconfigured):
    """The credentials are unknown, or do not have the rights that are needed."""


class ForeignStore(ObjectStoreMisconfigured):
    """The store belongs to another cluster, or does not say to which one."""


class WrongStore(ForeignStore):
    """The store is not the one that holds the objects of this cluster."""


class SourceUnreadable(ObjectStoreError):
    """The file to copy cannot be read, or changed meanwhile."""


class ObjectInfo(NamedTuple):
    """One line of a listing."""

    key: str
    size: int
    modified_ms: int


class ObjectRange(NamedTuple):
    """`length` bytes of an object, from `start` on."""

    key: str
    start: int
    length: int


class ObjectStore(Protocol):
    """A bucket with a prefix, or a directory. Every implementation passes tests/contracts/test_object_store.py.

    - keys are relative to the address of the store, with "/" between parts, never at the ends;
    - a write is atomic (readers see the whole object or none) and durable when it returns;
    - a write that raised ObjectStoreUnavailable may have taken effect; writing the same bytes again is harmless;
    - reads after a write see it; calls may run at the same time;
    - cancelling a call leaves the object whole or absent;
    - every call ends within the store's deadline, in an answer or in an ObjectStoreError.
    """

    @property
    def url(self) -> str:
        """The address, without credentials, for messages to people."""

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        """Write an object that consists of `parts`, one after the other. The parts must not change meanwhile."""

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        """Write an object that must not exist yet. Of several writers at once one succeeds. Raises ObjectExists."""

    async def put_file(self, key: str, path: Path) -> None:
        """Write an object that is a copy of a file, piece by piece. The file must not change meanwhile.

        The larger the file, the later the deadline. Raises SourceUnreadable.
        """

    async def get(self, key: str) -> Buffer:
        """The whole object. Raises ObjectNotFound."""

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        """`length` bytes from `start` on; fewer only at the end of the object. Raises ObjectNotFound."""

    @property
    def ranges_at_once(self) -> int:
        """How many small ranges one `get_ranges` should have: 1 where each is a request of its own."""

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        """An answer for each range, as `get_range` gives it. An error of one range is its answer, and harms no other.

        A list of several is tried once, and not for long: what has a retriable error, or is too short, is to be asked
        for again by itself.
        Made for many small objects: what they cost together is little more than one of them where the store is near.
        """

    def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        """Every object whose key begins with `prefix` and is greater than `after`, in the order of keys, in pages.

        `after` continues a listing where another one ended. Objects written or deleted meanwhile may be listed or not.
        A caller that does not read it to the end closes it: `async with aclosing(store.list(prefix)) as infos:`.
        """

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects. Keys without an object are ignored, so that a delete can be repeated."""


async def range_or_error(store: ObjectStore, wanted: ObjectRange) -> Buffer | ObjectStoreError:
    """One answer of `get_ranges` by `get_range`."""
    try:
        return await store.get_range(*wanted)
    except ObjectStoreError as error:
        return error
