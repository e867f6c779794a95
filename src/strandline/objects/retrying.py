"""Retries calls that may succeed the next time, with deadlines, and detects answers that are too short.

The size of an object is not known here. An answer to a ranged read that is shorter than asked for is right only at the
end of the object, so one more byte is asked for behind it: if there is one, the answer was cut short and counts as a
failed attempt. Readers that know the size of their object never ask beyond its end and never cause that extra request.
An answer to `get` is compared, by the store itself, with the size that came with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, TypeVar

from strandline.clock import Chance, Clock, within
from strandline.objects.counting import ObjectStoreStatus, Traffic
from strandline.objects.options import Patience
from strandline.objects.source_file import size_of
from strandline.objects.store import (
    Buffer,
    ObjectExists,
    ObjectInfo,
    ObjectRange,
    ObjectStore,
    ObjectStoreError,
    ObjectStoreUnavailable,
    range_or_error,
)

T = TypeVar("T")

_PAGE: Final = 1000
_MICROSECONDS: Final = 1_000_000
_NO_ANSWER: Final = ObjectStoreUnavailable("The store did not answer in time.")


class RetryingStore:
    """A store whose calls are retried, and end within a deadline.

    Between attempts it waits a random time below a limit that doubles ("full jitter"), so that brokers that failed
    together do not retry together.
    """

    def __init__(
        self, store: ObjectStore, patience: Patience, *, clock: Clock, chance: Chance, traffic: Traffic
    ) -> None:
        self._store, self._patience = store, patience
        self._clock, self._chance, self._traffic = clock, chance, traffic

    @property
    def url(self) -> str:
        return self._store.url

    @property
    def unretried(self) -> ObjectStore:
        """The same store; every call is one attempt, without a deadline."""
        return self._store

    def status(self) -> ObjectStoreStatus:
        """The counters so far. Each attempt counts as a call."""
        return self._traffic.status(self.url)

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._persist(f"Writing object {key} to", lambda: self._store.put(key, parts))

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        attempts = 0

        async def attempt() -> None:
            nonlocal attempts
            attempts += 1
            try:
                await self._store.put_new(key, parts)
            except ObjectExists:
                # An earlier attempt of ours may have written it, with its answer lost.
                if attempts == 1 or not await self._holds(key, parts):
                    raise

        await self._persist(f"Writing object {key} to", attempt)

    async def put_file(self, key: str, path: Path) -> None:
        await self._persist(
            f"Writing object {key} to",
            lambda: self._store.put_file(key, path),
            longer=size_of(path) / self._patience.slowest_copy,
        )

    async def get(self, key: str) -> Buffer:
        return await self._persist(f"Reading object {key} from", lambda: self._store.get(key))

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        return await self._persist(f"Reading object {key} from", lambda: self._whole_range(key, start, length))

    @property
    def ranges_at_once(self) -> int:
        return self._store.ranges_at_once

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        """One range is retried like any other call. A list is one attempt: in its answers a retriable error stands for
        what failed for a reason that may pass, or did not come in time."""
        if len(ranges) == 1:
            return [await range_or_error(self, ranges[0])]
        patience = min(self._patience.list_deadline, self._patience.attempt_deadline)
        try:
            return await within(self._clock, patience, self._store.get_ranges(ranges))
        except (TimeoutError, ObjectStoreUnavailable):
            return [_NO_ANSWER] * len(ranges)

    async def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        """When a page fails, a new listing continues after the last page that arrived."""
        async with aclosing(_PagedListing(self._store, prefix, after)) as listing:
            while page := await self._persist(f"Listing objects {prefix}* of", listing.next_page):
                for info in page:
                    yield info

    async def delete(self, keys: Sequence[str]) -> None:
        """Page by page: a retry does not repeat pages that are deleted already."""
        for first in range(0, len(keys), _PAGE):
            page = keys[first : first + _PAGE]
            await self._persist(
                f"Deleting {len(page)} objects, among them {page[0]}, from",
                lambda: self._store.delete(page),  # noqa: B023
            )

    async def _persist(
        self,
        action: str,
        attempt: Callable[[], Coroutine[Any, Any, T]],
        *,
        longer: float = 0.0,
    ) -> T:
        """Try until an attempt succeeds or fails for good, or until attempts or time run out.

        `longer` is added to the time.
        """
        patience = self._patience
        end = self._clock.monotonic() + patience.deadline + longer
        number = 1
        while True:
            left = end - self._clock.monotonic()
            try:
                return await within(self._clock, min(left, patience.attempt_deadline + longer), attempt())
            except TimeoutError as error:
                failure = ObjectStoreUnavailable("The store did not answer in time.")
                failure.__cause__ = error
            except ObjectStoreUnavailable as error:
                failure = error
            pause = self._pause(number)
            if number == patience.attempts or self._clock.monotonic() + pause >= end:
                raise ObjectStoreUnavailable(
                    f"{action} {self.url} failed {number} times. The last error: {failure}"
                ) from failure
            await self._clock.sleep(pause)
            self._traffic.retries += 1
            number += 1

    def _pause(self, failures: int) -> float:
        limit = min(self._patience.longest_backoff, self._patience.backoff * 2 ** (failures - 1))
        return self._chance.below(int(limit * _MICROSECONDS)) / _MICROSECONDS

    async def _whole_range(self, key: str, start: int, length: int) -> Buffer:
        data = await self._store.get_range(key, start, length)
        if len(data) > length or (
            len(data) < length and len(await self._store.get_range(key, start + len(data), 1)) > 0
        ):
            raise ObjectStoreUnavailable(
                f"{self.url} answered {len(data)} bytes of object {key}; {length} from {start} on were asked for."
            )
        return data

    async def _holds(self, key: str, parts: Sequence[Buffer]) -> bool:
        """True if the object consists of these parts. Callers that must tell writers apart write unique bytes."""
        data = await self._store.get(key)
        return await asyncio.to_thread(lambda: bytes(data) == b"".join(parts))


class _PagedListing:
    """The pages of a listing. A page that failed can be asked for again; keys that arrived are not repeated."""

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
            if not arrived:  # cancelled or failed: the generator cannot go on
                await self.aclose()
        if page:
            self._after = page[-1].key
        return page

    async def aclose(self) -> None:
        """End the listing."""
        infos, self._infos = self._infos, None
        if infos is not None:
            await infos.aclose()
