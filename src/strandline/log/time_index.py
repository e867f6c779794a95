"""The time index: up to which offset of a segment no record is newer than a given time."""

from __future__ import annotations

import os
from bisect import bisect_right
from itertools import pairwise
from struct import Struct
from typing import ClassVar, Final, NamedTuple

from strandline.log.files import TIME_INDEX
from strandline.log.index_file import IndexFile
from strandline.model import NO_TIMESTAMP

_ENTRY: Final = Struct(">qi")


class IndexedTimestamp(NamedTuple):
    """The largest timestamp up to `offset`, which is the last offset of the batch that carried it."""

    timestamp: int
    offset: int


class TimeIndex(IndexFile):
    """Sparse list of ascending timestamps. An entry is 12 bytes: timestamp, offset relative to the base."""

    __slots__ = ("_data", "_last")

    ENTRY_SIZE: ClassVar[int] = 12
    SUFFIX = TIME_INDEX

    def __init__(self, directory: str, base_offset: int) -> None:
        super().__init__(directory, base_offset)
        self._data: bytearray | None = None
        self._last: IndexedTimestamp | None = None

    def _loaded(self) -> bytearray:
        data = self._data
        if data is None:
            self._data = data = bytearray(self._read_entries())
        return data

    def _entry(self, data: bytes | bytearray, index: int) -> IndexedTimestamp:
        timestamp, relative = _ENTRY.unpack_from(data, index * 12)
        return IndexedTimestamp(timestamp, self.base_offset + relative)

    @property
    def count(self) -> int:
        """How many entries there are."""
        return len(self._loaded()) // 12

    @property
    def entries(self) -> list[IndexedTimestamp]:
        """All entries."""
        data = self._loaded()
        return [self._entry(data, i) for i in range(len(data) // 12)]

    @property
    def last(self) -> IndexedTimestamp:
        """The newest entry, or (-1, base offset). Reads only the end of a file that is not loaded."""
        if self._last is None:
            self._last = self._read_last()
        return self._last

    def _read_last(self) -> IndexedTimestamp:
        none = IndexedTimestamp(NO_TIMESTAMP, self.base_offset)
        if self._data is None:
            try:
                fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return none
            try:
                size = os.fstat(fd).st_size
                tail = os.pread(fd, 12, size - 12) if size >= 12 and size % 12 == 0 else b""
            finally:
                os.close(fd)
            if any(tail):
                return self._entry(tail, 0)
        data = self._loaded()
        return self._entry(data, len(data) // 12 - 1) if data else none

    def is_sane(self) -> bool:
        """False if timestamps or offsets go back: the index has to be rebuilt."""
        entries = self.entries
        return all(a.timestamp < b.timestamp and a.offset <= b.offset for a, b in pairwise(entries))

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if it is newer than the last one."""
        if timestamp > self.last.timestamp:
            self._loaded().extend(_ENTRY.pack(timestamp, offset - self.base_offset))
            self._last = IndexedTimestamp(timestamp, offset)

    def lookup(self, timestamp: int) -> IndexedTimestamp:
        """The last entry not newer than `timestamp`, else (-1, base offset)."""
        data = self._loaded()
        unpack = _ENTRY.unpack_from
        index = bisect_right(range(len(data) // 12), timestamp, key=lambda i: unpack(data, i * 12)[0])
        return self._entry(data, index - 1) if index else IndexedTimestamp(NO_TIMESTAMP, self.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at `offset` and above."""
        data = self._loaded()
        relative = offset - self.base_offset
        keep = len(data) // 12
        while keep and _ENTRY.unpack_from(data, (keep - 1) * 12)[1] >= relative:
            keep -= 1
        del data[keep * 12 :]
        self._last = None
        self._cut(keep)

    def clear(self) -> None:
        """Drop all entries."""
        self._data = bytearray()
        self._last = None
        self._written = 0
        self._is_longer_on_disk = True

    @property
    def memory_bytes(self) -> int:
        return len(self._data) if self._data is not None else 0

    def unload(self) -> None:
        self._data = None

    def _start_empty(self) -> None:
        self._data = bytearray()
        self._last = None

    def _unwritten(self) -> bytes:
        return bytes(self._data[self._written * 12 :]) if self._data is not None else b""
