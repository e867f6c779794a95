"""One ShareFetch request until it is answered: reading for a member, and waiting for records to acquire.

A request reads a partition only while no other request of its group does. It waits while there is nothing to acquire,
or fewer bytes than the client wants; what it has acquired is sent at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from strandline.clock import Clock, within
from strandline.coordinators.share import SharePartitionKey
from strandline.errors import OffsetOutOfRange, StrandlineError
from strandline.hybrid.partition import FinalRead, PendingRead
from strandline.model import Offset
from strandline.reads import EARLIEST, FetchIsolation, ReadResult
from strandline.records.slices import MemorySlices
from strandline.server.memory import AnswerMemory, ReadGrant
from strandline.sharing.delivery import AcquiredBatch
from strandline.sharing.partition import SharePartition
from strandline.sharing.partitions import SharePartitions
from strandline.sharing.reading import SharedRecords
from strandline.sharing.sessions import SharePlace, ShareSession
from strandline.wire.messages.share_fetch import ShareFetchRequest

# How much is read of a partition at a time: a member gets few records by count, however many bytes it allows.
READ_BYTES: Final = 4 * 1024 * 1024
# How long a request waits for records in an object store if it would have nothing else to answer with.
SLOW_READ_SECONDS: Final = 10.0
_RECORD_LIMIT_MODE: Final = 1


@dataclass(slots=True)
class Shared:
    """What the answer says about one partition."""

    error: StrandlineError | None = None
    records: bytes = b""
    acquired: list[AcquiredBatch] = field(default_factory=list)


@dataclass(slots=True)
class _ShareReading:
    """A partition that this request reads."""

    place: SharePlace
    share: SharePartition
    offset: Offset


class SharePoll:
    """Serves one request. A `Watcher` of its partitions and of the memory for answers."""

    def __init__(
        self,
        shares: SharePartitions,
        session: ShareSession,
        request: ShareFetchRequest,
        *,
        clock: Clock,
        memory: AnswerMemory,
        max_bytes: int,
    ) -> None:
        self._shares, self._session, self._request = shares, session, request
        self._clock, self._memory, self._grant = clock, memory, ReadGrant(memory)
        self._config = shares.config_of(session.key.group_id)
        self._max_bytes = min(request.max_bytes, max_bytes)
        self._isolation = (
            FetchIsolation.TXN_COMMITTED if self._config.reads_committed else FetchIsolation.HIGH_WATERMARK
        )
        self._deadline = clock.monotonic() + request.max_wait_ms / 1000
        self._news = asyncio.Event()
        self._used: dict[SharePlace, SharePartition] = {}

    def notify(self) -> None:
        """There may be something to acquire, or memory to read it."""
        self._news.set()

    async def run(self) -> dict[SharePlace, Shared]:
        """What was acquired, and errors. Partitions without either are left out."""
        if not self._session.places or self._request.max_records <= 0 or self._max_bytes <= 0:
            return {}
        try:
            while True:
                self._news.clear()
                found, errors = await self._look()
                left = self._deadline - self._clock.monotonic()
                if found or len(errors) == len(self._session.places) or left <= 0 or not self._is_wanted():
                    return {place: Shared(error) for place, error in errors.items()} | found
                await self._clock.wait_set(self._news, within=left)
        finally:
            self._stop_watching()

    def _is_wanted(self) -> bool:
        """Whether the member still has this session: records would be locked for nobody."""
        return self._shares.sessions.peek(self._session.key) is self._session

    def _stop_watching(self) -> None:
        for share in self._used.values():
            share.unwatch(self)
            share.served.unwatch(self)
        self._memory.unwatch(self)
        self._grant.give_back()

    # Looking

    async def _look(self) -> tuple[dict[SharePlace, Shared], dict[SharePlace, StrandlineError]]:
        errors: dict[SharePlace, StrandlineError] = {}
        ready: list[_ShareReading] = []
        for place in self._session.places:
            try:
                share = self._use(place)
                if share.is_fetching:
                    share.turn_away(self)
                offset = share.next_offset() if share.is_loaded and not share.is_fetching else None
            except StrandlineError as error:
                errors[place] = error
                continue
            if offset is not None:
                ready.append(_ShareReading(place, share, offset))
        if not ready or not self._has_enough(ready):
            return {}, errors
        granted = self._grant.take(min(self._max_bytes, len(ready) * READ_BYTES))
        if not granted:
            self._memory.watch(self)
            return {}, errors
        for reading in ready:
            reading.share.is_fetching = True
        try:
            found = await self._read(ready, granted, errors)
        finally:
            for reading in ready:
                reading.share.end_fetch(self)
        if not found:
            self._grant.give_back()  # who waits for records needs no memory for them
        return found, errors

    def _use(self, place: SharePlace) -> SharePartition:
        """Raises StrandlineError. One that has failed is not tried again for the same request."""
        key = SharePartitionKey(self._session.key.group_id, *place)
        used = self._used.get(place)
        if used is None or used.failure is None:
            share = self._shares.use(key)
            if share is not used:
                if used is not None:
                    used.unwatch(self)
                    used.served.unwatch(self)
                self._used[place] = used = share
                share.watch(self)
                share.served.watch(self)
        if used.failure is not None:
            raise used.failure
        return used

    def _has_enough(self, ready: Sequence[_ShareReading]) -> bool:
        """Whether there may be as many bytes as the client wants, or it has waited long enough."""
        wanted = min(self._request.min_bytes, self._max_bytes)
        if wanted <= 1 or self._clock.monotonic() >= self._deadline:
            return True
        found = 0
        for reading in ready:
            size = reading.share.served.available_bytes(reading.offset, self._isolation)
            if size is None:
                return True
            found += size
        return found >= wanted

    # Reading

    async def _read(
        self, ready: Sequence[_ShareReading], max_bytes: int, errors: dict[SharePlace, StrandlineError]
    ) -> dict[SharePlace, Shared]:
        results = await self._results(ready, max_bytes)
        found: dict[SharePlace, Shared] = {}
        left = self._request.max_records
        for reading, result in zip(ready, results, strict=True):
            if left <= 0:
                break
            try:
                shared = await self._acquire(reading, result, left)
            except StrandlineError as error:
                errors[reading.place] = error
                continue
            if shared.acquired:
                found[reading.place] = shared
                left -= sum(last - first + 1 for first, last, _ in shared.acquired)
        return found

    async def _results(
        self, ready: Sequence[_ShareReading], max_bytes: int
    ) -> list[ReadResult | StrandlineError | None]:
        """A result for each partition; None if its records did not come in time."""
        share_of_each = max(max_bytes // len(ready), 1)
        results: list[ReadResult | StrandlineError | None] = []
        pending: dict[int, PendingRead] = {}
        for at, reading in enumerate(ready):
            try:
                found = reading.share.served.read_now(
                    reading.offset, share_of_each, isolation=self._isolation, min_one_message=True
                )
            except StrandlineError as error:
                results.append(error)
                continue
            if isinstance(found, PendingRead):
                pending[at] = found
                results.append(None)
            else:
                results.append(found.result if isinstance(found, FinalRead) else found)
        if pending:
            answers = await self._read_slowly(list(pending.values()), share_of_each * len(pending))
            for at, answer in zip(pending, answers, strict=False):
                results[at] = answer
        return results

    async def _read_slowly(
        self, pending: Sequence[PendingRead], max_bytes: int
    ) -> Sequence[ReadResult | StrandlineError]:
        left = max(self._deadline - self._clock.monotonic(), SLOW_READ_SECONDS)
        read = self._shares.partitions.read(
            pending, max_bytes=max_bytes, min_one_message=True, is_wanted=self._is_wanted
        )
        try:
            return await within(self._clock, left, read)
        except TimeoutError:
            return ()

    async def _acquire(self, reading: _ShareReading, result: ReadResult | StrandlineError | None, left: int) -> Shared:
        share, request = reading.share, self._request
        if isinstance(result, OffsetOutOfRange):
            await self._follow_start(reading)
            return Shared()
        if isinstance(result, StrandlineError):
            raise result
        if result is None or result.records is None or not result.records.length:
            return Shared()
        records = result.records
        if isinstance(records, MemorySlices):
            data = records.read()
        else:
            data = await asyncio.get_running_loop().run_in_executor(None, records.read)
        if not self._is_wanted():
            return Shared()
        fetched = SharedRecords.of(data, result.aborted_transactions, start=reading.offset, enough=left)
        acquired = share.acquire(
            self._session.key.member_id,
            reading.offset,
            fetched.batches,
            max_records=left,
            batch_size=max(request.batch_size, 1),
            is_strict=request.share_acquire_mode == _RECORD_LIMIT_MODE,
        )
        if not acquired and share.next_offset() not in (None, reading.offset):
            self._news.set()  # there was nothing to deliver there; there may be further on
        return Shared(records=fetched.covering(acquired), acquired=acquired)

    async def _follow_start(self, reading: _ShareReading) -> None:
        """The log begins further on than what the group has settled, or has lost its end."""
        share = reading.share
        found = await share.served.list_offset(
            EARLIEST, isolation=self._isolation, current_leader_epoch=share.leader_epoch
        )
        share.move_start(found.offset)
        if share.next_offset() not in (None, reading.offset):
            self._news.set()
