"""Keeping a log in shape: truncation, replacement of segments, its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

from strandline.config.topic import TopicConfig
from strandline.crash import crash_point
from strandline.log.epochs import Epochs
from strandline.log.files import DELETED, SWAP
from strandline.log.limits import LogLimits
from strandline.log.producers import rebuild_producers
from strandline.log.segment import LogSegment
from strandline.log.state import is_remote
from strandline.log.trimmer import LogTrimmer

_IDLE_REFERENCES: Final = 2


class LogKeeper(LogTrimmer):
    """What changes a log other than by appending. None of it while appends are pending, except retention."""

    __slots__ = ()

    def update_config(self, config: TopicConfig) -> None:
        """Follow a change of the topic's settings."""
        self.config = config
        self._limits = LogLimits.of(config)
        self.is_remote = is_remote(config, self.env)
        if self.is_remote:
            self.env.directory.has_new_log_starts = True  # from now on the checkpoint names it, wherever it starts
        self.watch_unflushed()

    # Truncation

    def truncate_to(self, offset: int) -> bool:
        """Cut the log so that `offset` is its end. A batch that reaches over it goes as a whole. True if it was cut."""
        self._check_quiet()
        if offset >= self.log_end_offset:
            return False
        try:
            if self.segments.first.base_offset > offset:
                self._truncate_all(offset)
            else:
                self._truncate(offset)
        except OSError as error:
            raise self.env.directory.fail(error) from error
        return True

    def truncate_fully_and_start_at(self, offset: int, *, log_start: int | None = None) -> None:
        """Drop everything and go on at `offset`, as a follower does that is behind the leader's log start.

        A tiered log may start below, where its leader's does; see also `start_from_remote`.
        """
        self._check_quiet()
        try:
            if log_start is None or not self.is_remote:
                log_start = offset
            self._start_again(offset, log_start=min(log_start, offset))
        except OSError as error:
            raise self.env.directory.fail(error) from error

    def _check_quiet(self) -> None:
        self.check_online()
        if self._pending:
            raise RuntimeError(f"{self.topic_partition} cannot be cut while appends are pending")

    def _truncate(self, offset: int) -> None:
        for segment in self.segments.as_list():
            if segment.base_offset > offset:
                self._discard(segment)
        self.segments.active.truncate_to(offset)
        self._end_at(offset)
        rebuild_producers(self, self.log_start_offset, offset)
        self._first_unstable = self.producers.first_unstable_offset

    def _truncate_all(self, offset: int) -> None:
        """Everything on this disk lies above `offset`. What a tiered log has in remote storage below it stays."""
        if self.is_remote:
            self._start_again(offset, log_start=min(self.log_start_offset, offset), epochs=self.epochs.entries)
        else:
            self._start_again(offset, log_start=offset)

    def _end_at(self, offset: int) -> None:
        self._recent.clear()
        self.reserved_end = self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.epochs.truncate_from_end(offset)
        self.epochs.write()
        self._written_epoch = -1
        self._directory_changes += 1
        self.local_log_start_offset = min(self.local_log_start_offset, offset)
        self.highest_offset_in_remote_storage = min(self.highest_offset_in_remote_storage, offset - 1)
        if offset < self.log_start_offset:
            self._set_log_start(offset)
        if self.high_watermark > offset:
            self.high_watermark = offset
            self.env.directory.has_new_high_watermarks = True

    def _start_again(
        self, offset: int, *, log_start: int, epochs: Epochs = (), producer_snapshot: bytes | None = None
    ) -> None:
        """Drop everything and go on at `offset`; what lies between `log_start` and it is in remote storage.

        The new segment comes last: a crash before it leaves an empty log, never one that lacks its epochs.
        """
        for segment in self.segments.as_list():
            self._discard(segment)
        self.producers.clear()
        self.producers.remove_snapshots(lambda _: True)
        crash_point("log.start_again.before_epochs")
        self.epochs.replace(epochs)
        self.epochs.clamp(log_start, offset)
        self.epochs.write()
        if producer_snapshot is not None:
            self.producers.add_snapshot(offset, producer_snapshot, self._write_small)
        crash_point("log.start_again.before_segment")
        self._create_segment(offset)
        self._end_at(offset)
        self.log_start_offset = log_start
        self.local_log_start_offset = offset
        self.env.directory.has_new_log_starts = True
        self.high_watermark = offset
        self.env.directory.has_new_high_watermarks = True
        rebuild_producers(self, log_start, offset)
        self._first_unstable = self.producers.first_unstable_offset

    # Replacement of segments, for compaction

    def create_cleaned_segment(self, base_offset: int, state: str) -> LogSegment:
        """A new segment beside the log, its files ending in `state` (`.cleaned`)."""
        return LogSegment.create(
            self._directory, base_offset, created_ms=self.env.clock.now_ms(), cache=self.env.cache, state=state
        )

    def replace_segments(self, new: Sequence[LogSegment], old: Sequence[LogSegment]) -> None:
        """Put cleaned segments in the place of old ones, so that a crash at any moment leaves one or the other.

        The new files end in `.cleaned` and are forced to disk. They become `.swap`: from then on a restart finishes
        the replacement. Not for the active segment.
        """
        self.check_online()
        try:
            # The highest first: as long as a `.cleaned` file is there, a restart throws swaps above it away.
            for segment in sorted(new, key=lambda segment: segment.base_offset, reverse=True):
                segment.rename(SWAP)
                crash_point("log.replace.renamed_to_swap")
            kept = {segment.base_offset for segment in new}
            for segment in old:
                self._replace(segment, keep_snapshot=segment.base_offset in kept)
                crash_point("log.replace.removed_old")
            for segment in new:
                self.segments.add(segment)
                segment.rename("")
                crash_point("log.replace.renamed_to_final")
        except OSError as error:
            raise self.env.directory.fail(error) from error
        self._directory_changes += 1

    def _replace(self, segment: LogSegment, *, keep_snapshot: bool) -> None:
        self.segments.remove(segment)
        segment.forget_indexes()
        segment.rename(DELETED)
        due_ms = self.env.clock.now_ms() + self.config.file_delete_delay_ms
        self.env.deletions.add(due_ms, segment)
        if not keep_snapshot:
            snapshot = self.producers.rename_snapshot(segment.base_offset, DELETED)
            if snapshot is not None:
                self.env.deletions.add(due_ms, snapshot)

    # Its end

    def remove_expired_producers(self, now_ms: int) -> int:
        """Forget producers that have been silent for producer.id.expiration.ms. Returns how many."""
        return self.producers.remove_expired(now_ms, self.env.producer_expiration_ms)

    def close_idle_files(self) -> int:
        """Give back the descriptors of files that nobody reads or writes at the moment. Returns how many."""
        closed = 0
        if self._pending:
            return closed
        for segment in self.segments:
            # Two references: the segment's, and the argument of getrefcount. Slices and flushes hold more.
            if segment.file.is_open and sys.getrefcount(segment.file) <= _IDLE_REFERENCES:
                segment.file.close()
                closed += 1
        return closed

    def close(self) -> None:
        """Close cleanly: everything is on disk, and the next start has nothing to repair. Blocking."""
        self._check_quiet()
        try:
            if self._finish_files():
                plan = self._plan_flush(self.log_end_offset, is_closing=True)
                plan.run()
                self._finish_flush(plan)
            for segment in self.segments:
                segment.file.close()
        except OSError as error:
            raise self.env.directory.fail(error) from error
        self._is_closed = True

    def _finish_files(self) -> bool:
        """Write what is still in memory. True if the disk may lack something."""
        active = self.segments.active
        active.file.set_length(active.file.size)
        is_changed = active.finish() or self.epochs.needs_sync or self.log_end_offset > self.recovery_point
        if self.log_end_offset > self.log_start_offset or self.producers.snapshots:
            is_changed |= self.producers.take_snapshot(self.log_end_offset, self._write_small)
        return is_changed

    def abandon(self) -> None:
        """Stop using the log without writing anything, since it is deleted or its directory has failed."""
        self._is_closed = True
        self._pending.clear()
        for segment in self.segments:
            segment.forget_indexes()

    def move_to(self, directory: str) -> None:
        """Rename the partition's directory. The files stay readable for those who hold them."""
        os.rename(self._directory, directory)
        self._directory = directory
        self.epochs.move_to(directory)
        self.producers.move_to(directory)
        for segment in self.segments:
            segment.move_to(directory)
