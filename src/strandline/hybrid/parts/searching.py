"""ListOffsets over a log of several parts: which of them are asked, in which order, and whose answer counts."""

from __future__ import annotations

from typing import Final

from strandline.errors import KafkaStorageError
from strandline.hybrid.parts.part import NewestPart, OlderPart
from strandline.model import NO_EPOCH, NO_OFFSET, TimestampMs
from strandline.reads import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    FetchIsolation,
    FoundOffset,
)

OF_THE_START: Final = frozenset({EARLIEST, EARLIEST_LOCAL})
_OF_THE_TIERS: Final = frozenset({LATEST_TIERED, EARLIEST_PENDING_UPLOAD})


class PartsSearch:
    """One question, over the parts of one log."""

    __slots__ = ("_isolation", "_newest", "_start", "_timeout_ms")

    def __init__(self, newest: NewestPart, before: OlderPart, *, isolation: FetchIsolation, timeout_ms: int) -> None:
        """`before` is the part before the newest one, which begins where that ends."""
        self._newest, self._isolation, self._timeout_ms = newest, isolation, timeout_ms
        self._start = before.end

    async def find(self, timestamp: TimestampMs) -> FoundOffset:
        """See `ServedPartition.list_offset`.

        The first record by time is the one with the smallest offset: the oldest part that has one has it, whatever
        the timestamps are.
        """
        older = [] if timestamp == LATEST else [part for part in _oldest_first(self._newest) if not part.is_gone]
        for part in older:
            part.check_readable()
        if timestamp == MAX_TIMESTAMP:
            return await self._newest_record(older)
        if timestamp == LATEST_TIERED and older:
            return await self._latest_tiered(older)
        for part in older:
            found = await self._in(part, timestamp)
            if found is not None and _counts(found, timestamp, part):
                return found
        return await self._in_newest(timestamp)

    async def _newest_record(self, older: list[OlderPart]) -> FoundOffset:
        best: FoundOffset | None = None
        for part in older:
            found = await self._in(part, MAX_TIMESTAMP)
            if found is not None and (best is None or found.timestamp > best.timestamp):
                best = found
        found = await self._in_newest(MAX_TIMESTAMP)
        return found if best is None or found.timestamp > best.timestamp else best

    async def _latest_tiered(self, older: list[OlderPart]) -> FoundOffset:
        newest = await self._in_newest(LATEST_TIERED)
        if newest.offset >= self._start:
            return newest
        for part in reversed(older):
            found = await self._in(part, LATEST_TIERED)
            if found is not None:
                return found
        return newest

    async def _in(self, part: OlderPart, timestamp: TimestampMs) -> FoundOffset | None:
        return await part.find(
            timestamp, isolation=self._isolation, current_leader_epoch=NO_EPOCH, timeout_ms=self._timeout_ms
        )

    async def _in_newest(self, timestamp: TimestampMs) -> FoundOffset:
        """What the newest part says, which is nothing below its start."""
        found = await self._newest.find(
            timestamp, isolation=self._isolation, current_leader_epoch=NO_EPOCH, timeout_ms=self._timeout_ms
        )
        if timestamp in _OF_THE_TIERS or not NO_OFFSET < found.offset < self._start:
            return found
        if timestamp in OF_THE_START:  # the control plane has not heard yet that older parts are gone
            return found._replace(offset=self._start)
        raise KafkaStorageError(
            f"The part of {self._newest.topic_partition} from offset {self._start} on answered with offset "
            f"{found.offset}. Nothing is answered rather than a wrong offset."
        )


def _counts(found: FoundOffset, timestamp: TimestampMs, part: OlderPart) -> bool:
    """Whether the answer of an older part is that of the whole log."""
    if timestamp in OF_THE_START:
        return found.offset < part.end
    return timestamp in _OF_THE_TIERS or found.offset != NO_OFFSET


def _oldest_first(newest: NewestPart) -> list[OlderPart]:
    parts: list[OlderPart] = []
    part = newest.older
    while part is not None:
        parts.append(part)
        part = part.older
    return parts[::-1]
