"""Counts the requests to a store: for metrics, and to compute what a gigabyte costs."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strandline.clock import Clock
from strandline.health import READS, WRITES, Health
from strandline.objects.source_file import size_of
from strandline.objects.store import (
    Buffer,
    ObjectExists,
    ObjectInfo,
    ObjectNotFound,
    ObjectRange,
    ObjectStore,
    ObjectStoreError,
    SourceUnreadable,
)

# A full disk takes no object, and deletes as before.
DELETES: Final = "deletes"
_KINDS: Final = {"get": READS, "get_range": READS, "list": READS, "delete": DELETES}
# The store answered; the answer concerns one request only.
_ANSWERS: Final = (ObjectNotFound, ObjectExists)

OPERATIONS: Final = ("put", "put_new", "put_file", "get", "get_range", "list", "delete")


@dataclass(frozen=True, slots=True)
class OperationStatus:
    """One operation since the store was opened."""

    calls: int
    """Attempts that were sent, also those that failed, were cancelled or still run. Of a listing: listings begun."""
    errors: int
    bytes: int
    """Bytes of objects, in calls that succeeded."""
    seconds: float
    """The total time of finished calls."""
    pending: int
    oldest_pending_seconds: float
    """How long the oldest unfinished call has been running: a call that never returns shows here."""


@dataclass(frozen=True, slots=True)
class ObjectStoreStatus:
    """All operations since the store was opened."""

    url: str
    operations: dict[str, OperationStatus]
    retries: int
    hedges: int
    """Reads that were sent a second time because the first answer was late."""
    hedges_won: int
    """Hedges whose answer came before the first one."""


@dataclass(slots=True)
class _Operation:
    calls: int = 0
    errors: int = 0
    bytes: int = 0
    seconds: float = 0.0
    started: dict[int, float] = field(default_factory=dict)  # in the order of starting


class Traffic:
    """The counters that the wrappers of one store share."""

    def __init__(self, clock: Clock, health: Health) -> None:
        self._clock, self._health = clock, health
        self._numbers = itertools.count()
        self._operations = {name: _Operation() for name in OPERATIONS}
        self.retries = 0
        self.hedges = 0
        self.hedges_won = 0

    @contextmanager
    def call(self, operation: str, *, times: int = 1) -> Iterator[list[ObjectStoreError]]:
        """Count one call, which is the block, or several that are made together: those that fail go to the list."""
        self._operations[operation].calls += times
        with self._waiting(operation) as failures:
            yield failures

    async def listing(self, infos: AsyncGenerator[ObjectInfo, None]) -> AsyncGenerator[ObjectInfo, None]:
        """Count a listing. Only the time of waiting for the store is counted, not the time of the consumer."""
        self._operations["list"].calls += 1
        async with aclosing(infos):
            while True:
                with self._waiting("list"):
                    info = await anext(infos, None)
                if info is None:
                    return
                yield info

    @contextmanager
    def _waiting(self, operation: str) -> Iterator[list[ObjectStoreError]]:
        counts, number, start = self._operations[operation], next(self._numbers), self._clock.monotonic()
        counts.started[number] = start
        kind = _KINDS.get(operation, WRITES)
        failures: list[ObjectStoreError] = []
        try:
            yield failures
        except ObjectStoreError as error:
            failures = [error]
            raise
        else:
            if not failures:
                self._health.answered(kind)
        finally:
            self._count_failures(counts, kind, failures)
            del counts.started[number]
            counts.seconds += self._clock.monotonic() - start

    def _count_failures(self, counts: _Operation, kind: str, failures: Sequence[ObjectStoreError]) -> None:
        counts.errors += len(failures)
        for error in failures:
            if isinstance(error, _ANSWERS):
                self._health.answered(kind)
            elif not isinstance(error, SourceUnreadable):
                self._health.failed(str(error), kind)

    def moved(self, operation: str, size: int) -> None:
        """Add the bytes of a call that succeeded."""
        self._operations[operation].bytes += size

    def status(self, url: str) -> ObjectStoreStatus:
        """The counters so far."""
        now = self._clock.monotonic()
        return ObjectStoreStatus(
            url=url,
            operations={name: _frozen(counts, now) for name, counts in self._operations.items()},
            retries=self.retries,
            hedges=self.hedges,
            hedges_won=self.hedges_won,
        )


def _frozen(counts: _Operation, now: float) -> OperationStatus:
    oldest = next(iter(counts.started.values()), now)
    return OperationStatus(
        calls=counts.calls,
        errors=counts.errors,
        bytes=counts.bytes,
        seconds=counts.seconds,
        pending=len(counts.started),
        oldest_pending_seconds=now - oldest,
    )


class CountingStore:
    """A store that counts every request that reaches the one below it."""

    def __init__(self, store: ObjectStore, traffic: Traffic) -> None:
        self._store, self._traffic = store, traffic

    @property
    def url(self) -> str:
        return self._store.url

    def status(self) -> ObjectStoreStatus:
        """The counters so far."""
        return self._traffic.status(self.url)

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        with self._traffic.call("put"):
            await self._store.put(key, parts)
        self._traffic.moved("put", total_size(parts))

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        with self._traffic.call("put_new"):
            await self._store.put_new(key, parts)
        self._traffic.moved("put_new", total_size(parts))

    async def put_file(self, key: str, path: Path) -> None:
        with self._traffic.call("put_file"):
            await self._store.put_file(key, path)
        self._traffic.moved("put_file", size_of(path))

    async def get(self, key: str) -> Buffer:
        with self._traffic.call("get"):
            data = await self._store.get(key)
        self._traffic.moved("get", len(data))
        return data

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        with self._traffic.call("get_range"):
            data = await self._store.get_range(key, start, length)
        self._traffic.moved("get_range", len(data))
        return data

    @property
    def ranges_at_once(self) -> int:
        return self._store.ranges_at_once

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        """Each range counts as a call of `get_range`, since that is what stores charge for."""
        with self._traffic.call("get_range", times=len(ranges)) as failures:
            answers = await self._store.get_ranges(ranges)
            failures += [answer for answer in answers if isinstance(answer, ObjectStoreError)]
        self._traffic.moved("get_range", sum(len(one) for one in answers if not isinstance(one, ObjectStoreError)))
        return answers

    def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        return self._traffic.listing(self._store.list(prefix, after=after))

    async def delete(self, keys: Sequence[str]) -> None:
        with self._traffic.call("delete"):
            await self._store.delete(keys)


def total_size(parts: Sequence[Buffer]) -> int:
    """Bytes of an object that consists of `parts`."""
    return sum(len(part) for part in parts)
