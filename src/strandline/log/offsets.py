"""The offsets of a log: where it starts, how far it is replicated, where it ends."""

from __future__ import annotations

from strandline.log.environment import LogDirectory
from strandline.log.producer_state import PartitionProducers


class PartitionOffsets:
    """start <= local_start <= high_watermark <= end <= reserved_end.

    Records between `start` and `local_start` are in remote storage only; without tiered storage the two are equal.
    `end` is the log end offset that readers know; `reserved_end` is the first offset of the next batch. A change marks
    the checkpoint of the log directory that has to be written again.
    """

    __slots__ = ("_log_directory", "_producers", "end", "high_watermark", "local_start", "reserved_end", "start")

    def __init__(self, log_directory: LogDirectory, producers: PartitionProducers) -> None:
        self._log_directory = log_directory
        self._producers = producers
        self.start = 0
        self.local_start = 0
        """The first offset on the local disk."""
        self.high_watermark = 0
        self.end = 0
        self.reserved_end = 0

    @property
    def last_stable(self) -> int:
        """Every transaction below it is decided. Never below the log start, where an open one may have begun."""
        first = self._producers.first_unstable_offset
        watermark = self.high_watermark
        return watermark if first is None or first > watermark else max(first, self.start)

    def update_high_watermark(self, offset: int) -> bool:
        """Move the high watermark, within the log. True if it changed."""
        if offset > self.end:
            offset = self.end
        if offset < self.start:
            offset = self.start
        if offset == self.high_watermark:
            return False
        self.high_watermark = offset
        self._log_directory.has_new_high_watermarks = True
        if self._producers.first_unstable_offset is not None:
            self._producers.forget_replicated(offset)
        return True

    def move_start(self, offset: int, *, first_local: int | None) -> None:
        """Start at `offset`, and with it the local log, which never starts below.

        `first_local` is where the local log starts if all of it belongs to the log; None if it starts where it did.
        """
        self.start = offset
        if offset > self.local_start:
            self.local_start = offset
        elif first_local is not None:
            self.local_start = max(offset, first_local)
        self._log_directory.has_new_log_starts = True
        if self.high_watermark < offset:
            self.high_watermark = offset
            self._log_directory.has_new_high_watermarks = True

    def move_local_start(self, offset: int) -> None:
        """Everything below `offset` has left the local disk, and is in remote storage."""
        self.local_start = max(self.local_start, offset)
        self._log_directory.has_new_log_starts = True

    def truncate_to(self, offset: int) -> None:
        """End at `offset`, below the present end."""
        self.end = self.reserved_end = offset
        self.local_start = min(self.local_start, offset)
        if offset < self.start:
            self.start = offset
            self._log_directory.has_new_log_starts = True
        if self.high_watermark > offset:
            self.high_watermark = offset
            self._log_directory.has_new_high_watermarks = True

    def restart_at(self, offset: int, *, start: int) -> None:
        """Become empty at `offset`; records from `start` on are in remote storage."""
        self.start = start
        self.local_start = self.high_watermark = self.end = self.reserved_end = offset
        self._log_directory.has_new_log_starts = True
        self._log_directory.has_new_high_watermarks = True

    def load_start(self, start: int, *, first_local: int) -> None:
        """Take the log start of a log that is being loaded."""
        self.start = start
        self.local_start = max(start, first_local)

    def load_end(self, end: int, *, high_watermark: int) -> None:
        """Take the end of a log that is being loaded, and its checkpointed high watermark."""
        self.end = self.reserved_end = end
        self.high_watermark = max(min(high_watermark, end), self.local_start)
