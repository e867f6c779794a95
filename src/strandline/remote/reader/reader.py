"""The reader of remote segments, as request handlers see it.

`read_now` is the hot path: a consumer that catches up gets what was read ahead for it, in the turn of the event loop in
which its request came. `read` loads what is missing, for all partitions of a request at the same time.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from strandline.clock import Clock
from strandline.errors import CorruptMessage, NotLeaderOrFollower, OffsetOutOfRange, StrandlineError
from strandline.model import Offset, TimestampMs, TopicIdPartition
from strandline.reads import AbortedTransaction, FetchIsolation, FoundOffset, ReadResult, RecordSet, WholeLog
from strandline.records import fair_shares
from strandline.remote.indexes import RemoteIndexCache
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageManager
from strandline.remote.reader.aborted import AbortedTransactionFinder
from strandline.remote.reader.by_time import SearchByTime
from strandline.remote.reader.errors import RemoteReadErrors
from strandline.remote.reader.finding import SegmentFinder
from strandline.remote.reader.limits import MemoryBudget, ReadGate, RemoteReaderLimits
from strandline.remote.reader.locating import Located, answer_length, locate_now
from strandline.remote.reader.log import ReadableLog
from strandline.remote.reader.preparing import Preparation
from strandline.remote.reader.readahead import RemoteReadAhead
from strandline.remote.reader.segments import ChunkCache, FileReads, OpenSegment, OpenSegments
from strandline.remote.reader.status import RemoteReaderStatus, TopicReads
from strandline.remote.reader.values import FetchQuota, RemoteRead
from strandline.remote.values import RemoteLogSegmentId

_TIDY_SECONDS: Final = 15.0
# One request may hold this fraction of the cache in memory, and at least so many bytes.
_REQUEST_SHARE: Final = 4
_LEAST_REQUEST: Final = 1024 * 1024


def _always() -> bool:
    return True


class RemoteLogReader:
    """Reads remote segments of the partitions that this broker leads. Lives on the event loop."""

    def __init__(
        self,
        storage: RemoteStorageManager,
        metadata: RemoteLogMetadataManager,
        indexes: RemoteIndexCache,
        *,
        limits: RemoteReaderLimits,
        clock: Clock,
        quota: FetchQuota | None = None,
    ) -> None:
        self.limits = limits
        self._clock, self._quota = clock, quota
        self._gate = ReadGate(limits.parallel_reads, limits.max_pending, clock)
        self._budget = MemoryBudget(limits.cache_max_bytes)
        self._chunks = ChunkCache(storage, self._gate, quota, clock, max_bytes=limits.cache_max_bytes)
        self._files = FileReads(self._gate, quota, clock)
        self._segments = OpenSegments(storage, indexes, self._chunks, self._files, clock)
        self._finder = SegmentFinder(metadata, clock)
        self._errors = RemoteReadErrors(storage.url, clock)
        self._aborted = AbortedTransactionFinder(indexes, self._finder, self._errors)
        self._ahead = RemoteReadAhead(self._segments, self._finder, clock, max_bytes=limits.cache_max_bytes // 2)
        self._by_time = SearchByTime(metadata, self._segments, self._errors, clock)
        self._topics: defaultdict[str, TopicReads] = defaultdict(TopicReads)
        self._throttled = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[RemoteLogReader]:
        """Reads are possible while the block lasts; its end cancels them."""
        tidying = asyncio.get_running_loop().create_task(self._tidy(), name="remote-reader-tidying")
        try:
            yield self
        finally:
            tidying.cancel()
            await asyncio.wait((tidying,))
            await self._ahead.close()
            await self._segments.close()
            await self._chunks.close()
            await self._files.close()

    async def _tidy(self) -> None:
        while True:
            await self._clock.sleep(_TIDY_SECONDS)
            self._segments.drop_idle()

    # Reading

    @staticmethod
    def request(
        partition: TopicIdPartition,
        log: ReadableLog,
        offset: Offset,
        max_bytes: int,
        isolation: FetchIsolation,
        whole: WholeLog | None = None,
    ) -> RemoteRead:
        """What `read_now` and `read` take, for callers that load this module only when it is used."""
        return RemoteRead(partition, log, offset, max_bytes, isolation, whole)

    def read_now(self, request: RemoteRead, *, min_one_message: bool) -> ReadResult | StrandlineError | None:
        """The answer if all it needs is loaded; None if not: then `read` loads it. Never waits or blocks.

        An error is an answer too: it is counted, and asking again would count it again.
        """
        try:
            return self._read_now(request, min_one_message=min_one_message)
        except CorruptMessage:
            return None  # `read` finds it too, and reports it
        except StrandlineError as error:
            return self._counted(request, error)

    def _read_now(self, request: RemoteRead, *, min_one_message: bool) -> ReadResult | None:
        log, offset = request.log, request.offset
        segment = self._segments.get(self._finder.segment_of(request.partition, log, offset))
        if segment is None:
            return None
        if not segment.source.takes_memory and self._is_throttled:
            return self._nothing(request, is_throttled=True)
        batch = locate_now(segment.source, segment.indexes.position_of(offset), offset)
        if not isinstance(batch, Located):
            return None
        length = answer_length(segment.indexes, batch, request.max_bytes, segment.source.size)
        if not length:
            if not min_one_message:
                return self._nothing(request)
            length = batch.end - batch.position
        length = _ready_length(segment, batch, length)
        if not length:
            return None
        aborted = None
        if request.isolation is FetchIsolation.TXN_COMMITTED:
            upper = segment.upper_offset(batch.position + length)
            aborted = self._aborted.now(log, segment.metadata, offset, upper)
            if aborted is None:
                return None
        return self._served(request, segment, batch.position, length, aborted)

    @property
    def _is_throttled(self) -> bool:
        return self._quota is not None and self._quota.throttle_seconds() > 0

    async def read(
        self,
        requests: Sequence[RemoteRead],
        *,
        max_bytes: int,
        min_one_message: bool = True,
        is_wanted: Callable[[], bool] = _always,
    ) -> Sequence[ReadResult | StrandlineError]:
        """Read several partitions at once, fairly: none gets more than its share of `max_bytes` while others need some.

        With `min_one_message` the first batch of the first partition that has one is complete, whatever its size; the
        other partitions get only what fits. Errors are answers. Cancelling this does not cancel the reads of the
        storage: their bytes are cached for the next attempt. The same holds if `is_wanted` is false at the end because
        the client has been answered already: then there are no records, and nothing is counted as sent.
        """
        if self._is_throttled:
            return [self._nothing(request, is_throttled=True) for request in requests]
        shares = fair_shares([request.max_bytes for request in requests], max_bytes)
        reads = [
            Preparation(request, share, self._segments, self._finder, self._aborted, self._errors)
            for request, share in zip(requests, shares, strict=True)
        ]
        await asyncio.gather(*(read.open() for read in reads))
        self._bound_memory(reads)
        try:
            async with self._budget.reserved(sum(read.memory for read in reads)):
                await asyncio.gather(*(read.load(whole_batch=min_one_message and read is reads[0]) for read in reads))
                if not is_wanted():
                    return [_unwanted(request) for request in requests]
                return await self._take(reads, max_bytes, min_one_message=min_one_message)
        finally:
            for read in reads:
                read.release()
            self._chunks.trim()

    def _bound_memory(self, reads: Sequence[Preparation]) -> None:
        """Reads through memory get less than clients may ask for."""
        in_memory = [read for read in reads if read.memory]
        most = max(self.limits.cache_max_bytes // _REQUEST_SHARE, _LEAST_REQUEST)
        for read, share in zip(in_memory, fair_shares([read.share for read in in_memory], most), strict=True):
            read.share = share

    async def _take(
        self, reads: Sequence[Preparation], max_bytes: int, *, min_one_message: bool
    ) -> list[ReadResult | StrandlineError]:
        """Answers in the order of the requests. The first partition with a batch may exceed its limits."""
        results = []
        left = max_bytes
        for read in reads:
            result = await self._answer(read, left, must_give=min_one_message)
            if isinstance(result, ReadResult) and result.records is not None:
                left -= result.records.length
                min_one_message = False
            results.append(result)
        return results

    async def _answer(self, read: Preparation, left: int, *, must_give: bool) -> ReadResult | StrandlineError:
        request = read.request
        try:
            if must_give:
                await read.load_batch()
            if read.error is not None:
                return self._counted(request, read.error)
            if read.is_local:
                return self._read_local(request, min(read.share, left), min_one_message=must_give)
            segment, batch = read.segment, read.batch
            if segment is None or batch is None:
                return self._nothing(request)
            length = answer_length(segment.indexes, batch, min(read.share, left), segment.source.size)
            if not length:
                if not must_give:
                    return self._nothing(request)
                length = batch.end - batch.position
            aborted = None
            if request.isolation is FetchIsolation.TXN_COMMITTED:
                upper = segment.upper_offset(batch.position + length)
                aborted = await self._aborted.find(request.log, segment.metadata, request.offset, upper)
            return self._served(request, segment, batch.position, length, aborted)
        except StrandlineError as error:
            return self._counted(request, error)

    # Answers

    def _served(
        self,
        request: RemoteRead,
        segment: OpenSegment,
        position: int,
        length: int,
        aborted: list[AbortedTransaction] | None,
    ) -> ReadResult:
        records = segment.source.slice(position, length)
        self._ahead.served(request.log, segment, position, position + records.length)
        return self._result(request, records, aborted)

    def _read_local(self, request: RemoteRead, max_bytes: int, *, min_one_message: bool) -> ReadResult:
        """No remote batch follows (compaction removed them before the copy): continue with the local log."""
        log = request.log
        offset = max(request.offset, log.local_log_start_offset)
        found = log.read(offset, max_bytes, isolation=request.isolation, min_one_message=min_one_message)
        return self._result(request, found.records, found.aborted_transactions)

    def _result(
        self, request: RemoteRead, records: RecordSet | None, aborted: list[AbortedTransaction] | None
    ) -> ReadResult:
        counted = self._topics[request.partition.topic]
        counted.requests += 1
        if records is not None:
            counted.bytes += records.length
        if request.whole is not None:
            return ReadResult(records, *request.whole(), aborted)
        log = request.log
        return ReadResult(records, log.high_watermark, log.last_stable_offset, log.log_start_offset, aborted)

    def _nothing(self, request: RemoteRead, *, is_throttled: bool = False) -> ReadResult:
        self._throttled += is_throttled
        return self._result(request, None, [] if request.isolation is FetchIsolation.TXN_COMMITTED else None)

    def _counted(self, request: RemoteRead, error: StrandlineError) -> StrandlineError:
        counted = self._topics[request.partition.topic]
        counted.requests += 1
        counted.errors += 1
        return _of_whole(request, error) if request.whole is not None else error

    # Searching

    async def offset_by_timestamp(
        self, partition: TopicIdPartition, log: ReadableLog, timestamp: TimestampMs
    ) -> FoundOffset | None:
        """The first record that is not older than `timestamp`, among those that are in remote storage only.

        None if there is none: then only the local log may have one. Raises KafkaStorageError.
        """
        return await self._by_time.find(partition, log, timestamp)

    async def offset_of_max_timestamp(self, partition: TopicIdPartition, log: ReadableLog) -> FoundOffset | None:
        """The first record with the largest timestamp, among those that are in remote storage only.

        None if there is none, or none has a timestamp. Raises KafkaStorageError.
        """
        return await self._by_time.find_max(partition, log)

    # Segments that were deleted, and status

    def forget(self, segment_ids: Iterable[RemoteLogSegmentId]) -> None:
        """These segments were deleted: close their files and free their memory."""
        deleted = {segment_id.id for segment_id in segment_ids}
        self._finder.forget(deleted)
        self._segments.forget(deleted)

    def status(self) -> RemoteReaderStatus:
        """For metrics and tests."""
        gate = self._gate
        return RemoteReaderStatus(
            topics=dict(self._topics),
            running=gate.running,
            waiting=gate.waiting,
            idle_percent=gate.idle_percent,
            storage_requests=self._chunks.requests + self._files.requests,
            storage_bytes=self._chunks.bytes_read,
            read_seconds=self._chunks.read_seconds + self._files.read_seconds,
            throttled=self._throttled,
            throttle_seconds=0.0 if self._quota is None else self._quota.throttle_seconds(),
            cache_bytes=self._chunks.used,
            cache_limit=self._chunks.limit,
            open_segments=len(self._segments),
        )


def _unwanted(request: RemoteRead) -> ReadResult:
    return ReadResult(None, *request.answered_offsets(), None)


def _of_whole(request: RemoteRead, error: StrandlineError) -> StrandlineError:
    """The error for an offset of a log that goes on elsewhere, whose start the log here may not have heard of yet."""
    start = request.answered_offsets().log_start_offset
    if request.offset < start and isinstance(error, NotLeaderOrFollower):
        return OffsetOutOfRange(
            f"Offset {request.offset} of {request.log.topic_partition} is below the log start offset {start}."
        )
    return error


def _ready_length(segment: OpenSegment, batch: Located, length: int) -> int:
    """How many of `length` bytes to send now; 0 if less than half are loaded. Half now is better than all later."""
    ready = segment.source.at_hand(batch.position, length)
    if ready >= length:
        return length
    return answer_length(segment.indexes, batch, ready, segment.source.size) if ready >= length // 2 else 0
