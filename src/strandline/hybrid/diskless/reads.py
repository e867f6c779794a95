"""Reads of diskless logs, from memory, from rows and their WAL objects, and from remote segments.

Which of them reads an offset was decided by the layout of its partition.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from strandline.clock import Clock
from strandline.diskless.values import BelowReadBoundary, DisklessRead
from strandline.errors import KafkaStorageError, NotLeaderOrFollower, OffsetOutOfRange, StrandlineError
from strandline.hybrid.diskless.converted import ConvertedLog
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.hybrid.tier_reads import TierReads
from strandline.model import TopicIdPartition
from strandline.reads import FetchIsolation, ReadResult, WholeLog

if TYPE_CHECKING:  # a broker without diskless or tiered topics does not load them
    from strandline.diskless.reader import DisklessReader
    from strandline.remote.reader import RemoteLogReader, RemoteRead

logger = logging.getLogger(__name__)

# The log has one line about the converted records of a partition in this many seconds, for this many partitions.
_WARNING_SECONDS: Final = 60.0
_WARNINGS: Final = 1000


class RoutedRead(NamedTuple):
    """A read of a diskless log, and the part of it that may be in remote segments."""

    request: DisklessRead
    log: ConvertedLog
    whole: WholeLog | None = None
    """If another part is before it: the offsets of the whole log, which may be newer than the control plane's."""


class RowReads:
    """A `TierReader` for rows and their WAL objects."""

    always_gives_a_batch: ClassVar[bool] = True

    def __init__(self, reader: DisklessReader, counts: TierReads, clock: Clock) -> None:
        self._reader, self._counts = reader, counts
        self.converted = ConvertedReads(reader, self, counts, clock)
        """Reads what has left the rows."""

    def from_memory(self, read: RoutedRead, *, min_one_message: bool) -> ReadResult | None:
        """The answer, if memory has it, whatever has become of the rows. Raises OffsetOutOfRange."""
        found = self._reader.read_now(read.request, min_one_message=min_one_message)
        if found is not None:
            self._count(read, found)
        return found

    def begin(self, read: RoutedRead, *, min_one_message: bool) -> PendingRead:
        """What memory cannot answer."""
        return PendingRead(self, read)

    def _count(self, read: RoutedRead, answer: ReadResult) -> None:
        self._counts.diskless += 1
        if read.whole is not None:
            _tell_start(answer, read.whole)

    async def read(
        self,
        requests: Sequence[RoutedRead],
        *,
        max_bytes: int,
        min_one_message: bool,
        is_wanted: Callable[[], bool],
    ) -> Sequence[ReadResult | StrandlineError]:
        """See `TierReader`. What is read from rows goes to the cache, whether it is still wanted or not.

        The read boundary moves meanwhile, and this broker may hear of it late: a read that finds its records gone from
        the rows goes on in remote storage, and the client does not notice.
        """
        answers = list(await self._reader.read([read.request for read in requests], max_bytes=max(max_bytes, 1)))
        for read, answer in zip(requests, answers, strict=True):
            if isinstance(answer, ReadResult):
                self._count(read, answer)
        moved = [place for place, read in enumerate(requests) if _is_moved(read, answers[place])]
        if moved:
            left = max_bytes - sum(map(_length, answers))
            late = await self.converted.read(
                [requests[place] for place in moved],
                max_bytes=max(left, 0),
                min_one_message=min_one_message and left == max_bytes,
                is_wanted=is_wanted,
            )
            for place, answer in zip(moved, late, strict=True):
                answers[place] = answer
        return answers


