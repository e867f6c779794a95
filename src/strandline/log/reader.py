"""Reading a log: by offset and by time."""

from __future__ import annotations

from typing import Final

from strandline.errors import OffsetMovedToTieredStorage, OffsetOutOfRange, StrandlineError
from strandline.log.applied_config import AppliedConfig
from strandline.log.offsets import PartitionOffsets
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.segment import LogSegment
from strandline.log.segments import Segments
from strandline.log.values import FileSlice
from strandline.reads import AbortedTransaction, FetchIsolation, FoundOffset, ReadResult

# An attribute of an enumeration costs as much as a call.
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED


class LogReader:
    """Reads the local segments of a log. Nothing here changes it."""

    __slots__ = ("_applied", "_directory", "_offsets", "_segments")

    def __init__(
        self, directory: PartitionDirectory, applied: AppliedConfig, offsets: PartitionOffsets, segments: Segments
    ) -> None:
        self._directory = directory
        self._applied = applied
        self._offsets = offsets
        self._segments = segments

    def read(self, offset: int, max_bytes: int, isolation: FetchIsolation, min_one_message: bool) -> ReadResult:
        """See `UnifiedLog.read`."""
        directory = self._directory
        if directory.env.directory.error is not None or directory.is_closed:
            directory.check_online()
        offsets = self._offsets
        end = offsets.end
        if not offsets.local_start <= offset <= end:
            raise self._not_here(offset)
        upper = offsets.high_watermark if isolation is _HIGH_WATERMARK else self._upper_offset(isolation)
        records = None
        if offset < upper:
            try:
                records = self._slice(offset, upper, max_bytes, min_one_message)
            except OSError as error:
                raise directory.fail(error) from error
        aborted = None
        if isolation is _TXN_COMMITTED:
            aborted = [] if records is None else self._aborted_in(offset, upper, records)
        return ReadResult(records, offsets.high_watermark, offsets.last_stable, offsets.start, aborted)

    def _not_here(self, offset: int) -> StrandlineError:
        partition = self._directory.topic_partition
        start, local_start, end = self._offsets.start, self._offsets.local_start, self._offsets.end
        if self._applied.is_remote and start <= offset < local_start:
            return OffsetMovedToTieredStorage(
                f"Offset {offset} of {partition} is in remote storage; the local log starts at {local_start}."
            )
        return OffsetOutOfRange(f"Offset {offset} of {partition} is not between {start} and {end}.")

    def _upper_offset(self, isolation: FetchIsolation) -> int:
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self._offsets.high_watermark
        return self._offsets.end if isolation is FetchIsolation.LOG_END else self._offsets.last_stable

    def _slice(self, offset: int, upper: int, max_bytes: int, min_one_message: bool) -> FileSlice | None:
        segment = self._segments.floor(offset)
        while segment is not None and segment.base_offset < upper:
            limit = self._limit_in(segment, upper)
            found = self._find(segment, offset, limit)
            if found is not None:
                position, batch_end = found
                length = limit - position
                if length > max_bytes:
                    length = self._whole_batches(segment, position, max_bytes, batch_end)
                    if length == 0:
                        # Part of a batch helps no reader: clients take it for a record that is too large for them.
                        if not min_one_message:
                            return None
                        length = batch_end - position
                return FileSlice(segment.file, position, length)
            segment = self._segments.after(segment.base_offset)
        return None

    def _whole_batches(self, segment: LogSegment, position: int, max_bytes: int, batch_end: int) -> int:
        """How many of `max_bytes` to give: up to the last batch that the index knows to start within them.

        What follows it may be cut inside a batch, which the reader would throw away and ask for again. 0 if not even
        the first batch fits.
        """
        if batch_end - position > max_bytes:
            return 0
        boundary = segment.offset_index.position_at_or_before(position + max_bytes)
        return boundary - position if boundary >= batch_end else max_bytes

    def _find(self, segment: LogSegment, offset: int, limit: int) -> tuple[int, int] | None:
        """(position, end) of the first batch before `limit` that ends at or after `offset`."""
        if segment is self._segments.active:
            recent = self._segments.recent.find(offset, segment.file.size)
            if recent is not None:
                return recent if recent[0] < limit else None
        return segment.locate(offset, limit)

    def _limit_in(self, segment: LogSegment, upper: int) -> int:
        """How far into `segment` a reader may go that sees offsets below `upper`."""
        size = segment.file.size
        if upper == self._offsets.end:
            return size
        following = self._segments.after(segment.base_offset)
        if following is not None and following.base_offset <= upper:
            return size
        found = self._find(segment, upper, size)
        return size if found is None else found[0]

    def available_bytes(self, offset: int, isolation: FetchIsolation) -> int:
        """Bytes that a reader at `offset` could have from the local log now. 0 if the offset is not in it."""
        upper = self._upper_offset(isolation)
        if not self._offsets.local_start <= offset < upper:
            return 0
        total = 0
        for segment in self._segments.covering(offset):
            if segment.base_offset >= upper:
                break
            limit = self._limit_in(segment, upper)
            if total:
                total += limit
            else:
                found = self._find(segment, offset, limit)
                total = 0 if found is None else limit - found[0]
        return total

    # Transactions

    def _aborted_in(self, offset: int, upper: int, records: FileSlice) -> list[AbortedTransaction]:
        """Aborted transactions that overlap what was read."""
        segment = self._segments.floor(offset)
        if segment is None or all(s.txn_index.is_empty for s in self._segments.covering(offset)):
            return []
        bound = self._offset_bound(records, upper)
        aborted = []
        for candidate in self._segments.covering(offset):
            for entry in candidate.txn_index.ending_from(offset):
                if entry.first_offset < bound:
                    aborted.append(AbortedTransaction(entry.producer_id, entry.first_offset))
                if entry.last_stable_offset >= bound:
                    return aborted
        return aborted

    def _offset_bound(self, records: FileSlice, upper: int) -> int:
        """An offset that everything in `records` lies below; it may be somewhat too high."""
        for segment in self._segments:
            if segment.file is records.file:
                found = segment.upper_bound_offset(records.position + records.length)
                following = self._segments.after(segment.base_offset)
                if found is None and following is not None:
                    found = following.base_offset
                return upper if found is None else min(found, upper)
        return upper

    # Time

    def offset_by_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record of the local log not older than `timestamp`. Blocking: reads batches, and unpacks one."""
        self._directory.check_online()
        start = self._offsets.local_start
        try:
            for segment in self._segments.covering(start):
                if segment.largest_timestamp >= timestamp:
                    found = segment.find_timestamp(timestamp, start)
                    if found is not None:  # else its newest records lie below the log start
                        return found
        except OSError as error:
            raise self._directory.fail(error) from error
        return None

    def offset_of_max_timestamp(self) -> FoundOffset | None:
        """The first record with the largest timestamp of the local log; None if that is empty. Blocking."""
        self._directory.check_online()
        try:
            newest = max(self._segments, key=lambda segment: segment.max_timestamp.timestamp)
            return newest.find_max_timestamp()
        except OSError as error:
            raise self._directory.fail(error) from error
