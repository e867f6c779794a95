"""ListOffsets over both parts of a diskless log: converted segments in remote storage, and rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from strandline.clock import Clock
from strandline.diskless.values import WalObjectGone
from strandline.errors import UnsupportedVersion
from strandline.hybrid.diskless.converted import ConvertedLog
from strandline.model import NO_EPOCH, NO_OFFSET, Offset, TimestampMs
from strandline.reads import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    NOTHING,
    FetchIsolation,
    FoundOffset,
)

if TYPE_CHECKING:  # a broker without diskless topics does not load it
    from strandline.controlplane.values import DisklessLog
    from strandline.diskless.reader import DisklessReader, OffsetLookups

_OF_THE_START: Final = frozenset({EARLIEST, EARLIEST_LOCAL})


class DisklessOffsets:
    """Answers for one log. All methods raise what `OffsetLookups` raises, and RequestTimedOut after `timeout_ms`.

    KafkaStorageError also stands for remote storage that is not open here, or cannot be read.
    """

    __slots__ = ("_clock", "_log", "_lookups", "_reader", "_timeout_ms")

    def __init__(
        self, lookups: OffsetLookups, reader: DisklessReader, log: ConvertedLog, clock: Clock, *, timeout_ms: int
    ) -> None:
        """The client waits `timeout_ms` for remote storage; 0: as long as the broker's setting says."""
        self._lookups, self._reader, self._log = lookups, reader, log
        self._clock, self._timeout_ms = clock, timeout_ms

    async def find(
        self, timestamp: TimestampMs, isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK
    ) -> FoundOffset:
        """A special timestamp, or the first record at or after a time, as far as a reader may see it."""
        is_committed = isolation is FetchIsolation.TXN_COMMITTED
        if timestamp == LATEST:
            return await self._lookups.latest(self._log.id, is_committed=is_committed)
        found = await self._find(timestamp)
        if not is_committed or timestamp in _OF_THE_START or found.offset == NO_OFFSET:
            return found
        stable = await self._lookups.latest(self._log.id, is_committed=True)
        return found if found.offset < stable.offset else NOTHING

    async def _find(self, timestamp: TimestampMs) -> FoundOffset:
        if timestamp >= 0:
            return await self._by_timestamp(timestamp)
        if timestamp == EARLIEST:
            return await self._earliest()
        if timestamp == MAX_TIMESTAMP:
            return await self._of_max_timestamp()
        if timestamp == EARLIEST_LOCAL:
            return await self._lookups.earliest_local(self._log.id)
        if timestamp == LATEST_TIERED:
            return await self._latest_tiered()
        raise UnsupportedVersion(f"ListOffsets has no special timestamp {timestamp}.")

    async def _earliest(self) -> FoundOffset:
        found = await self._lookups.earliest(self._log.id)
        if found.leader_epoch != NO_EPOCH or not self._is_converted(await self._read_log(), found.offset):
            return found
        await self._log.wait_holds(found.offset, self._clock)
        epoch = self._log.epoch_for_offset(found.offset)
        return found if epoch is None else found._replace(leader_epoch=epoch)

    async def _latest_tiered(self) -> FoundOffset:
        """Its epoch is known where remote log metadata is read, and left out elsewhere."""
        found = await self._lookups.latest_tiered(self._log.id)
        if found.offset < self._log.boundary:
            return found
        await self._read_log()
        epoch = self._log.epoch_if_known(found.offset)
        return found if epoch is None else found._replace(leader_epoch=epoch)

    # By time. Records move from rows to segments during a search, never back: what was in rows when these were searched
    # and what is in segments afterwards is everything. A hit in segments is the first one, whatever the rows have.

    async def _by_timestamp(self, timestamp: TimestampMs) -> FoundOffset:
        searched = NO_OFFSET
        if self._log.has(self._log.local_log_start_offset - 1):  # then most likely they have it
            log = await self._read_log()
            searched = log.diskless_start_offset
            found = await self._in_segments(timestamp, log)
            if found is not None:
                return found
        in_rows = await self._in_rows(partial(self._lookups.by_timestamp, self._log.id, timestamp))
        log = await self._read_log()
        found = await self._in_segments(timestamp, log) if log.diskless_start_offset > searched else None
        return in_rows if found is None else found

    async def _of_max_timestamp(self) -> FoundOffset:
        in_rows = await self._in_rows(partial(self._lookups.of_max_timestamp, self._log.id))
        found = await self._in_segments(MAX_TIMESTAMP, await self._read_log())
        return in_rows if found is None or in_rows.timestamp > found.timestamp else found

    async def _in_rows(self, search: Callable[[], Awaitable[FoundOffset]]) -> FoundOffset:
        """Search the rows, and again if some have left them with their object meanwhile."""
        known: object = None
        while True:
            try:
                return await search()
            except WalObjectGone:
                log = await self._read_log()
                if known == (known := (log.log_start_offset, log.diskless_start_offset)):
                    raise

    async def _in_segments(self, timestamp: TimestampMs, log: DisklessLog) -> FoundOffset | None:
        """The first record at a time, or with the largest timestamp, among the converted ones; None if they lack it."""
        if not self._is_converted(log, log.diskless_start_offset - 1):
            return None
        await self._log.wait_holds(log.diskless_start_offset - 1, self._clock)
        tier, key = self._log.tier, self._log.id
        async with tier.searching(key.topic_partition, self._timeout_ms):
            if timestamp == MAX_TIMESTAMP:
                return await tier.reader.offset_of_max_timestamp(key, self._log)
            return await tier.reader.offset_by_timestamp(key, self._log, timestamp)

    def _is_converted(self, log: DisklessLog, offset: Offset) -> bool:
        return max(log.log_start_offset, self._log.boundary) <= offset < log.diskless_start_offset

    async def _read_log(self) -> DisklessLog:
        asked_at = self._reader.moment
        log = await self._lookups.log(self._log.id)
        self._reader.learn(log, at=asked_at)
        return log
