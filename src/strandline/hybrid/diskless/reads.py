"""Reads of diskless logs that memory cannot answer: from rows and their WAL objects, or from converted segments.

The read boundary decides. It moves while reads are under way, and this broker may hear of it late: a read that finds
its records gone from the rows goes on in remote storage, and the client does not notice.
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
from strandline.hybrid.partition import FinalRead, PendingRead
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
    """A read of a diskless log, and the part of it that may be converted."""

    request: DisklessRead
    log: ConvertedLog
    whole: WholeLog | None = None
    """If this broker has an older part of the log: the offsets of both parts, which may be newer than the control
    plane's."""


class DisklessReads:
    """A `TierReader` for both parts of diskless logs."""

    always_gives_a_batch: ClassVar[bool] = True

    def __init__(self, reader: DisklessReader, counts: TierReads, clock: Clock) -> None:
        self._reader, self._counts, self._clock = reader, counts, clock
        self._warned_at: dict[TopicIdPartition, float] = {}

    def from_memory(self, found: ReadResult, whole: WholeLog | None) -> ReadResult:
        """The answer of a read that memory could answer."""
        self._counts.diskless += 1
        if whole is not None:
            _tell_start(found, whole)
        return found

    def begin(self, read: RoutedRead, *, min_one_message: bool) -> FinalRead | PendingRead:
        """What memory cannot answer: from remote segments if those are at hand; else it is left for `read`."""
        if not self._is_converted(read):
            return PendingRead(self, read)
        try:
            tier = read.log.tier
            max_wait_s = tier.reader.limits.fetch_max_wait_ms / 1000
            read.log.check(read.request.offset)
            if _is_committed(read) and not read.log.knows_aborted:
                return PendingRead(self, read, max_wait_s)
        except KafkaStorageError:
            return PendingRead(self, read)  # a Fetch waits, and then gets the error
        found = tier.reader.read_now(_request(tier.reader, read), min_one_message=min_one_message)
        if not isinstance(found, ReadResult):
            return PendingRead(self, read, max_wait_s)
        self._counts.tiered += 1
        return FinalRead(found, max_wait_s)

    def _is_converted(self, read: RoutedRead) -> bool:
        partition, offset, _, _ = read.request
        return offset >= read.log.boundary and self._reader.is_converted(partition, offset)

    async def read(
        self,
        requests: Sequence[RoutedRead],
        *,
        max_bytes: int,
        min_one_message: bool,
        is_wanted: Callable[[], bool],
    ) -> Sequence[ReadResult | StrandlineError]:
        """See `TierReader`. What is read from rows goes to the cache, whether it is still wanted or not."""
        places: tuple[list[int], list[int]] = ([], [])
        for place, read in enumerate(requests):
            places[self._is_converted(read)].append(place)
        rows, remote = places
        share = max_bytes * len(remote) // len(requests)
        from_rows, from_remote = await asyncio.gather(
            self._read_rows([requests[place] for place in rows], max_bytes - share),
            self._read_remote(
                [requests[place] for place in remote],
                share,
                min_one_message=min_one_message and not rows,
                is_wanted=is_wanted,
            ),
        )
        answers = dict(zip((*rows, *remote), (*from_rows, *from_remote), strict=True))
        moved = [place for place in rows if _is_moved(requests[place], answers[place])]
        if moved:
            left = max_bytes - sum(map(_length, answers.values()))
            late = await self._read_remote(
                [requests[place] for place in moved],
                max(left, 0),
                min_one_message=min_one_message and left == max_bytes,
                is_wanted=is_wanted,
            )
            answers.update(zip(moved, late, strict=True))
        return [answers[place] for place in range(len(requests))]

    async def _read_rows(self, reads: Sequence[RoutedRead], max_bytes: int) -> Sequence[ReadResult | StrandlineError]:
        if not reads:
            return ()
        answers = await self._reader.read([read.request for read in reads], max_bytes=max(max_bytes, 1))
        for read, answer in zip(reads, answers, strict=True):
            if isinstance(answer, ReadResult):
                self._counts.diskless += 1
                if read.whole is not None:
                    _tell_start(answer, read.whole)
        return answers

    async def _read_remote(
        self, reads: Sequence[RoutedRead], max_bytes: int, *, min_one_message: bool, is_wanted: Callable[[], bool]
    ) -> Sequence[ReadResult | StrandlineError]:
        if not reads:
            return ()
        answers: list[ReadResult | StrandlineError | None] = []
        answers += await asyncio.gather(*(self._trouble(read) for read in reads))
        ready = [place for place, trouble in enumerate(answers) if trouble is None]
        if ready:
            reader = reads[ready[0]].log.tier.reader
            found = await reader.read(
                [_request(reader, reads[place]) for place in ready],
                max_bytes=max_bytes,
                min_one_message=min_one_message,
                is_wanted=is_wanted,
            )
            for place, answer in zip(ready, found, strict=True):
                answers[place] = answer
        failed = [read for read, answer in zip(reads, answers, strict=True) if isinstance(answer, StrandlineError)]
        if failed:  # perhaps because the records were deleted: this broker may not have heard of it yet
            await self._reader.refresh([read.request.partition for read in failed])
        checked = [
            self._checked(read, answer) for read, answer in zip(reads, answers, strict=True) if answer is not None
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
