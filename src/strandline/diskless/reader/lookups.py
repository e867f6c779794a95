"""ListOffsets over diskless logs: the ends of a log, and records by their time.

The control plane names the row; the record is found in the row's bytes: by headers first, and only the one batch that
holds it is unpacked. Batches with LogAppendTime need not even that. Reads go through the reader's cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

from strandline.controlplane import BatchLookups, BatchRow, DisklessLog, FindBatches, trouble_for_clients
from strandline.diskless.reader.blocks import Block
from strandline.errors import StrandlineError, UnknownTopicOrPartition
from strandline.model import INT32_MAX, NO_EPOCH, NO_TIMESTAMP, Offset, TimestampMs, TopicIdPartition
from strandline.reads import NOTHING, FoundOffset
from strandline.records import BatchHeader, TimestampType, read_header, read_records
from strandline.sql import SqlError

_ROWS_AT_ONCE: Final = 1000


class BlockSource(Protocol):
    """Where the bytes of rows come from: the reader."""

    async def load(self, partition: TopicIdPartition, row: BatchRow) -> Block:
        """The block of one row."""


class OffsetLookups:
    """Finds offsets. All methods raise UnknownTopicOrPartition if there is no such log, RequestTimedOut if the database
    is away, KafkaStorageError if it or the object store fails, and CorruptMessage if bytes are damaged."""

    def __init__(self, batches: BatchLookups, blocks: BlockSource) -> None:
        self._batches, self._blocks = batches, blocks

    async def latest(self, partition: TopicIdPartition, *, is_committed: bool = False) -> FoundOffset:
        """The high watermark, with the epoch of the newest batch. That of the present leader is not known here.

        `is_committed`: the last stable offset instead.
        """
        log = await self.log(partition)
        return FoundOffset(NO_TIMESTAMP, log.last_stable_offset if is_committed else log.high_watermark, log.last_epoch)

    async def earliest(self, partition: TopicIdPartition) -> FoundOffset:
        """The first offset of the diskless part, with the epoch of the record there: never below B0."""
        log = await self.log(partition)
        return await self._at(log, max(log.log_start_offset, log.diskless_log_start_offset))

    async def earliest_local(self, partition: TopicIdPartition) -> FoundOffset:
        """The first offset that is not in tiered segments."""
        log = await self.log(partition)
        return await self._at(log, max(log.log_start_offset, log.diskless_start_offset))

    async def latest_tiered(self, partition: TopicIdPartition) -> FoundOffset:
        """The last offset in tiered segments. Its epoch is not known here."""
        log = await self.log(partition)
        if log.tiered_high_offset < log.log_start_offset:
            return NOTHING
        return FoundOffset(NO_TIMESTAMP, log.tiered_high_offset, NO_EPOCH)

    async def by_timestamp(self, partition: TopicIdPartition, timestamp: TimestampMs) -> FoundOffset:
        """The first record that is not older than `timestamp`."""
        log = await self.log(partition)
        try:
            first = await self._batches.first_row_at_time(partition, timestamp)
            if first is None:
                return NOTHING
            async for row in self._rows_from(partition, first):
                if row.max_timestamp >= timestamp:
                    block = await self._blocks.load(partition, row)
                    found = await _first_at(block, timestamp, log.log_start_offset)
                    if found is not None:  # else its newest records lie below the log start
                        return found
        except SqlError as error:
            raise _unavailable(error) from error
        return NOTHING

    async def of_max_timestamp(self, partition: TopicIdPartition) -> FoundOffset:
        """The first record with the largest timestamp."""
        log = await self.log(partition)
        best, offset = NOTHING, log.log_start_offset
        while True:
            try:
                row = await self._batches.row_of_max_timestamp(partition, from_offset=offset)
            except SqlError as error:
                raise _unavailable(error) from error
            if row is None:
                return best
            found = await _newest(await self._blocks.load(partition, row), log.log_start_offset)
            if found is not None and found.timestamp > best.timestamp:
                best = found
            if best.timestamp >= row.max_timestamp or row.base_offset >= offset:
                return best
            # The newest record of this row lies below the log start: a later row may have a newer one above it.
            offset = row.last_offset + 1

    async def _rows_from(self, partition: TopicIdPartition, first: BatchRow) -> AsyncIterator[BatchRow]:
        """A row and those after it, which are almost never needed."""
        yield first
        offset = first.last_offset + 1
        while True:
            request = FindBatches(partition, offset, INT32_MAX)
            (found,) = await self._batches.find_batches((request,), max_rows=_ROWS_AT_ONCE)
            for row in found.rows:
                yield row
            if not found.rows:
                return
            offset = found.rows[-1].last_offset + 1

    async def _at(self, log: DisklessLog, offset: Offset) -> FoundOffset:
        try:
            (found,) = await self._batches.find_batches((FindBatches(log.partition, offset, 1),), max_rows=1)
        except SqlError as error:
            raise _unavailable(error) from error
        epoch = found.rows[0].leader_epoch if found.rows else NO_EPOCH
        return FoundOffset(NO_TIMESTAMP, offset, epoch)

    async def log(self, partition: TopicIdPartition) -> DisklessLog:
        """The offsets of a log, as the control plane has them now."""
        try:
            log = (await self._batches.logs((partition,))).get(partition)
        except SqlError as error:
            raise _unavailable(error) from error
        if log is None:
            raise UnknownTopicOrPartition(
                f"Partition {partition.partition} of the topic {partition.topic_id} has no diskless log."
            )
        return log


def _headers(block: Block, start_offset: Offset) -> list[tuple[int, BatchHeader]]:
    """Number and header of the batches that hold offsets from `start_offset` on."""
    first = block.find(max(start_offset, block.base_offset))
    return [(number, read_header(block.batch(number))) for number in range(first, block.batch_count)]


async def _first_at(block: Block, timestamp: TimestampMs, start_offset: Offset) -> FoundOffset | None:
    """The first record of the block, from `start_offset` on, that is not older than `timestamp`."""
    for number, header in _headers(block, start_offset):
        if header.max_timestamp < timestamp:
            continue
        if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return FoundOffset(header.max_timestamp, max(header.base_offset, start_offset), header.leader_epoch)
        found = await asyncio.to_thread(_first_in, block.batch(number), header, timestamp, start_offset)
        if found is not None:
            return found
    return None


async def _newest(block: Block, start_offset: Offset) -> FoundOffset | None:
    """The first of the newest records of the block, from `start_offset` on."""
    newest: FoundOffset | None = None
    for number, header in sorted(_headers(block, start_offset), key=lambda pair: -pair[1].max_timestamp):
        if newest is not None and header.max_timestamp <= newest.timestamp:
            break
        if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            found = FoundOffset(header.max_timestamp, max(header.base_offset, start_offset), header.leader_epoch)
        else:  # nearly always once: only if its newest records lie below the start may another batch have newer ones
            found = await asyncio.to_thread(_newest_in, block.batch(number), header, start_offset)
        if newest is None or found.timestamp > newest.timestamp:
            newest = found
    return newest


def _newest_in(batch: memoryview, header: BatchHeader, start_offset: Offset) -> FoundOffset:
    records = [record for record in read_records(batch) if record.offset >= start_offset]
    newest = max(records, key=lambda record: record.timestamp)
    return FoundOffset(newest.timestamp, newest.offset, header.leader_epoch)


def _first_in(
    batch: memoryview, header: BatchHeader, timestamp: TimestampMs, start_offset: Offset
) -> FoundOffset | None:
    for record in read_records(batch):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return FoundOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def _unavailable(error: SqlError) -> StrandlineError:
    return trouble_for_clients(error, "The control plane cannot be queried for offsets")
