"""Where in a segment a read begins and ends: from the offset index and a few batch headers."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from strandline.errors import CorruptMessage
from strandline.model import Offset
from strandline.records import HEADER_SIZE, LOG_OVERHEAD, Buffer, read_header
from strandline.records.batch import CURRENT_MAGIC
from strandline.remote.indexes import RemoteIndexes
from strandline.remote.reader.segments import SegmentBytes

# The offset index has an entry every 4 KB: the scan passes the headers of some small batches.
_LOOKUP: Final = 2048

# Base offset, length, magic, last offset delta.
_unpack_span: Final = Struct(">qi4xb6xi").unpack_from


class Located(NamedTuple):
    """A batch: where it starts and ends."""

    position: int
    end: int


def locate_now(source: SegmentBytes, position: int, offset: Offset) -> Located | int | None:
    """The first batch from `position` on that ends at or after `offset`; None if there is none in the segment.

    A number is the position of a header that is not loaded: continue from there. Raises CorruptMessage.
    """
    size = source.size
    while position < size:
        chunk = source.peek(position, _LOOKUP)
        if chunk is None:
            return position
        found = _scan(chunk, position, size, offset)
        if isinstance(found, Located):
            return found
        position = found
    return None


async def locate(source: SegmentBytes, position: int, offset: Offset) -> Located | None:
    """The same, loading headers as needed. Raises CorruptMessage or RemoteStorageError."""
    found = locate_now(source, position, offset)
    while isinstance(found, int):
        step = _scan(await source.read(found, _LOOKUP), found, source.size, offset)
        found = step if isinstance(step, Located) else locate_now(source, step, offset)
    return found


def _scan(chunk: Buffer, position: int, size: int, offset: Offset) -> Located | int:
    """The batch, or the position of the first header that is not complete in the chunk."""
    at = 0
    last = len(chunk) - HEADER_SIZE
    while at <= last:
        base_offset, length, magic, delta = _unpack_span(chunk, at)
        batch_size = length + LOG_OVERHEAD
        if magic != CURRENT_MAGIC or batch_size < HEADER_SIZE:
            header = read_header(chunk, at)
            delta, batch_size = header.last_offset_delta, header.size
        start = position + at
        if start + batch_size > size:
            raise CorruptMessage(f"The batch at position {start} ends after the segment, which has {size} bytes.")
        if base_offset + delta >= offset:
            return Located(start, start + batch_size)
        at += batch_size
    if at == 0:
        raise CorruptMessage(f"There is no complete batch at position {position} of {size}.")
    return position + at


def planned_end(indexes: RemoteIndexes, position: int, max_bytes: int, size: int) -> int:
    """How far to read for an answer of `max_bytes` that begins at `position`, or a little after it."""
    end = position + max_bytes
    if end >= size:
        return size
    boundary = indexes.position_at_or_before(end)
    return boundary if boundary > position else end


def answer_length(indexes: RemoteIndexes, batch: Located, max_bytes: int, size: int) -> int:
    """How many bytes to send from a batch on, at most `max_bytes`; 0 if not even that batch fits.

    Ends at the last batch boundary that the index has within `max_bytes`: the consumer would drop an incomplete batch
    and fetch it again.
    """
    position = batch.position
    if size - position <= max_bytes:
        return size - position
    if batch.end - position > max_bytes:
        return 0
    boundary = indexes.position_at_or_before(position + max_bytes)
    return boundary - position if boundary >= batch.end else max_bytes
