"""One ShareFetch request until it is answered: reading for a member, and waiting for records to acquire.

A request reads a partition only while no other request of its group does. It waits while there is nothing to acquire,
or fewer bytes than the client wants; what it has acquired is sent at once. A partition whose records are in a store is
read in the background (`slow_reads`), so the others do not wait for it.

A read that fails because a store or the database is away does not end the wait: clients would ask again at once. The
error is sent when the time of the request is over, or with records of other partitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from strandline.clock import Clock
from strandline.coordinators.share_states import SharePartitionKey
from strandline.crash import crash_point
from strandline.errors import KafkaStorageError, OffsetOutOfRange, StrandlineError
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.model import Offset
from strandline.reads import FetchIsolation, ReadResult
from strandline.records.slices import MemorySlices
from strandline.server.handlers.share.slow_reads import SlowShareReads
from strandline.server.memory import AnswerMemory, ReadGrant
from strandline.share_delivery.delivery import AcquiredBatch
from strandline.share_delivery.partition import SharePartition
from strandline.share_delivery.partitions import SharePartitions
from strandline.share_delivery.reading import SharedRecords
from strandline.share_delivery.sessions import SharePlace, ShareSession
from strandline.wire.messages.share_fetch import ShareFetchRequest

# How much is read of a partition at a time: a member gets few records by count, however many bytes it allows.
READ_BYTES: Final = 4 * 1024 * 1024
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
        slow_reads: SlowShareReads,
        max_bytes: int,
    ) -> None:
        self._shares, self._session, self._request = shares, session, request
        self._clock, self._memory, self._grant = clock, memory, ReadGrant(memory)
        self._slow_reads = slow_reads
        self._config = shares.config_of(session.key.group_id)
        self._max_bytes = min(request.max_bytes, max_bytes)
        self._isolation = (
            FetchIsolation.TXN_COMMITTED if self._config.reads_committed else FetchIsolation.HIGH_WATERMARK
        )
        self._deadline = clock.monotonic() + request.max_wait_ms / 1000
        self._news = asyncio.Event()
        self._used: dict[SharePlace, SharePartition] = {}
        self._troubles: dict[SharePlace, KafkaStorageError] = {}
        """Partitions whose store is away: this request does not read them again."""
        self._followed: set[SharePlace] = set()
        """Partitions whose log began further on: if it does not, its end was lost, and there is nothing to read yet."""

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
                is_hopeless = len(errors) == len(self._session.places) and not self._troubles
                if found or is_hopeless or left <= 0 or not self._is_wanted():
                    return {place: Shared(error) for place, error in errors.items()} | found
                await self._clock.wait_set(self._news, within=left)
        finally:
            self._stop_watching()

    def _is_wanted(self) -> bool:
        """Whether the member still has this session: otherwise records would be locked for a member that is gone."""
        return self._shares.sessions.peek(self._session.key) is self._session

    def _stop_watching(self) -> None:
        for share in self._used.values():
            share.unwatch(self)
            share.served.newest.unwatch(self)
        self._memory.unwatch(self)
        self._grant.give_back()

    # Looking

    async def _look(self) -> tuple[dict[SharePlace, Shared], dict[SharePlace, StrandlineError]]:
        errors: dict[SharePlace, StrandlineError] = {}
        ready: list[_ShareReading] = []
        for place in self._session.places:
            try:
                reading = self._readable(place)
            except StrandlineError as error:
                errors[place] = error
            else:
                ready += [] if reading is None else [reading]
        if not ready or not self._has_enough(ready):
            return {}, errors
        found = await self._read(ready, errors)
        if not found:
            self._grant.give_back()  # a request that waits for records needs no memory for them
        return found, errors

    def _readable(self, place: SharePlace) -> _ShareReading | None:
        """The partition, if it may be read for this member now. Raises StrandlineError."""
        share = self._use(place)
        if place in self._troubles:
            raise self._troubles[place]
        if share.is_fetching:
            share.turn_away(self)
            return None
        offset = share.next_offset() if share.is_loaded else None
        return None if offset is None else _ShareReading(place, share, offset)

    def _use(self, place: SharePlace) -> SharePartition:
        """Raises StrandlineError. One that has failed is not tried again for the same request."""
        key = SharePartitionKey(self._session.key.group_id, *place)
        used = self._used.get(place)
        if used is None or used.failure is None:
            share = self._shares.use(key)
            if share is not used:
                if used is not None:
                    used.unwatch(self)
                    used.served.newest.unwatch(self)
                self._used[place] = used = share
                share.watch(self)
                share.served.newest.watch(self)
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
            if self._slow_reads.has(reading.share, reading.offset, self._isolation):
                return True
            size = reading.share.served.available_bytes(reading.offset, self._isolation)
            if size is None:
                return True
            found += size
        return found >= wanted

    # Reading

    async def _read(
        self, ready: Sequence[_ShareReading], errors: dict[SharePlace, StrandlineError]
    ) -> dict[SharePlace, Shared]:
        granted = self._grant.take(min(self._max_bytes, len(ready) * READ_BYTES))
        if not granted:
            self._memory.watch(self)
            return {}
        size_of_each = max(granted // len(ready), 1)
        results = [(reading, self._read_one(reading, size_of_each)) for reading in ready]
        at_hand = [(reading, result) for reading, result in results if result is not None]
        self._grant.give_back_all_but(size_of_each * len(at_hand))
        for reading, _ in at_hand:
            reading.share.is_fetching = True
        try:
            return await self._acquire_all(at_hand, errors)
        finally:
            for reading, _ in at_hand:
                reading.share.end_fetch(self)

    def _read_one(self, reading: _ShareReading, max_bytes: int) -> ReadResult | StrandlineError | None:
        """What is at hand; None if the records are in a store, or the log begins further on: then the request is
        notified."""
        share, offset = reading.share, reading.offset
        result: ReadResult | StrandlineError | None = self._slow_reads.take(share, offset, self._isolation)
        if result is None:
            try:
                found = share.served.read_now(offset, max_bytes, isolation=self._isolation, min_one_message=True)
            except StrandlineError as error:
                result = error
            else:
                if isinstance(found, PendingRead):
                    self._slow_reads.begin(share, offset, self._isolation, found, max_bytes, self)
                    return None
                result = found.result if isinstance(found, FinalRead) else found
        if isinstance(result, OffsetOutOfRange):
            if reading.place not in self._followed:
                self._followed.add(reading.place)
                share.turn_away(self)
                share.follow_log_start()
            return None
        return result

    async def _acquire_all(
        self,
        results: Sequence[tuple[_ShareReading, ReadResult | StrandlineError]],
        errors: dict[SharePlace, StrandlineError],
    ) -> dict[SharePlace, Shared]:
        found: dict[SharePlace, Shared] = {}
        left = self._request.max_records
        for reading, result in results:
            if left <= 0:
                break
            try:
                shared = await self._acquire(reading, result, left)
            except StrandlineError as error:
                errors[reading.place] = error
                if isinstance(error, KafkaStorageError):
                    self._troubles[reading.place] = error
                continue
            if shared.acquired:
                found[reading.place] = shared
                left -= sum(last - first + 1 for first, last, _ in shared.acquired)
        return found

    async def _acquire(self, reading: _ShareReading, result: ReadResult | StrandlineError, left: int) -> Shared:
        share, request = reading.share, self._request
        if isinstance(result, StrandlineError):
            raise result
        if result.records is None or not result.records.length:
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
        crash_point("share.delivery.after_acquire")
        if not acquired and share.next_offset() not in (None, reading.offset):
            self._news.set()  # there was nothing to deliver there; there may be further on
        return Shared(records=fetched.covering(acquired), acquired=acquired)
