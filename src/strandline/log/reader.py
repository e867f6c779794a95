"""Reading a log: by offset, by time, by epoch."""

from __future__ import annotations

from strandline.errors import OffsetMovedToTieredStorage, OffsetOutOfRange, StrandlineError
from strandline.log.segment import LogSegment
from strandline.log.state import LogState
from strandline.log.values import FileSlice
from strandline.reads import AbortedTransaction, ActiveProducer, FetchIsolation, FoundOffset, ReadResult


class LogReader(LogState):
    """The reading side of a log. Nothing here changes it."""

    __slots__ = ()

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        min_one_message: bool = True,
    ) -> ReadResult:
        """The bytes from the batch that holds `offset` on, at most `max_bytes` of one segment.

        With `min_one_message` the first batch comes whole even if it is larger; without it there is nothing then.
        Raises OffsetMovedToTieredStorage for what is in remote storage only, OffsetOutOfRange or KafkaStorageError.
        """
        if self.env.directory.error is not None or self._is_closed:
            self.check_online()
        end = self.log_end_offset
        if not self.local_log_start_offset <= offset <= end:
            raise self._not_here(offset)
        upper = self._upper_offset(isolation)
        is_committed = isolation is FetchIsolation.TXN_COMMITTED
        records = None
        if offset < upper:
            try:
                records = self._slice(offset, upper, max_bytes, min_one_message)
            except OSError as error:
                raise self.env.directory.fail(error) from error
        aborted = None
        if is_committed:
            aborted = [] if records is None else self._aborted_in(offset, upper, records)
        start = self.log_start_offset
        return ReadResult(records, self.high_watermark, self.last_stable_offset, start, aborted)

    def _not_here(self, offset: int) -> StrandlineError:
        start, local_start = self.log_start_offset, self.local_log_start_offset
        if self.is_remote and start <= offset < local_start:
            return OffsetMovedToTieredStorage(
                f"Offset {offset} of {self.topic_partition} is in remote storage; local is {local_start} and above."
            )
        return OffsetOutOfRange(
            f"Offset {offset} of {self.topic_partition} is not between {start} and {self.log_end_offset}."
        )

    def _upper_offset(self, isolation: FetchIsolation) -> int:
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self.high_watermark
        return self.log_end_offset if isolation is FetchIsolation.LOG_END else self.last_stable_offset

    def _slice(self, offset: int, upper: int, max_bytes: int, min_one_message: bool) -> FileSlice | None:
        segment = self.segments.floor(offset)
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
            segment = self.segments.after(segment.base_offset)
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
        if segment is self.segments.active:
            recent = self._recent.find(offset, segment.file.size)
            if recent is not None:
                return recent if recent[0] < limit else None
        return segment.locate(offset, limit)

    def _limit_in(self, segment: LogSegment, upper: int) -> int:
        """How far into `segment` a reader may go that sees offsets below `upper`."""
        size = segment.file.size
        if upper == self.log_end_offset:
            return size
        following = self.segments.after(segment.base_offset)
        if following is not None and following.base_offset <= upper:
            return size
        found = self._find(segment, upper, size)
        return size if found is None else found[0]

    def available_bytes(self, offset: int, isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK) -> int:
        """Bytes that a reader at `offset` could have from this disk now. 0 if the offset is not in the local log."""
        upper = self._upper_offset(isolation)
        if not self.local_log_start_offset <= offset < upper:
            return 0
        total = 0
        for segment in self.segments.covering(offset):
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
        segment = self.segments.floor(offset)
        if segment is None or all(s.txn_index.is_empty for s in self.segments.covering(offset)):
            return []
        bound = self._offset_bound(records, upper)
        aborted = []
        for candidate in self.segments.covering(offset):
            for entry in candidate.txn_index:
                if entry.last_offset >= offset and entry.first_offset < bound:
                    aborted.append(AbortedTransaction(entry.producer_id, entry.first_offset))
                if entry.last_stable_offset >= bound:
                    return aborted
        return aborted

    def _offset_bound(self, records: FileSlice, upper: int) -> int:
        """An offset that everything in `records` lies below; it may be somewhat too high."""
        for segment in self.segments:
            if segment.file is records.file:
                found = segment.upper_bound_offset(records.position + records.length)
                following = self.segments.after(segment.base_offset)
                if found is None and following is not None:
                    found = following.base_offset
                return upper if found is None else min(found, upper)
        return upper

    def active_producers(self) -> list[ActiveProducer]:
        """What DescribeProducers answers for this partition."""
        return self.producers.active_producers()

    # Time

    def offset_by_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record of the local log not older than `timestamp`. Blocking: reads batches, and unpacks one."""
        self.check_online()
        start = self.local_log_start_offset
        try:
            for segment in self.segments.covering(start):
                if segment.largest_timestamp >= timestamp:
                    found = segment.find_timestamp(timestamp, start)
                    if found is not None:  # else its newest records lie below the log start
                        return found
        except OSError as error:
            raise self.env.directory.fail(error) from error
        return None

    def offset_of_max_timestamp(self) -> FoundOffset | None:
        """The first record with the largest timestamp of the local log; None if that is empty. Blocking."""
        self.check_online()
        try:
            newest = max(self.segments, key=lambda segment: segment.max_timestamp.timestamp)
            return newest.find_max_timestamp()
        except OSError as error:
            raise self.env.directory.fail(error) from error

    # Epochs

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch of the log."""
        return self.epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch up to `epoch`; (-1, -1) if the log cannot say."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """The leader epoch that wrote `offset`."""
        return self.epochs.epoch_of(offset)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Let a leader epoch begin. The checkpoint follows with the first append of the epoch."""
        self.epochs.assign(epoch, start_offset)
