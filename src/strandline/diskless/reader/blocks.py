"""Blocks: the batches of one row of the control plane, in memory, as they are sent to consumers.

A block comes from the writer, which has just stamped the batches, or from an object, which holds them as producers sent
them. A binary search finds the batch of an offset, and the batches that fit into a number of bytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from sys import getsizeof
from typing import TYPE_CHECKING, Final

from strandline.controlplane import BatchRow
from strandline.diskless.reader.memory import held_bytes
from strandline.diskless.values import CommittedBlock
from strandline.errors import CorruptMessage
from strandline.model import Offset
from strandline.records import (
    Buffer,
    TimestampType,
    read_header,
    stamp_log_append_time,
)
from strandline.records.stamping import stamp_batches

if TYPE_CHECKING:
    from strandline.diskless.reader.cache import CacheRegion

# Memory of CPython besides the bytes: the block with its two integers and its entries in the cache; for each view, the
# view and the object that holds the buffer. tests/diskless/reader/test_blocks.py measures them.
_BLOCK_OVERHEAD: Final = 400
_VIEW_OVERHEAD: Final = 184 + 144


class Block:
    """Whole batches with dense offsets `base_offset` to `last_offset`. The bytes never change."""

    __slots__ = (
        "_last_offsets",
        "_starts",
        "base_offset",
        "cost",
        "is_loaded",
        "last_offset",
        "region",
        "size",
        "views",
    )

    def __init__(
        self,
        base_offset: Offset,
        last_offsets: array[int],
        starts: array[int],
        views: list[memoryview],
        buffers: Sequence[bytearray | memoryview],
    ) -> None:
        """`starts` has one entry more than there are batches. `views` has one for each batch, or one for all."""
        self.base_offset = base_offset
        self.last_offset: Offset = last_offsets[-1]
        self._last_offsets = last_offsets
        self._starts = starts
        self.views = views
        """All bytes, in order."""
        self.size: int = starts[-1]
        self.cost = _BLOCK_OVERHEAD + getsizeof(last_offsets) + getsizeof(starts) + _VIEW_OVERHEAD * len(views)
        """Memory that goes away with the block."""
        for buffer in buffers:
            self.cost += held_bytes(buffer)
        self.region: CacheRegion | None = None
        """The cache region that holds the block; None if it is not in the cache."""
        self.is_loaded = False
        """Whether it was read from an object."""

    @classmethod
    def of_commit(cls, committed: CommittedBlock) -> Block:
        """A block of batches that the writer has just committed, without a copy."""
        last_offsets, starts = array("q"), array("q", (0,))
        offset, position = committed.base_offset, 0
        for batch in committed.batches:
            offset += read_header(batch).last_offset_delta + 1
            position += len(batch)
            last_offsets.append(offset - 1)
            starts.append(position)
        views = [memoryview(batch) for batch in committed.batches]
        return cls(committed.base_offset, last_offsets, starts, views, committed.batches)

    @classmethod
    def of_object(cls, row: BatchRow, data: Buffer) -> Block:
        """A block of the bytes of a row: checks them, stamps offsets, epoch and LogAppendTime. Raises CorruptMessage.

        A bytearray is taken over, anything else is copied.
        """
        if len(data) != row.byte_size:
            raise _damaged(row, f"only {len(data)} bytes are there")
        buffer = data if isinstance(data, bytearray) else bytearray(data)
        last_offsets, starts = array("q"), array("q", (0,))
        _stamp_row(row, buffer, 0, last_offsets, starts)
        block = cls(row.base_offset, last_offsets, starts, [memoryview(buffer)], (buffer,))
        block.is_loaded = True
        return block

    @classmethod
    def of_rows(cls, rows: Sequence[BatchRow], pieces: Sequence[Buffer]) -> Block:
        """One block of the bytes of rows that follow each other without a gap. Raises CorruptMessage.

        Many small rows in one block cost a fraction of a block for each.
        """
        if len(rows) == 1:
            return cls.of_object(rows[0], pieces[0])
        buffer = bytearray().join(pieces)
        last_offsets, starts = array("q"), array("q", (0,))
        position = 0
        for row, piece in zip(rows, pieces, strict=True):
            if len(piece) != row.byte_size:
                raise _damaged(row, f"only {len(piece)} bytes are there")
            _stamp_row(row, buffer, position, last_offsets, starts)
            position += row.byte_size
        block = cls(rows[0].base_offset, last_offsets, starts, [memoryview(buffer)], (buffer,))
        block.is_loaded = True
        return block

    @property
    def batch_count(self) -> int:
        return len(self._last_offsets)

    def find(self, offset: Offset) -> int:
        """The number of the batch that holds an offset of this block."""
        return bisect_left(self._last_offsets, offset)

    def end_within(self, first: int, max_bytes: int) -> int:
        """The number of the first batch, from `first` on, that no longer fits into `max_bytes`."""
        starts = self._starts
        return bisect_right(starts, starts[first] + max_bytes, first) - 1 if max_bytes > 0 else first

    def size_of(self, first: int, end: int) -> int:
        """Bytes of the batches `first` to `end` (not included)."""
        return self._starts[end] - self._starts[first]

    def views_of(self, first: int, end: int) -> list[memoryview]:
        """The batches `first` to `end` (not included)."""
        if len(self.views) == len(self._last_offsets):
            return self.views[first:end]
        return [self.views[0][self._starts[first] : self._starts[end]]]

    def next_offset(self, end: int) -> Offset:
        """The offset after the batch before `end`."""
        return self._last_offsets[end - 1] + 1 if end else self.base_offset

    def batch(self, number: int) -> memoryview:
        """One batch."""
        return self.views_of(number, number + 1)[0]

    def has_batch(self, offset: Offset, batch: bytearray | memoryview) -> bool:
        """Whether the batch at an offset of this block is this one, by its checksum."""
        header = read_header(self.batch(self.find(offset)))
        return header.base_offset == offset and header.crc == read_header(batch).crc

    def __repr__(self) -> str:
        return f"Block(offsets {self.base_offset}-{self.last_offset}, {self.batch_count} batches, {self.size} bytes)"


def _stamp_row(row: BatchRow, buffer: bytearray, start: int, last_offsets: array[int], starts: array[int]) -> None:
    """Check the batches of a row, which begin at `start`, stamp them, and note where each ends."""
    first, end = len(starts) - 1, start + row.byte_size
    position, offset = stamp_batches(
        buffer,
        start,
        end,
        base_offset=row.base_offset,
        leader_epoch=row.leader_epoch,
        last_offsets=last_offsets,
        ends=starts,
    )
    if position < end:
        raise _fault_at(row, buffer, position, start)
    if row.timestamp_type is TimestampType.LOG_APPEND_TIME:
        for batch in starts[first:-1]:
            stamp_log_append_time(buffer, batch, row.log_append_time_ms)
    if offset != row.last_offset + 1:
        raise _damaged(row, f"the batches end with offset {offset - 1}")


def _fault_at(row: BatchRow, buffer: bytearray, position: int, start: int) -> CorruptMessage:
    """What is wrong with the batch at a position."""
    try:
        header = read_header(buffer, position)
    except CorruptMessage as error:
        return _damaged(row, str(error))
    if header.is_legacy or header.last_offset_delta < 0:
        return _damaged(row, f"no batch of format 2 begins at position {position - start}")
    if position + header.size > start + row.byte_size:
        return _damaged(
            row, f"the batch at position {position - start} claims {header.size} bytes and reaches beyond the end"
        )
    return _damaged(row, f"the checksum of the batch at position {position - start} does not match its bytes")


def _damaged(row: BatchRow, why: str) -> CorruptMessage:
    end = row.byte_offset + row.byte_size
    return CorruptMessage(
        f"The object {row.object_key} is damaged in the bytes {row.byte_offset} to {end}, which should hold the "
        f"offsets {row.base_offset} to {row.last_offset}: {why}. `strandline fsck --deep` finds all damaged objects."
    )
