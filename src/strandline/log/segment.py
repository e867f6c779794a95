"""One segment of a log: a file of batches and its three indexes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from strandline.log.files import LOG, offset_name
from strandline.log.index_file import LoadedIndexes
from strandline.log.offset_index import OffsetIndex
from strandline.log.scan import find_batch, iter_file_batches, iter_file_headers
from strandline.log.segment_file import SegmentFile
from strandline.log.time_index import IndexedTimestamp, TimeIndex
from strandline.log.transaction_index import TransactionIndex
from strandline.model import INT32_MAX, NO_TIMESTAMP
from strandline.reads import FoundOffset
from strandline.records import BatchHeader, read_header, read_records

_ENTRIES_KEPT_UNWRITTEN: Final = 512


class RollLimits(NamedTuple):
    """When a segment is full. Made once for each configuration of the log."""

    segment_bytes: int
    segment_ms: int
    offset_entries: int
    time_entries: int


class LogSegment:
    """Batches from `base_offset` on, in one file, with its offset, time and transaction index.

    `reserved` is where the next batch goes; `size` is how far readers may look. They differ while writes are under way.
    """

    __slots__ = (
        "_bytes_since_index",
        "_cache",
        "_first_timestamp",
        "_max_timestamp",
        "base_offset",
        "created_ms",
        "file",
        "jitter_ms",
        "offset_index",
        "reserved",
        "time_index",
        "txn_index",
    )

    def __init__(
        self,
        directory: str,
        base_offset: int,
        *,
        size: int,
        created_ms: int,
        cache: LoadedIndexes,
        has_txn_index: bool = False,
        state: str = "",
    ) -> None:
        self.base_offset = base_offset
        self.file = SegmentFile(os.path.join(directory, offset_name(base_offset, LOG) + state), size)
        self.reserved = size
        self.offset_index = OffsetIndex(directory, base_offset)
        self.time_index = TimeIndex(directory, base_offset)
        self.txn_index = TransactionIndex(directory, base_offset, exists=has_txn_index)
        if state:
            self.offset_index.assume_state(state)
            self.time_index.assume_state(state)
            self.txn_index.assume_state(state)
        self.created_ms = created_ms
        self.jitter_ms = 0
        self._cache = cache
        self._bytes_since_index = 0
        self._max_timestamp: IndexedTimestamp | None = None
        self._first_timestamp: int | None = None

    @classmethod
    def create(
        cls,
        directory: str,
        base_offset: int,
        *,
        created_ms: int,
        cache: LoadedIndexes,
        preallocate: int = 0,
        state: str = "",
    ) -> LogSegment:
        """Create the files of a new segment."""
        segment = cls(directory, base_offset, size=0, created_ms=created_ms, cache=cache, state=state)
        segment.file.create()
        if preallocate:
            segment.file.preallocate(preallocate)
        segment.file.close()
        # The index files follow with the first batch: most of many partitions never get one.
        segment.offset_index.reset()
        segment.time_index.reset()
        return segment

    @property
    def size(self) -> int:
        """Bytes that readers may see."""
        return self.file.size

    @property
    def max_timestamp(self) -> IndexedTimestamp:
        """The largest timestamp and the last offset of the batch that carried it; (-1, base) if there is none."""
        if self._max_timestamp is None:
            self._max_timestamp = self.time_index.last
        return self._max_timestamp

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of a record, or when the file was last changed if no record has one."""
        timestamp = self.max_timestamp.timestamp
        return timestamp if timestamp >= 0 else int(os.stat(self.file.path).st_mtime * 1000)

    # Appending

    def should_roll(self, size: int, max_timestamp: int, last_offset: int, now_ms: int, limits: RollLimits) -> bool:
        """True if a batch of `size` bytes has to go to a new segment."""
        reserved = self.reserved
        if reserved > limits.segment_bytes - size or last_offset - self.base_offset > INT32_MAX:
            return True
        if not reserved:
            return False
        first = self._first_timestamp
        if first is None:
            first = self.first_timestamp
        waited = max_timestamp - first if first >= 0 and max_timestamp >= 0 else now_ms - self.created_ms
        return (
            waited > limits.segment_ms - self.jitter_ms
            or self.offset_index.count >= limits.offset_entries
            or self.time_index.count >= limits.time_entries
        )

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch; -1 if there is no batch."""
        if self._first_timestamp is None and self.reserved:
            for _, header in iter_file_headers(self.file, 0, self.reserved):
                self._first_timestamp = header.max_timestamp
                break
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    def reserve(self, size: int, max_timestamp: int, last_offset: int, interval: int) -> int:
        """Reserve the place of a batch in the file, and index it if an entry is due. Returns its position."""
        position = self.reserved
        newest = self._max_timestamp
        if newest is None:
            newest = self.max_timestamp
        if max_timestamp > newest[0]:
            self._max_timestamp = newest = IndexedTimestamp(max_timestamp, last_offset)
        if not position:
            self._first_timestamp = max_timestamp
            self.offset_index.create()
            self.time_index.create()
        if self._bytes_since_index > interval:
            self._add_index_entry(last_offset, position, newest)
            self._bytes_since_index = 0
        self._bytes_since_index += size
        self.reserved = position + size
        return position

    def _add_index_entry(self, last_offset: int, position: int, newest: IndexedTimestamp) -> None:
        self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(newest[0], newest[1])
        if self.offset_index.unwritten_count >= _ENTRIES_KEPT_UNWRITTEN:
            self.write_indexes()

    def finish(self) -> bool:
        """End the segment: the time index gets its last entry, and the indexes go to their files.

        True if a file changed.
        """
        newest = self.max_timestamp
        if newest.timestamp >= 0:
            self.time_index.maybe_append(newest.timestamp, newest.offset)
        is_changed = self.write_indexes()
        # From now on they stay in memory only while the segment is being read.
        self._cache.touch(self.offset_index)
        self._cache.touch(self.time_index)
        return is_changed

    def write_indexes(self) -> bool:
        """Bring the index files up to date. True if there was something to write. Nothing is forced to disk."""
        has_offsets = self.offset_index.write()
        return self.time_index.write() or has_offsets

    # Reading

    def locate(self, offset: int, end: int) -> tuple[int, int] | None:
        """(position, end) of the first batch before `end` whose last offset is at least `offset`."""
        index = self.offset_index
        if not index.is_loaded:
            index.lookup(offset)
            self._cache.touch(index)
        return find_batch(self.file, index.lookup(offset), end, offset)

    def headers(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of the batches from a position on."""
        return iter_file_headers(self.file, start, self.file.size if end is None else end)

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """(position, header, bytes) of the batches from a position on."""
        return iter_file_batches(self.file, start, self.file.size if end is None else end)

    def read_next_offset(self) -> int:
        """The offset after the last batch in the file; the base offset if there is none."""
        next_offset = self.base_offset
        for _, header in self.headers(self.offset_index.last.position):
            next_offset = header.next_offset
        return next_offset

    def find_timestamp(self, timestamp: int, start_offset: int) -> FoundOffset | None:
        """The first record from `start_offset` on that is not older than `timestamp`."""
        from_offset = max(self.time_index.lookup(timestamp).offset, start_offset)
        position = self.offset_index.lookup(from_offset)
        self._cache.touch(self.time_index)
        self._cache.touch(self.offset_index)
        for _, header, batch in iter_file_batches(self.file, position, self.file.size):
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                for record in read_records(batch):
                    if record.timestamp >= timestamp and record.offset >= start_offset:
                        return FoundOffset(record.timestamp, record.offset, header.leader_epoch)
        return None

    def find_max_timestamp(self) -> FoundOffset | None:
        """The first record with the largest timestamp."""
        newest = self.max_timestamp
        found = self.locate(newest.offset, self.file.size) if newest.timestamp >= 0 else None
        if found is None:
            return None
        batch = self.file.read(found[0], found[1] - found[0])
        header = read_header(batch)
        for record in read_records(batch):
            if record.timestamp == header.max_timestamp:
                return FoundOffset(record.timestamp, record.offset, header.leader_epoch)
        return None

    def upper_bound_offset(self, end_position: int) -> int | None:
        """An offset at or after everything in front of `end_position`; None if the indexes cannot say."""
        return self.offset_index.offset_at_or_after(end_position)

    # Changing

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that holds `offset` and all later ones."""
        found = self.locate(offset, self.file.size)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.write_indexes()
        if found is not None:
            self.file.truncate(found[0])
            self.reserved = found[0]
        self._bytes_since_index = 0
        self._max_timestamp = None
        if not self.reserved:
            self._first_timestamp = None
        self._recompute_max_timestamp()

    def _recompute_max_timestamp(self) -> None:
        """The time index may end before the last batches: look at those too."""
        newest = self.time_index.last
        for _, header in self.headers(self.offset_index.lookup(newest.offset)):
            if header.max_timestamp > newest.timestamp:
                newest = IndexedTimestamp(header.max_timestamp, header.last_offset)
        self._max_timestamp = newest

    def rename(self, state: str) -> None:
        """Give all files another state suffix such as `.deleted`; "" makes them live."""
        directory = os.path.dirname(self.file.path)
        self.file.rename(os.path.join(directory, offset_name(self.base_offset, LOG) + state))
        self.offset_index.rename(state)
        self.time_index.rename(state)
        self.txn_index.rename(state)

    def forget_indexes(self) -> None:
        """The segment is deleted: take its indexes out of the cache. On the event loop."""
        self._cache.forget(self.offset_index)
        self._cache.forget(self.time_index)

    def remove_files(self) -> None:
        """Delete everything from disk. Readers that hold the file can finish."""
        self.offset_index.remove()
        self.time_index.remove()
        self.txn_index.remove()
        self.file.unlink()

    def move_to(self, directory: str) -> None:
        """Follow the log to another directory name."""
        self.file.path = os.path.join(directory, os.path.basename(self.file.path))
        self.offset_index.move_to(directory)
        self.time_index.move_to(directory)
        self.txn_index.move_to(directory)

    def __repr__(self) -> str:
        return f"LogSegment(base_offset={self.base_offset}, size={self.size}, reserved={self.reserved})"
