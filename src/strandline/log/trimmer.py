"""Cutting a log from the start: DeleteRecords, and retention that carries out what `retention` decides."""

from __future__ import annotations

import logging
import sys

from strandline.crash import crash_point
from strandline.errors import OffsetOutOfRange
from strandline.log.files import DELETED
from strandline.log.flusher import LogFlusher
from strandline.log.retention import LogBounds, deletable, limits_of
from strandline.log.segment import LogSegment

logger = logging.getLogger(__name__)


class LogTrimmer(LogFlusher):
    """The oldest end of a log. Appends may be pending."""

    __slots__ = ()

    def increment_log_start_offset(self, offset: int) -> bool:
        """Hide everything below `offset`; segments wholly below go with the next retention. True if it moved.

        Raises OffsetOutOfRange above the high watermark.
        """
        self.check_online()
        if offset > self.high_watermark:
            raise OffsetOutOfRange(
                f"The log start of {self.topic_partition} cannot move to {offset}: the high watermark is "
                f"{self.high_watermark}."
            )
        if offset <= self.log_start_offset:
            return False
        self._move_log_start(offset, is_tiered=self.is_remote)
        return True

    def delete_records(self, offset: int) -> int:
        """DeleteRecords: -1 stands for the high watermark. Returns the log start offset. Raises OffsetOutOfRange."""
        target = self.high_watermark if offset == -1 else offset
        if target < 0:
            raise OffsetOutOfRange(f"Records cannot be deleted up to the offset {offset}.")
        self.increment_log_start_offset(target)
        return self.log_start_offset

    def delete_old_segments(self, now_ms: int, *, limit: int = sys.maxsize) -> int:
        """Let retention work, on at most `limit` segments. Returns how many went: if `limit`, there may be more."""
        self.check_online()
        try:
            return self._delete_old_segments(now_ms, limit)
        except OSError as error:
            raise self.env.directory.fail(error) from error

    def _delete_old_segments(self, now_ms: int, limit: int) -> int:
        deleted = 0
        bounds = self._bounds()
        is_local = bounds.highest_remote is not None
        for reason, breaches in limits_of(self.config, self.segments, bounds, now_ms):
            doomed, is_roll_wanted = deletable(self.segments.as_list(), bounds, breaches)
            if is_roll_wanted or (doomed and len(doomed) == len(self.segments)):
                self.roll()
            doomed = doomed[: limit - deleted]
            if self.is_remote:
                doomed = self._announced(doomed, is_local=is_local)
            for segment in doomed:
                logger.info("Deleting %s of %s: %s", segment, self.topic_partition, reason.text(is_local=is_local))
                self._discard(segment)
                crash_point("log.retention.removed_segment")
            if doomed:
                deleted += len(doomed)
                self._start_with_first_segment(is_local=is_local)
        return deleted

    def _announced(self, doomed: list[LogSegment], *, is_local: bool) -> list[LogSegment]:
        """Those that may go now: they are copied, or the checkpoint of log starts says already that they are gone.

        A tiered log starts where the checkpoint says, even if no segment on disk does. If a crash came between the
        deletion and the checkpoint, the log would start with offsets that are in neither tier.
        """
        ready = []
        for segment in doomed:
            following = self.segments.after(segment.base_offset)
            upper = self.reserved_end if following is None else following.base_offset
            if upper - 1 > self.highest_offset_in_remote_storage and upper > self.checkpointed_log_start:
                if not is_local:
                    self._move_log_start_behind(doomed[-1])
                break
            ready.append(segment)
        return ready

    def _move_log_start_behind(self, segment: LogSegment) -> None:
        following = self.segments.after(segment.base_offset)
        if following is not None and following.base_offset > self.log_start_offset:
            self._move_log_start(following.base_offset, is_tiered=self.is_remote)

    def _bounds(self) -> LogBounds:
        is_copied = self.is_remote and not self.config.remote_log_copy_disable
        return LogBounds(
            self.log_start_offset,
            self.local_log_start_offset,
            self.high_watermark,
            self.reserved_end,
            self.highest_offset_in_remote_storage if is_copied else None,
        )

    def _start_with_first_segment(self, *, is_local: bool) -> None:
        """Old segments have gone: from this disk only (`is_local`), or for good."""
        first = self.segments.first.base_offset
        if is_local:
            # Epochs stay: what is in remote storage is found by them.
            self.local_log_start_offset = max(self.local_log_start_offset, first)
            self.env.directory.has_new_log_starts = True
        elif first > self.log_start_offset:
            self._move_log_start(first, is_tiered=self.is_remote)

    def _discard(self, segment: LogSegment) -> None:
        """Take a segment out of the log now, and off the disk after file.delete.delay.ms."""
        self.segments.remove(segment)
        segment.forget_indexes()
        due_ms = self.env.clock.now_ms() + self.config.file_delete_delay_ms
        segment.rename(DELETED)
        self.env.deletions.add(due_ms, segment)
        snapshot = self.producers.rename_snapshot(segment.base_offset, DELETED)
        if snapshot is not None:
            self.env.deletions.add(due_ms, snapshot)
        self._directory_changes += 1
