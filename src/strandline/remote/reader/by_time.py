"""The first remote record that is not older than a timestamp, and the first of the newest ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Final

from strandline.clock import Clock
from strandline.errors import CorruptMessage
from strandline.model import LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.reads import FoundOffset
from strandline.records import HEADER_SIZE, BatchHeader, Buffer, read_header, read_records
from strandline.remote.ports import OrderedMetadata, RemoteLogMetadataManager, RemoteStorageError
from strandline.remote.reader.errors import RemoteReadErrors
from strandline.remote.reader.finding import epochs_from, metadata_not_ready
from strandline.remote.reader.log import ReadableLog
from strandline.remote.reader.segments import OpenSegment, OpenSegments, SegmentBytes
from strandline.remote.turns import AT_ONCE
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState

# The time index has an entry every 4 KB, if the batch was the newest so far.
_STEP: Final = 256 * 1024


class SearchByTime:
    """Searches remote segments in the order of their offsets."""

    def __init__(
        self, metadata: RemoteLogMetadataManager, segments: OpenSegments, errors: RemoteReadErrors, clock: Clock
    ) -> None:
        self._metadata, self._segments, self._errors, self._clock = metadata, segments, errors, clock

    async def find(self, partition: TopicIdPartition, log: ReadableLog, timestamp: TimestampMs) -> FoundOffset | None:
        """The first record at `timestamp` or later in segments that are not local; None if they have none.

        Raises KafkaStorageError.
        """
        start = log.log_start_offset
        async with aclosing(self._candidates(partition, log, timestamp, start)) as candidates:
            async for metadata in candidates:
                found = await self._search(metadata, timestamp, start)
                if found is not None:  # otherwise its newest records lie below the log start
                    return found
        return None

    async def find_max(self, partition: TopicIdPartition, log: ReadableLog) -> FoundOffset | None:
        """The first record with the largest timestamp in segments that are not local; None if they have none.

        Raises KafkaStorageError.
        """
        start = log.log_start_offset
        newest: FoundOffset | None = None
        searched: set[RemoteLogSegmentId] = set()
        while True:
            # Only segments with newer records than the newest that was found: one is searched, rarely a second.
            latest: RemoteLogSegmentMetadata | None = None
            async for metadata in self._candidates(
                partition, log, 0 if newest is None else newest.timestamp + 1, start
            ):
                is_later = latest is None or metadata.max_timestamp_ms > latest.max_timestamp_ms
                if is_later and metadata.segment_id not in searched:
                    latest = metadata
            if latest is None:
                return newest
            searched.add(latest.segment_id)
            found = await self._search(latest, latest.max_timestamp_ms, start)
            if found is None:  # the newest is deleted, or no record has a timestamp
                found = await self._newest(latest, start)
            if found is not None and (newest is None or found.timestamp > newest.timestamp):
                newest = found

    async def _search(
        self, metadata: RemoteLogSegmentMetadata, timestamp: TimestampMs, start: Offset
    ) -> FoundOffset | None:
        """The first record at `timestamp` or later, and not below `start`, in one segment."""
        try:
            return await _search(await self._segments.open(metadata), timestamp, start)
        except (RemoteStorageError, CorruptMessage) as error:
            raise self._errors.error_of(metadata, error) from error

    async def _newest(self, metadata: RemoteLogSegmentMetadata, start: Offset) -> FoundOffset | None:
        """The first of the newest records from `start` on, in one segment: all of its batch headers are read."""
        try:
            return await _newest(await self._segments.open(metadata), start)
        except (RemoteStorageError, CorruptMessage) as error:
            raise self._errors.error_of(metadata, error) from error

    async def _candidates(
        self, partition: TopicIdPartition, log: ReadableLog, timestamp: TimestampMs, start: Offset
    ) -> AsyncGenerator[RemoteLogSegmentMetadata]:
        """Segments of the log's own history that may have such a record, by start offset, found in short turns.

        Each is one that lookups find when it is given: others are deleted meanwhile. Raises KafkaStorageError.
        """
        epochs = dict(epochs_from(log, start))
        try:
            for count, metadata in enumerate(self._from_time(partition, timestamp), 1):
                if count % AT_ONCE == 0:
                    await self._clock.sleep(0)
                if metadata.start_offset >= log.local_log_start_offset:
                    break
                if self._is_found(metadata, epochs, start):
                    yield metadata
        except RemoteStorageError as error:
            raise metadata_not_ready(partition, error) from error

    def _from_time(self, partition: TopicIdPartition, timestamp: TimestampMs) -> Iterator[RemoteLogSegmentMetadata]:
        if isinstance(self._metadata, OrderedMetadata):
            return self._metadata.remote_log_segments_from_time(partition, timestamp)
        known = self._metadata.iter_remote_log_segments(partition)
        return (metadata for metadata in known if metadata.max_timestamp_ms >= timestamp)

    def _is_found(
        self, metadata: RemoteLogSegmentMetadata, epochs: Mapping[LeaderEpoch, Offset], start: Offset
    ) -> bool:
        """Whether lookups find a segment: another leader may have copied these offsets, and they find that, or none."""
        if metadata.state is not RemoteLogSegmentState.COPY_SEGMENT_FINISHED or metadata.end_offset < start:
            return False
        for epoch, first in metadata.segment_leader_epochs.items():
            if epoch in epochs:
                inside = max(first, epochs[epoch], start)
                known = self._metadata.remote_log_segment_metadata(metadata.partition, epoch, inside)
                if known is not None and known.segment_id == metadata.segment_id:
                    return True
        return False


async def _search(segment: OpenSegment, timestamp: TimestampMs, start: Offset) -> FoundOffset | None:
    indexes = segment.indexes
    position = indexes.position_of(max(indexes.first_offset_for_time(timestamp), start))
    async for header, batch in _batches(segment.source, position):
        if header.max_timestamp >= timestamp and header.last_offset >= start:
            found = await asyncio.to_thread(_first_record, await batch(), timestamp, start, header.leader_epoch)
            if found is not None:
                return found
    return None


async def _newest(segment: OpenSegment, start: Offset) -> FoundOffset | None:
    newest: FoundOffset | None = None
    async for header, batch in _batches(segment.source, segment.indexes.position_of(start)):
        if header.last_offset >= start and (newest is None or header.max_timestamp > newest.timestamp):
            found = await asyncio.to_thread(_newest_record, await batch(), start, header.leader_epoch)
            if found is not None and (newest is None or found.timestamp > newest.timestamp):
                newest = found
    return newest


async def _batches(
    source: SegmentBytes, position: int
) -> AsyncIterator[tuple[BatchHeader, Callable[[], Awaitable[Buffer]]]]:
    """The batches from a position on: the header of each, and what brings all of it. Raises CorruptMessage."""
    while position < source.size:
        chunk = await source.read(position, _STEP)
        at = 0
        while len(chunk) - at >= HEADER_SIZE:
            header = read_header(chunk, at)
            yield header, partial(_whole, source, chunk, position, at, header.size)
            at += header.size
        if at == 0:
            raise CorruptMessage(f"There is no complete batch at position {position} of {source.size}.")
        position += at


async def _whole(source: SegmentBytes, chunk: Buffer, position: int, at: int, size: int) -> Buffer:
    """A batch that begins in a chunk of its segment."""
    batch = chunk[at : at + size]
    return batch if len(batch) == size else await source.read(position + at, size)


def _first_record(batch: Buffer, timestamp: TimestampMs, start: Offset, leader_epoch: int) -> FoundOffset | None:
    for record in read_records(batch):
        if record.timestamp >= timestamp and record.offset >= start:
            return FoundOffset(record.timestamp, record.offset, leader_epoch)
    return None


def _newest_record(batch: Buffer, start: Offset, leader_epoch: int) -> FoundOffset | None:
    """The first of the newest records; None if there is none, or none has a timestamp."""
    records = [record for record in read_records(batch) if record.timestamp >= 0 and record.offset >= start]
    newest = max(records, key=lambda record: record.timestamp, default=None)
    return None if newest is None else FoundOffset(newest.timestamp, newest.offset, leader_epoch)