class ConvertedReads:
    """A `TierReader` for remote segments of diskless logs: converted ones, and those of a prefix that is elsewhere."""

    always_gives_a_batch: ClassVar[bool] = False

    def __init__(self, reader: DisklessReader, rows: RowReads, counts: TierReads, clock: Clock) -> None:
        self._reader, self._rows, self._counts, self._clock = reader, rows, counts, clock
        self._warned_at: dict[TopicIdPartition, float] = {}

    def from_memory(self, read: RoutedRead, *, min_one_message: bool) -> ReadResult | None:
        """What was converted a moment ago may be in memory still. Raises OffsetOutOfRange."""
        return self._rows.from_memory(read, min_one_message=min_one_message)

    def begin(self, read: RoutedRead, *, min_one_message: bool) -> FinalRead | PendingRead:
        """What memory cannot answer: from remote segments if those are at hand; else it is left for `read`.

        Also a read whose offset was converted by what is known here, if that has to be asked for again: the control
        plane is asked with the read of its rows.
        """
        partition, offset, _, _ = read.request
        if not self._reader.is_converted(partition, offset):
            return PendingRead(self._rows, read)
        try:
            tier = read.log.tier
            max_wait_s = tier.reader.limits.fetch_max_wait_ms / 1000
            read.log.check(offset)
            if _is_committed(read) and not read.log.knows_aborted:
                return PendingRead(self, read, max_wait_s)
        except KafkaStorageError:
            return PendingRead(self, read)  # a Fetch waits, and then gets the error
        found = tier.reader.read_now(_request(tier.reader, read), min_one_message=min_one_message)
        if not isinstance(found, ReadResult):
            return PendingRead(self, read, max_wait_s)
        self._counts.tiered += 1
        return FinalRead(found, max_wait_s)

    async def read(
        self,
        requests: Sequence[RoutedRead],
        *,
        max_bytes: int,
        min_one_message: bool,
        is_wanted: Callable[[], bool],
    ) -> Sequence[ReadResult | StrandlineError]:
        """See `TierReader`."""
        answers: list[ReadResult | StrandlineError | None] = []
        answers += await asyncio.gather(*(self._trouble(read) for read in requests))
        ready = [place for place, trouble in enumerate(answers) if trouble is None]
        if ready:
            reader = requests[ready[0]].log.tier.reader
            found = await reader.read(
                [_request(reader, requests[place]) for place in ready],
                max_bytes=max_bytes,
                min_one_message=min_one_message,
                is_wanted=is_wanted,
            )
            for place, answer in zip(ready, found, strict=True):
                answers[place] = answer
        failed = [read for read, answer in zip(requests, answers, strict=True) if isinstance(answer, StrandlineError)]
        if failed:  # perhaps because the records were deleted: this broker may not have heard of it yet
            await self._reader.refresh([read.request.partition for read in failed])
        checked = [
            self._checked(read, answer) for read, answer in zip(requests, answers, strict=True) if answer is not None
        ]
        self._counts.tiered += sum(isinstance(answer, ReadResult) for answer in checked)
        return checked

    async def _trouble(self, read: RoutedRead) -> KafkaStorageError | None:
        """Why nothing of this log can be read from remote storage here and now."""
        try:
            await read.log.wait_holds(read.request.offset, self._clock)
            if _is_committed(read):
                await read.log.wait_aborted()
        except KafkaStorageError as error:
            return error
        return None

    def _warn(self, partition: TopicIdPartition, error: KafkaStorageError) -> None:
        """One line for the operator: consumers see only an error code, and retry again and again."""
        now = self._clock.monotonic()
        if now - self._warned_at.get(partition, -_WARNING_SECONDS) < _WARNING_SECONDS:
            return
        if len(self._warned_at) >= _WARNINGS:
            self._warned_at.clear()
        self._warned_at[partition] = now
        logger.warning("converted records cannot be read: %s", error)

    def _checked(self, read: RoutedRead, answer: ReadResult | StrandlineError) -> ReadResult | StrandlineError:
        """Out of range is what was deleted, also during the read, and nothing else: consumers would skip records."""
        offset, start = read.request.offset, read.log.log_start_offset
        if offset < start:
            return OffsetOutOfRange(
                f"Offset {offset} of {read.log.topic_partition} is below the log start offset {start}."
            )
        if isinstance(answer, OffsetOutOfRange | NotLeaderOrFollower):
            read.log.look_again()
            answer = KafkaStorageError(str(answer))
        if isinstance(answer, KafkaStorageError):
            self._warn(read.request.partition, answer)
        return answer


def _tell_start(answer: ReadResult, whole: WholeLog) -> None:
    """Let an answer say where the whole log starts."""
    answer.log_start_offset = max(answer.log_start_offset, whole().log_start_offset)


def _request(reader: RemoteLogReader, read: RoutedRead) -> RemoteRead:
    (partition, offset, max_bytes, isolation), log, whole = read
    return reader.request(partition, log, offset, max_bytes, isolation, whole or log.whole)


def _is_committed(read: RoutedRead) -> bool:
    return read.request.isolation is FetchIsolation.TXN_COMMITTED


def _is_moved(read: RoutedRead, answer: ReadResult | StrandlineError) -> bool:
    """Whether the rows of a read have become a remote segment, as the control plane has just told."""
    return isinstance(answer, BelowReadBoundary) and read.request.offset >= read.log.boundary


def _length(answer: ReadResult | StrandlineError) -> int:
    return 0 if isinstance(answer, StrandlineError) or answer.records is None else answer.records.length
