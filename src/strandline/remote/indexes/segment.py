"""The indexes of a remote segment in memory, and the checks that their bytes must pass."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import le, lt
from struct import Struct, unpack
from typing import Final

from strandline.log.transaction_index import AbortedTxn
from strandline.model import Offset, TimestampMs
from strandline.remote.ports import RemoteStorageError
from strandline.remote.values import IndexType, RemoteLogSegmentMetadata

_IS_LITTLE_ENDIAN: Final = sys.byteorder == "little"
_POSITION_MASK: Final = 0xFFFFFFFF
_LARGEST_RELATIVE: Final = 0x7FFFFFFF
_OFFSET_ENTRY: Final = 8
_TIME: Final = Struct(">qi")
_ABORTED: Final = Struct(">hqqqq")
_ABORTED_VERSION: Final = 0
# Entries that are checked at a time, so that other threads run in between.
_CHUNK: Final = 4096
# A search by time reads 256 KiB at once: in a segment of 1 GiB more entries would save nothing.
MOST_TIMES: Final = 4096
# Entries of a large offset index after `thin`: for a segment of 1 GiB one every 44 KB.
THIN_POSITIONS: Final = 24 * 1024


class RemoteIndexDamaged(RemoteStorageError):
    """The bytes of an index cannot belong to its segment."""


class RemoteIndexes:
    """The offset and time index of one remote segment. A reader may hold it as long as it likes: its answers may get
    coarser (`thin`), so that there is more to scan, but are never wrong.

    Entries of the offset index are (last offset of a batch, position of the batch), those of the time index
    (largest timestamp so far, last offset of the batch that carried it), both sparse and ascending.
    """

    __slots__ = ("_base", "_positions", "_times")

    def __init__(self, base_offset: Offset, offset_index: bytes, time_index: bytes) -> None:
        """From the bytes of files that have passed `check_offset_index` and `check_time_index`."""
        self._base = base_offset
        positions = array("Q")
        positions.frombytes(_without_tail(offset_index, _OFFSET_ENTRY))
        if _IS_LITTLE_ENDIAN:
            positions.byteswap()
        self._positions = positions
        self._times = _thinned(_without_tail(time_index, _TIME.size), _TIME.size, MOST_TIMES)

    @property
    def memory_bytes(self) -> int:
        """Approximate memory that it takes."""
        return len(self._positions) * _OFFSET_ENTRY + len(self._times)

    @property
    def is_dense(self) -> bool:
        """Whether `thin` makes it smaller."""
        return len(self._positions) > THIN_POSITIONS

    def thin(self) -> None:
        """Drop most entries of a large offset index."""
        self._positions = self._positions[:: _step(len(self._positions), THIN_POSITIONS)]

    def position_of(self, offset: Offset) -> int:
        """Where to start scanning for `offset`: the batch of the last entry not above it, else the beginning."""
        relative = max(offset - self._base, -1)
        index = bisect_right(self._positions, relative << 32 | _POSITION_MASK) if relative >= 0 else 0
        return self._positions[index - 1] & _POSITION_MASK if index else 0

    def next_position(self, position: int) -> int | None:
        """The first batch boundary after `position` that the index has."""
        index = bisect_right(self._positions, position, key=_position)
        return self._positions[index] & _POSITION_MASK if index < len(self._positions) else None

    def position_at_or_before(self, position: int) -> int:
        """The start of the last batch with an entry that starts at `position` or earlier, else 0."""
        index = bisect_right(self._positions, position, key=_position)
        return self._positions[index - 1] & _POSITION_MASK if index else 0

    def offset_at_or_after(self, position: int) -> Offset | None:
        """The last offset of the first batch with an entry that starts at `position` or later."""
        index = bisect_left(self._positions, position, key=_position)
        return self._base + (self._positions[index] >> 32) if index < len(self._positions) else None

    def first_offset_for_time(self, timestamp: TimestampMs) -> Offset:
        """Where to start scanning for the first record at `timestamp` or later: no earlier record is that new."""
        times = self._times
        index = bisect_right(range(len(times) // _TIME.size), timestamp, key=lambda at: _time(times, at)[0])
        return self._base + _time(times, index - 1)[1] if index else self._base


class SegmentAbortedTransactions:
    """The transactions that were aborted in one remote segment, in the order of their markers. Never changes.

    They are kept as the bytes of the file, which take a seventh of the memory of objects.
    """

    __slots__ = ("_entries",)

    is_dense = False

    def __init__(self, entries: bytes = b"") -> None:
        """From the bytes of a file that has passed `check_transaction_index`."""
        self._entries = entries

    @property
    def memory_bytes(self) -> int:
        """Approximate memory that it takes."""
        return len(self._entries)

    def thin(self) -> None:
        """No entry can be left out."""

    def __len__(self) -> int:
        return len(self._entries) // _ABORTED.size

    def __iter__(self) -> Iterator[AbortedTxn]:
        return self.ending_from(0)

    def ending_from(self, offset: Offset) -> Iterator[AbortedTxn]:
        """Transactions whose marker is at `offset` or later."""
        entries = self._entries
        first = bisect_left(range(len(self)), offset, key=lambda at: _last_offset(entries, at))
        for _, *fields in _ABORTED.iter_unpack(memoryview(entries)[first * _ABORTED.size :]):
            yield AbortedTxn(*fields)


def check_index(metadata: RemoteLogSegmentMetadata, kind: IndexType, data: bytes) -> None:
    """Raises RemoteIndexDamaged if these bytes cannot be that index of the segment."""
    match kind:
        case IndexType.OFFSET:
            check_offset_index(metadata, data)
        case IndexType.TIMESTAMP:
            check_time_index(metadata, data)
        case IndexType.TRANSACTION:
            check_transaction_index(metadata, data)
        case _:
            raise ValueError(f"There is no check for a {kind.value}.")


def check_offset_index(metadata: RemoteLogSegmentMetadata, data: bytes) -> None:
    """Raises RemoteIndexDamaged if this cannot be the offset index of the segment."""
    if len(data) % _OFFSET_ENTRY:
        raise _damaged(metadata, IndexType.OFFSET, f"{len(data)} bytes are not a whole number of entries")
    entries = _without_tail(data, _OFFSET_ENTRY)
    for offsets, positions in _columns(entries, "II", _OFFSET_ENTRY):
        if not (_ascends(offsets, lt) and _ascends(positions, lt)):
            raise _damaged(metadata, IndexType.OFFSET, "its entries are not in ascending order")
    if entries:
        relative, position = unpack(">II", entries[-_OFFSET_ENTRY:])
        if relative > min(_LARGEST_RELATIVE, metadata.end_offset - metadata.start_offset):
            raise _damaged(metadata, IndexType.OFFSET, f"it has an entry for offset {metadata.start_offset + relative}")
        if position >= metadata.segment_size_in_bytes:
            raise _damaged(metadata, IndexType.OFFSET, f"it has an entry for position {position}")


def check_time_index(metadata: RemoteLogSegmentMetadata, data: bytes) -> None:
    """Raises RemoteIndexDamaged if this cannot be the time index of the segment."""
    if len(data) % _TIME.size:
        raise _damaged(metadata, IndexType.TIMESTAMP, f"{len(data)} bytes are not a whole number of entries")
    entries = _without_tail(data, _TIME.size)
    for timestamps, offsets in _columns(entries, "qi", _TIME.size):
        if not (_ascends(timestamps, le) and _ascends(offsets, le)):
            raise _damaged(metadata, IndexType.TIMESTAMP, "its entries are not in ascending order")
    if entries:
        relative = _time(entries, len(entries) // _TIME.size - 1)[1]
        if not 0 <= relative <= metadata.end_offset - metadata.start_offset:
            offset = metadata.start_offset + relative
            raise _damaged(metadata, IndexType.TIMESTAMP, f"it has an entry for offset {offset}")


def check_transaction_index(metadata: RemoteLogSegmentMetadata, data: bytes) -> None:
    """Raises RemoteIndexDamaged if this cannot be the transaction index of the segment."""
    if len(data) % _ABORTED.size:
        raise _damaged(metadata, IndexType.TRANSACTION, f"{len(data)} bytes are not a whole number of entries")
    last = metadata.start_offset - 1
    for version, *fields in _ABORTED.iter_unpack(data):
        entry = AbortedTxn(*fields)
        if version != _ABORTED_VERSION or not last < entry.last_offset <= metadata.end_offset:
            raise _damaged(metadata, IndexType.TRANSACTION, f"it has an impossible entry: {entry}")
        last = entry.last_offset


def _without_tail(data: bytes, entry_size: int) -> bytes:
    """Without the zeros that Kafka preallocates, and that a killed broker leaves in the file."""
    if len(data) > entry_size and not any(data[-entry_size:]):
        size = len(data.rstrip(b"\0"))
        return data[: max(size + -size % entry_size, entry_size)]
    return data


def _step(count: int, most: int) -> int:
    """Keeping every n-th of `count` entries leaves at most `most`."""
    return max(-(-count // most), 1)


def _thinned(entries: bytes, size: int, most: int) -> bytes:
    """At most `most` of the entries, evenly spread, including the first."""
    step = _step(len(entries) // size, most)
    if step == 1:
        return entries
    return b"".join(entries[at : at + size] for at in range(0, len(entries), step * size))


def _columns(entries: bytes, entry: str, size: int) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """The two columns of an index in pieces that overlap by one entry."""
    for first in range(0, len(entries), _CHUNK * size):
        piece = entries[first : first + (_CHUNK + 1) * size]
        values = unpack(">" + entry * (len(piece) // size), piece)
        yield values[::2], values[1::2]


def _ascends(values: Sequence[int], order: Callable[[int, int], bool]) -> bool:
    return all(map(order, values, islice(values, 1, None)))


def _position(entry: int) -> int:
    return entry & _POSITION_MASK


def _time(times: bytes, index: int) -> tuple[int, int]:
    timestamp, relative = _TIME.unpack_from(times, index * _TIME.size)
    return timestamp, relative


def _last_offset(entries: bytes, index: int) -> Offset:
    last: int = _ABORTED.unpack_from(entries, index * _ABORTED.size)[3]
    return last


def _damaged(metadata: RemoteLogSegmentMetadata, kind: IndexType, fault: str) -> RemoteIndexDamaged:
    return RemoteIndexDamaged(
        f"The {kind.value} of {metadata.partition} for offsets {metadata.start_offset} to {metadata.end_offset} is "
        f"damaged: {fault}."
    )
