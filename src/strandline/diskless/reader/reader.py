"""The reader of diskless topics, as request handlers and the writer see it.

`read_now` is the hot path: a consumer near the end of a log is served from memory, in the same turn of the event loop.
Behind it, `tails` knows the offsets of logs, `cache` holds blocks, `reading` and `loading` load more of them, and
`readahead` loads them before a consumer asks.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from strandline.clock import Clock
from strandline.controlplane import AbortedRange, BatchReads, BatchRow, DisklessLog
from strandline.diskless.reader.aborts import overlapping
from strandline.diskless.reader.blocks import Block
from strandline.diskless.reader.cache import BlockCache, CacheStatus
from strandline.diskless.reader.limits import DisklessReaderLimits
from strandline.diskless.reader.loading import BlockLoader
from strandline.diskless.reader.pieces import WantedRow
from strandline.diskless.reader.readahead import DisklessReadAhead
from strandline.diskless.reader.reading import Reading, end_of, result_of
from strandline.diskless.reader.tail import Tail
from strandline.diskless.reader.tails import Announcements, IsKnown, Tails
from strandline.diskless.values import CommittedBlock, DisklessRead, MemorySlices
from strandline.errors import KafkaStorageError, OffsetOutOfRange, StrandlineError
from strandline.model import INT64_MAX, NO_OFFSET, Offset, TopicIdPartition
from strandline.objects import ObjectStore
from strandline.reads import FetchIsolation, ReadResult, Watcher

_COMMITTED: Final = FetchIsolation.TXN_COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class DisklessReaderStatus:
    """Counters and content of the reader."""

    partitions: int
    watched: int
    queries: int
    """Queries to the control plane."""
    requests: int
    """Requests to the object store."""
    bytes_read: int
    """Bytes read from it."""
    cache: CacheStatus


class DisklessReader:
    """Reads diskless partitions; the `CommitListener` of the writer. Lives on the event loop."""

    def __init__(
        self,
        batches: BatchReads,
        announcements: Announcements,
        objects: ObjectStore,
        *,
        clock: Clock,
        limits: DisklessReaderLimits,
        is_known: IsKnown,
    ) -> None:
        """`announcements` is the SqlStore below `batches`; `is_known` tells whether the metadata has a topic."""
        self._clock = clock
        self._cache = BlockCache(limits.cache_max_bytes)
        self._tails = Tails(batches, announcements, self._cache, clock, is_known=is_known)
        self._loader = BlockLoader(objects, self._cache, clock, limits)
        self._reading = Reading(batches, self._tails, self._loader, max_rows=limits.rows_at_once)
        self._ahead = DisklessReadAhead(
            batches, self._loader, clock, max_bytes=self._cache.cold.limit // 2, found=self._tails.found
        )
        self._known = self._tails.by_partition
        self._fresh_seconds = self._tails.fresh_seconds

    @asynccontextmanager
    async def running(self) -> AsyncIterator[DisklessReader]:
        """Follow other brokers' commits while the block lasts; downloads end with it."""
        try:
            async with self._tails.following():
                yield self
        finally:
            await self._ahead.close()
            await self._loader.close()

    # Reading

    def read_now(self, request: DisklessRead, *, min_one_message: bool) -> ReadResult | None:
        """The answer if it can be given from memory at once; None if the database or the store must be asked.

        At the known high watermark the answer is "nothing yet", without a query: `watch` tells of commits by other
        brokers. A binary search over the blocks of the partition; nothing is copied. Raises OffsetOutOfRange.
        """
        partition, offset, max_bytes, isolation = request
        tail = self._known.get(partition)
        if tail is None:
            return None
        until, end = end_of(tail, isolation), tail.high_watermark
        if offset >= until:
            if offset > end or self._clock.monotonic() - tail.known_at > self._fresh_seconds:
                return None
            return result_of(None, tail, isolation, ())
        start = tail.log_start_offset
        if offset < start:
            raise OffsetOutOfRange(f"Offset {offset} is not between {start} and {end}.")
        if self._tails.is_outdated(tail):
            return None
        index = bisect_left(tail.blocks.last_offsets, offset)
        blocks = tail.blocks.blocks
        if index == len(blocks) or blocks[index].base_offset > offset:
            return None
        if isolation is not _COMMITTED:
            records, _ = self._take(tail, index, offset, max_bytes, INT64_MAX, min_one_message=min_one_message)
            return result_of(records, tail, isolation, ())
        if not tail.aborts.covers(offset):
            return None
        records, reached = self._take(tail, index, offset, max_bytes, until, min_one_message=min_one_message)
        return result_of(records, tail, isolation, overlapping(tail.aborts.ending_from(offset), offset, reached))

    def _take(
        self, tail: Tail, index: int, offset: Offset, max_bytes: int, until: Offset, *, min_one_message: bool
    ) -> tuple[MemorySlices | None, Offset]:
        """Whole batches from the block with this index on, as long as they follow each other and fit; where they end.

        None from `until` on, which is where a batch begins.
        """
        blocks = tail.blocks.blocks
        block = blocks[index]
        first = block.find(offset)
        end = block.end_within(first, max_bytes)
        if end == first:
            if not min_one_message:
                return None, offset
            end += 1
        if block.last_offset >= until:
            end = min(end, block.find(until))
        parts = block.views_of(first, end)
        length = block.size_of(first, end)
        reached = block.next_offset(end)
        is_loaded = _use(block)
        if end == block.batch_count:
            for following in range(index + 1, len(blocks)):
                block = blocks[following]
                if block.base_offset != reached or reached >= until:
                    break
                size = block.size
                if length + size > max_bytes or block.last_offset >= until:
                    end = min(block.end_within(0, max_bytes - length), block.find(until))
                    if end:
                        parts += block.views_of(0, end)
                        length += block.size_of(0, end)
                        reached = block.next_offset(end)
                        is_loaded = _use(block) or is_loaded
                    break
                parts += block.views
                length += size
                reached = block.last_offset + 1
                is_loaded = _use(block) or is_loaded
        if is_loaded:
            self._ahead.served(tail, offset, reached)
        return MemorySlices(parts, length), reached

    async def read(self, requests: Sequence[DisklessRead], *, max_bytes: int) -> Sequence[ReadResult | StrandlineError]:
        """Read several partitions at once, fairly: no partition gets more than its share of `max_bytes` while others
        want some, and the first batch of the first partition that has one comes whole. Errors are answers.

        If it is cancelled, downloads that have begun go on into the cache.
        """
        known = self._known
        await self._ahead.wait_found(
            [(known[partition], offset) for partition, offset, _, _ in requests if partition in known]
        )
        reads = await self._reading.read(requests, max_bytes)
        for read in reads:
            if read.run.is_loaded and read.run.length:
                self._ahead.served(read.tail, read.request.offset, read.run.next_offset)
        return [read.answer() for read in reads]

    async def refresh(self, partitions: Collection[TopicIdPartition]) -> None:
        """Ask the control plane for the offsets of some logs, if it answers."""
        await self._reading.refresh(partitions)

    async def load(self, partition: TopicIdPartition, row: BatchRow) -> Block:
        """The block of one row, from memory or from its object. Raises KafkaStorageError or CorruptMessage."""
        tail = self._tails.of(partition)
        if tail.blocks.blocks and self._tails.is_outdated(tail):
            await self._tails.confirm((tail,))
        blocks = self._tails.of(partition).blocks
        block = blocks.holding(row.base_offset)
        if block is not None and block.last_offset >= row.last_offset:
            return block
        (future,) = self._loader.load((WantedRow(row, blocks),))
        outcome = (await asyncio.shield(future)).of(row)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def known_offsets(self, partition: TopicIdPartition) -> tuple[Offset, Offset] | None:
        """High watermark and log start, as far as this broker knows them; None if it does not."""
        tail = self._known.get(partition)
        if tail is None or tail.high_watermark < 0:
            return None
        return tail.high_watermark, tail.log_start_offset

    def last_stable_offset(self, partition: TopicIdPartition) -> Offset:
        """As far as this broker knows; -1 if it does not."""
        tail = self._known.get(partition)
        return NO_OFFSET if tail is None else tail.last_stable_offset

    async def aborted_across(self, partition: TopicIdPartition, offset: Offset) -> Sequence[AbortedRange]:
        """The aborted transactions that began below an offset and end there or later. Raises KafkaStorageError.

        Those that have left the rows with the records behind the offset are in segments.
        """
        found = await self._reading.aborted(self._tails.of(partition), offset, offset)
        if found.known_from > offset:
            raise KafkaStorageError(
                f"{partition.topic_partition}: records behind offset {offset} were converted meanwhile. Read again."
            )
        return [one for one in found.ranges if one.first_offset < offset]

    def known_aborted_across(self, partition: TopicIdPartition, offset: Offset) -> Sequence[AbortedRange] | None:
        """The same, if they are in memory; None if not."""
        tail = self._known.get(partition)
        if tail is None or not tail.aborts.covers(offset):
            return None
        return [one for one in tail.aborts.ending_from(offset) if one.first_offset < offset]

    def is_converted(self, partition: TopicIdPartition, offset: Offset) -> bool:
        """Whether an offset is known to lie below the read boundary, in a log whose known offsets are not outdated."""
        tail = self._known.get(partition)
        return (
            tail is not None
            and tail.log_start_offset <= offset < tail.diskless_start_offset
            and not self._tails.is_outdated(tail)
        )

    def read_boundary(self, partition: TopicIdPartition) -> Offset:
        """Below it, records have left the rows: as far as this broker knows; -1 if it does not."""
        tail = self._known.get(partition)
        return NO_OFFSET if tail is None else tail.diskless_start_offset

    # Waiting

    def watch(self, partition: TopicIdPartition, watcher: Watcher) -> None:
        """See `Tails.watch`."""
        self._tails.watch(partition, watcher)

    def unwatch(self, partition: TopicIdPartition, watcher: Watcher) -> None:
        """See `Tails.unwatch`."""
        self._tails.unwatch(partition, watcher)

    # Notifications

    def committed(
        self, blocks: Sequence[CommittedBlock], *, log_start_offsets: Sequence[Offset], object_key: str
    ) -> None:
        """See CommitListener."""
        hot = self._cache.hot
        self._tails.committed(object_key)
        for committed, log_start_offset in zip(blocks, log_start_offsets, strict=True):
            tail = self._tails.of(committed.partition)
            present = tail.blocks.holding(committed.base_offset)
            if present is not None and not present.has_batch(committed.base_offset, committed.batches[0]):
                place = f"{committed.partition.topic_partition} at offset {committed.base_offset}"
                self._tails.start_again(f"other records were written to {place}")
                tail = self._tails.of(committed.partition)
            if hot.limit:
                self._cache.add(tail.blocks, Block.of_commit(committed), hot)
            self._tails.committed_block(tail, committed, log_start_offset)

    @property
    def moment(self) -> float:
        """Now, for `learn`."""
        return self._clock.monotonic()

    def learn(self, log: DisklessLog, *, at: float | None = None) -> None:
        """The control plane was asked for the offsets of a log: just now, or at an earlier `moment`."""
        self._tails.found_offsets(self._tails.of(log.partition), log, at=at)

    def log_start_moved(self, partition: TopicIdPartition, offset: Offset) -> None:
        """Records below `offset` were deleted."""
        tail = self._known.get(partition)
        if tail is not None:
            self._tails.trim(tail, offset)

    def forget(self, partition: TopicIdPartition) -> None:
        """The topic was deleted."""
        self._tails.forget(partition)

    def status(self) -> DisklessReaderStatus:
        """For metrics and tests."""
        return DisklessReaderStatus(
            partitions=len(self._known),
            watched=self._tails.watched,
            queries=self._tails.queries + self._reading.queries + self._ahead.queries,
            requests=self._loader.requests,
            bytes_read=self._loader.bytes_read,
            cache=self._cache.status(),
        )


def _use(block: Block) -> bool:
    """Mark a block as used; returns whether it was read from an object."""
    region = block.region
    if region is not None:
        region.touch(block)
    return block.is_loaded
