"""Reads parts: bytes of WAL objects and segments from the stores, the rest from a broker. Several reads at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from struct import Struct
from typing import Final, NamedTuple

from strandline.conversion_api.values import PlannedRow
from strandline.errors import CorruptMessage
from strandline.model import Offset, TimestampMs, TopicIdPartition
from strandline.objects import ObjectNotFound
from strandline.pipeline.segments import metadata_of
from strandline.pipeline.source.brokers import TopicBrokers
from strandline.pipeline.source.committed import first_transactional, without_aborted
from strandline.pipeline.source.errors import RecordsGone, SourceFailed
from strandline.pipeline.source.parts import BrokerPart, Part, RowPart, SegmentPart
from strandline.pipeline.source.stores import LazyStores
from strandline.reads import FetchIsolation
from strandline.records import HEADER_SIZE, LOG_OVERHEAD
from strandline.remote.indexes import RemoteIndexes
from strandline.remote.indexes.segment import check_offset_index, check_time_index
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.values import IndexType, RemoteLogSegmentMetadata

CHUNK_BYTES: Final = 8 << 20
"""How much is read from a segment, or fetched from a broker, at once."""
_AHEAD_BYTES: Final = 16 << 20
_AHEAD_READS: Final = 16
_EMPTY_ANSWERS: Final = 20

# Base offset, length, last offset delta.
_SPAN: Final = Struct(">qi11xi")


class Chunk(NamedTuple):
    """Whole batches, in the order of the log."""

    data: bytes
    row: PlannedRow | None
    """If they are of a WAL object."""
    name: str
    """Where they come from."""
    end: Offset
    """Behind the last of them."""


class PartsFetcher:
    """Reads parts of one partition, one after the other."""

    def __init__(
        self,
        partition: TopicIdPartition,
        stores: LazyStores,
        brokers: TopicBrokers,
        *,
        isolation: FetchIsolation,
        min_timestamp: TimestampMs,
    ) -> None:
        self._partition, self._stores, self._brokers = partition, stores, brokers
        self._isolation, self._min_timestamp = isolation, min_timestamp

    async def chunks(self, parts: Sequence[Part]) -> AsyncGenerator[tuple[Part, Chunk], None]:
        """The batches of all parts, with the part that each chunk is of. Raises RecordsGone, and errors of stores."""
        for group in _grouped(parts):
            match group[0]:
                case RowPart():
                    source = self._rows([part for part in group if isinstance(part, RowPart)])
                case SegmentPart():
                    source = self._segment(group[0])
                case BrokerPart():
                    source = self._from_broker(group[0], group[0].start)
            async with aclosing(source) as found:
                async for part, chunk in found:
                    yield part, chunk

    # WAL objects

    async def _rows(self, parts: Sequence[RowPart]) -> AsyncGenerator[tuple[Part, Chunk], None]:
        """Rows are small: several are read at the same time, and those side by side in an object together."""
        reads = deque(_adjacent(parts))
        waiting: deque[tuple[list[RowPart], int, asyncio.Task[bytes]]] = deque()
        ahead = 0
        try:
            while reads or waiting:
                while reads and len(waiting) < _AHEAD_READS and (not waiting or ahead < _AHEAD_BYTES):
                    together = reads.popleft()
                    size = together[-1].placed.row.byte_offset + together[-1].size - together[0].placed.row.byte_offset
                    waiting.append((together, size, asyncio.ensure_future(self._read_rows(together, size))))
                    ahead += size
                together, size, reading = waiting.popleft()
                data = await reading
                ahead -= size
                for part in together:
                    row = part.placed.row
                    begin = row.byte_offset - together[0].placed.row.byte_offset
                    own = data if len(together) == 1 else data[begin : begin + row.byte_size]
                    if self._isolation is FetchIsolation.TXN_COMMITTED and first_transactional(own)[1] is not None:
                        # Only a broker knows what was aborted.
                        async with aclosing(self._from_broker(part, part.start, size=row.byte_size)) as found:
                            async for one in found:
                                yield one
                        continue
                    yield part, Chunk(own, row, f"Object {part.placed.object_key}", row.last_offset + 1)
        finally:
            for _, _, reading in waiting:
                reading.cancel()
            await asyncio.gather(*(reading for _, _, reading in waiting), return_exceptions=True)

    async def _read_rows(self, together: list[RowPart], size: int) -> bytes:
        key, begin = together[0].placed.object_key, together[0].placed.row.byte_offset
        objects = await self._stores.objects()
        try:
            data = await objects.get_range(key, begin, size)
        except ObjectNotFound as error:
            raise RecordsGone(f"Object {key} is not in {objects.url} any more.") from error
        if len(data) != size:
            raise SourceFailed(
                f"Object {key} in {objects.url} ends at byte {begin + len(data)}, but records of "
                f"{self._partition.topic_partition} lie there up to {begin + size}: it is damaged."
            )
        return bytes(data)

    # Remote segments

    async def _segment(self, part: SegmentPart) -> AsyncGenerator[tuple[Part, Chunk], None]:
        segment = metadata_of(self._partition, part.segment)
        name = f"Segment {part.segment.segment_id} of {self._partition.topic_partition}"
        extent = await self._extent(segment, part)
        if extent is None:
            # Nothing to decode, but the reader has to know that this part is over: the next one may be gone.
            yield part, Chunk(b"", None, name, part.end)
            return
        position, end = extent
        rest, next_read = b"", self._read_ahead(segment, position, end)
        try:
            while next_read is not None:
                data = await _present(next_read, name)
                position += len(data)
                next_read = self._read_ahead(segment, position, end)
                whole, behind = whole_batches(rest + bytes(data) if rest else bytes(data))
                rest = whole.rest
                if not whole.data:
                    continue
                if self._isolation is FetchIsolation.TXN_COMMITTED:
                    at, offset = first_transactional(whole.data)
                    if offset is not None:
                        yield part, Chunk(whole.data[:at], None, name, offset)
                        async with aclosing(self._from_broker(part, max(offset, part.start))) as found:
                            async for one in found:
                                yield one
                        return
                yield part, Chunk(whole.data, None, name, behind)
                if behind >= part.end:
                    return
            if rest or end < segment.segment_size_in_bytes:
                raise CorruptMessage(f"{name} does not hold offset {part.end - 1} where its index says: it is damaged.")
        finally:
            if next_read is not None:
                next_read.cancel()
                await asyncio.gather(next_read, return_exceptions=True)

    def _read_ahead(self, segment: RemoteLogSegmentMetadata, position: int, end: int) -> asyncio.Task[bytes] | None:
        if position >= end:
            return None
        return asyncio.ensure_future(self._read_segment(segment, position, min(CHUNK_BYTES, end - position)))

    async def _read_segment(self, segment: RemoteLogSegmentMetadata, position: int, length: int) -> bytes:
        remote = await self._stores.remote()
        return bytes(await remote.fetch_log_segment(segment, position, length))

    async def _extent(self, segment: RemoteLogSegmentMetadata, part: SegmentPart) -> tuple[int, int] | None:
        """The bytes of a segment that hold the records of a part, and are not all too old: by its indexes.

        None if all records of the part are too old.
        """
        size = segment.segment_size_in_bytes
        is_late = self._min_timestamp > 0 and size > CHUNK_BYTES
        if part.start == segment.start_offset and part.end > segment.end_offset and not is_late:
            return 0, size
        name = f"An index of segment {part.segment.segment_id}"
        remote = await self._stores.remote()
        offsets = await _present(asyncio.ensure_future(remote.fetch_index(segment, IndexType.OFFSET)), name)
        check_offset_index(segment, offsets)
        times = b""
        if is_late:
            times = await _present(asyncio.ensure_future(remote.fetch_index(segment, IndexType.TIMESTAMP)), name)
            check_time_index(segment, times)
        indexes = RemoteIndexes(segment.start_offset, offsets, times)
        start = part.start
        if is_late:
            start = max(start, indexes.first_offset_for_time(self._min_timestamp - 1))
            if start >= part.end:
                return None
        begin = indexes.position_of(start)
        if part.end > segment.end_offset:
            return begin, size
        # The last offset wanted is between an entry that is not above it and the end of the next entry's batch.
        last = indexes.next_position(indexes.position_of(part.end - 1))
        behind = None if last is None else indexes.next_position(last)
        return begin, size if behind is None else behind

    # The broker

    async def _from_broker(
        self, part: Part, offset: Offset, *, size: int = CHUNK_BYTES
    ) -> AsyncGenerator[tuple[Part, Chunk], None]:
        """Records from an offset on, up to the end of a part, about `size` bytes at a time."""
        empty = 0
        name = f"The broker's answer for {self._partition.topic_partition}"
        while offset < part.end:
            found = await asyncio.to_thread(
                self._brokers.fetch, self._partition, offset, self._isolation, max_bytes=size
            )
            whole, behind = whole_batches(found.data)
            if not whole.data:
                empty += 1
                size = min(2 * size, 1 << 30) if found.data else size
                if empty > _EMPTY_ANSWERS:
                    raise SourceFailed(
                        f"{self._partition.topic_partition} gives no records at offset {offset}, although its log goes "
                        f"on up to {part.end}."
                    )
                continue
            empty = 0
            data = whole.data
            if self._isolation is FetchIsolation.TXN_COMMITTED:
                data = without_aborted(data, found.aborted)
            offset = behind
            yield part, Chunk(data, None, name, behind)


class WholeBatches(NamedTuple):
    """Bytes that end with a batch, and those behind."""

    data: bytes
    rest: bytes


def whole_batches(data: bytes) -> tuple[WholeBatches, Offset]:
    """Split bytes behind the last batch that is whole, and the offset behind that; -1 if there is none."""
    position, behind, size = 0, -1, len(data)
    while size - position >= HEADER_SIZE:
        base, length, delta = _SPAN.unpack_from(data, position)
        if length < HEADER_SIZE - LOG_OVERHEAD and data[position + 16] >= 2:
            raise CorruptMessage(f"The batch of offset {base} gives its length as {length}: less than a header.")
        end = position + length + LOG_OVERHEAD
        if end > size:
            break
        position, behind = end, base + (delta if data[position + 16] >= 2 else 0) + 1
    if position == size:
        return WholeBatches(data, b""), behind
    return WholeBatches(data[:position], data[position:]), behind


async def _present(reading: asyncio.Future[bytes], name: str) -> bytes:
    try:
        return await reading
    except RemoteResourceNotFound as error:
        raise RecordsGone(f"{name} is not in remote storage any more.") from error


def _grouped(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Rows that follow each other together; others alone."""
    rows: list[Part] = []
    for part in parts:
        if isinstance(part, RowPart):
            rows.append(part)
            continue
        if rows:
            yield rows
            rows = []
        yield [part]
    if rows:
        yield rows


def _adjacent(parts: Sequence[RowPart]) -> Iterator[list[RowPart]]:
    """Rows that lie side by side in one object, up to a chunk together."""
    together: list[RowPart] = []
    size = 0
    for part in parts:
        row = part.placed.row
        last = together[-1].placed if together else None
        is_next = (
            last is not None
            and last.object_key == part.placed.object_key
            and last.row.byte_offset + last.row.byte_size == row.byte_offset
        )
        if together and (not is_next or size + row.byte_size > CHUNK_BYTES):
            yield together
            together, size = [], 0
        together.append(part)
        size += row.byte_size
    if together:
        yield together
