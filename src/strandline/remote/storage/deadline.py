"""Deadlines and counters for the calls to a remote storage.

An upload that never returns must not stop its partition for good, nor unseen: the caller gets an error at the deadline,
and the age of the oldest running call is a metric.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from strandline.clock import Clock
from strandline.health import READS, WRITES, Health
from strandline.model import uuid_to_text
from strandline.objects.store import Buffer
from strandline.remote.ports import (
    CheckedStorage,
    LateWrites,
    LocalSegmentFiles,
    RemoteResourceNotFound,
    RemoteStorageError,
    RemoteStorageManager,
)
from strandline.remote.values import IndexType, LogSegmentData, RemoteLogSegmentMetadata

T = TypeVar("T")

logger = logging.getLogger(__name__)

OPERATIONS: Final = ("copy", "fetch", "fetch_index", "delete")
_KINDS: Final = {"copy": WRITES, "fetch": READS, "fetch_index": READS, "delete": "deletes"}
# Seconds that a cancelled call has to end before its caller gets the error without it.
_GRACE: Final = 1.0
# A check that takes longer is shown, although it may still be answered.
_SLOW: Final = 5.0
# Calls that ignore their cancellation: beyond this many, new calls are refused.
_MOST_STUCK: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageDeadlines:
    """Seconds within which a call ends. Longer than the deadlines of the storage itself: these are the last resort."""

    copy: float = 90.0
    """Without the time for the bytes of the segment."""
    fetch: float = 60.0
    delete: float = 90.0
    check: float = 10.0
    slowest_bytes_per_second: int = 1024 * 1024
    """A copy gets as much additional time as its bytes take at this rate."""


@dataclass(frozen=True, slots=True)
class StorageOperationStatus:
    """One operation since the storage was opened."""

    calls: int
    errors: int
    timeouts: int
    """Errors that were calls past their deadline."""
    bytes: int
    """Of segments (copy, fetch) and indexes, in successful calls."""
    seconds: float
    """Total duration of ended calls."""
    pending: int
    """Running calls, including those past their deadline."""
    oldest_pending_seconds: float
    oldest_pending: str | None
    """The segment of the oldest running call."""


@dataclass(frozen=True, slots=True)
class RemoteStorageStatus:
    """The calls to a storage since it was opened."""

    url: str
    operations: dict[str, StorageOperationStatus]
    oldest_pending_seconds: float
    stuck: int
    """Calls that run on after their deadline although they were cancelled."""


class _Running(NamedTuple):
    start: float
    segment: RemoteLogSegmentMetadata


@dataclass(slots=True)
class _StorageOperation:
    calls: int = 0
    errors: int = 0
    timeouts: int = 0
    bytes: int = 0
    seconds: float = 0.0
    running: dict[int, _Running] = field(default_factory=dict)  # in the order of starting


class DeadlineStorage:
    """Any storage, with deadlines and counters. Errors of any kind come out as RemoteStorageError."""

    def __init__(self, storage: RemoteStorageManager, deadlines: StorageDeadlines, *, clock: Clock) -> None:
        self._storage, self._deadlines, self._clock = storage, deadlines, clock
        self.health = Health("remote", "the remote storage of tiered topics", storage.url, clock, hangs_after=_SLOW)
        """Whether the storage answers, as far as its calls and checks have shown."""
        self.why_not: Callable[[], RemoteStorageError | None] = lambda: None
        """The error for every call while the storage must not be used."""
        self._operations = {name: _StorageOperation() for name in OPERATIONS}
        self._numbers = itertools.count()
        self._stuck: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        return self._storage.url

    @property
    def inner(self) -> RemoteStorageManager:
        """The storage behind the deadlines."""
        return self._storage

    def status(self) -> RemoteStorageStatus:
        """The numbers as they are now."""
        now = self._clock.monotonic()
        operations = {name: _frozen(operation, now) for name, operation in self._operations.items()}
        return RemoteStorageStatus(
            url=self.url,
            operations=operations,
            oldest_pending_seconds=max(operation.oldest_pending_seconds for operation in operations.values()),
            stuck=len(self._stuck),
        )

    async def copy_log_segment_data(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> bytes | None:
        longer = metadata.segment_size_in_bytes / self._deadlines.slowest_bytes_per_second
        custom = await self._call(
            "copy", metadata, self._deadlines.copy + longer, lambda: self._storage.copy_log_segment_data(metadata, data)
        )
        self._operations["copy"].bytes += metadata.segment_size_in_bytes
        return custom

    async def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, start: int, length: int) -> Buffer:
        data = await self._call(
            "fetch", metadata, self._deadlines.fetch, lambda: self._storage.fetch_log_segment(metadata, start, length)
        )
        self._operations["fetch"].bytes += len(data)
        return data

    async def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        data = await self._call(
            "fetch_index", metadata, self._deadlines.fetch, lambda: self._storage.fetch_index(metadata, index_type)
        )
        self._operations["fetch_index"].bytes += len(data)
        return data

    async def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        await self._call(
            "delete", metadata, self._deadlines.delete, lambda: self._storage.delete_log_segment_data(metadata)
        )

    def log_segment_path(self, metadata: RemoteLogSegmentMetadata) -> Path | None:
        """See `LocalSegmentFiles`. Opening such a file is quick and not counted."""
        if not isinstance(self._storage, LocalSegmentFiles) or self.why_not() is not None:
            return None
        return self._storage.log_segment_path(metadata)

    @property
    def late_seconds(self) -> float:
        """See `LateWrites`."""
        return self._storage.late_seconds if isinstance(self._storage, LateWrites) else 0.0

    @property
    def is_checkable(self) -> bool:
        """Whether the storage is a `CheckedStorage`."""
        return isinstance(self._storage, CheckedStorage)

    async def check(self, *, writes: bool) -> None:
        """See `CheckedStorage`; a storage that cannot be checked passes. Not counted. Raises RemoteStorageError."""
        storage = self._storage
        if not isinstance(storage, CheckedStorage):
            return
        work: asyncio.Task[None] = asyncio.ensure_future(_awaited(lambda: storage.check(writes=writes)))
        if not await self._ended(work, self._deadlines.check):
            raise RemoteStorageError(
                f"The remote storage {self.url} did not answer a check within {self._deadlines.check:g} seconds."
            )
        try:
            work.result()
        except RemoteStorageError:
            raise
        except Exception as error:
            raise RemoteStorageError(f"The check of the remote storage {self.url} failed: {error!r}.") from error

    async def close(self) -> None:
        """Close the storage, within the deadline of a fetch."""
        work = asyncio.ensure_future(_awaited(self._storage.close))
        if not await self._ended(work, self._deadlines.fetch):
            logger.warning("remote storage %s did not close within its deadline", self.url)
            return
        try:
            work.result()
        except Exception:  # a plugin may raise anything, and the broker stops all the same
            logger.exception("closing remote storage %s failed", self.url)

    async def _call(
        self, name: str, metadata: RemoteLogSegmentMetadata, seconds: float, call: Callable[[], Awaitable[T]]
    ) -> T:
        operation = self._operations[name]
        if (refusal := self.why_not()) is not None:
            operation.errors += 1
            raise refusal
        if len(self._stuck) >= _MOST_STUCK:
            operation.errors += 1
            raise RemoteStorageError(
                f"{len(self._stuck)} calls to the remote storage {self.url} hang and ignore their cancellation: no "
                "more calls are made until they end. Restart the broker if they never do."
            )
        work: asyncio.Task[T] = asyncio.ensure_future(_awaited(call))
        self._count(operation, work, metadata)
        try:
            if await self._ended(work, seconds):
                result = work.result()
                self.health.answered(_KINDS[name])
                return result
        except RemoteStorageError as error:
            self._failed(name, error)
            raise
        except Exception as error:
            raise self._failed(
                name, RemoteStorageError(f"{_action(name, metadata)} {self.url} failed: {error!r}.")
            ) from error
        operation.timeouts += 1
        raise self._failed(
            name,
            RemoteStorageError(f"{_action(name, metadata)} {self.url} did not end within {seconds:.0f} seconds."),
        )

    def _failed(self, name: str, error: RemoteStorageError) -> RemoteStorageError:
        self._operations[name].errors += 1
        if isinstance(error, RemoteResourceNotFound):
            self.health.answered(_KINDS[name])
        else:
            self.health.failed(str(error), _KINDS[name])
        return error

    async def _ended(self, work: asyncio.Task[Any], seconds: float) -> bool:
        """Whether the work ended in time. If not, it is cancelled; if it ignores that, it counts as stuck."""
        alarm = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            either: set[asyncio.Task[Any]] = {work, alarm}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return work.done()
        finally:
            alarm.cancel()
            if not work.done():
                await self._end(work)

    async def _end(self, work: asyncio.Task[Any]) -> None:
        work.cancel()
        self._stuck.add(work)
        work.add_done_callback(self._unstuck)
        grace = asyncio.ensure_future(self._clock.sleep(_GRACE))
        try:
            either: set[asyncio.Task[Any]] = {work, grace}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            grace.cancel()

    def _unstuck(self, work: asyncio.Task[Any]) -> None:
        self._stuck.discard(work)
        if not work.cancelled():
            work.exception()  # its caller got the deadline error already

    def _count(self, operation: _StorageOperation, work: asyncio.Task[Any], metadata: RemoteLogSegmentMetadata) -> None:
        number, start = next(self._numbers), self._clock.monotonic()
        operation.calls += 1
        operation.running[number] = _Running(start, metadata)

        def ended(_: asyncio.Task[Any]) -> None:
            del operation.running[number]
            operation.seconds += self._clock.monotonic() - start

        work.add_done_callback(ended)


async def _awaited(call: Callable[[], Awaitable[T]]) -> T:
    """Runs the whole call inside the task: a plugin may fail before its first await."""
    return await call()


def _frozen(operation: _StorageOperation, now: float) -> StorageOperationStatus:
    oldest = next(iter(operation.running.values()), None)
    return StorageOperationStatus(
        calls=operation.calls,
        errors=operation.errors,
        timeouts=operation.timeouts,
        bytes=operation.bytes,
        seconds=operation.seconds,
        pending=len(operation.running),
        oldest_pending_seconds=now - oldest.start if oldest else 0.0,
        oldest_pending=_named(oldest.segment) if oldest else None,
    )


def _named(metadata: RemoteLogSegmentMetadata) -> str:
    return (
        f"{metadata.partition.topic_partition} offsets {metadata.start_offset} to {metadata.end_offset} "
        f"(segment {uuid_to_text(metadata.segment_id.id)})"
    )


def _action(name: str, metadata: RemoteLogSegmentMetadata) -> str:
    verb = {"copy": "Copying", "fetch": "Reading", "fetch_index": "Reading an index of", "delete": "Deleting"}[name]
    return f"{verb} {_named(metadata)} {'to' if name == 'copy' else 'from'}"
