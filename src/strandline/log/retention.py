"""Deleting the oldest segments of a log, as `retention_rules` decide."""

from __future__ import annotations

import logging
import sys

from strandline.crash import crash_point
from strandline.log.applied_config import AppliedConfig
from strandline.log.log_start import LogStart
from strandline.log.offsets import PartitionOffsets
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.remote_copies import RemoteCopies
from strandline.log.retention_rules import RetentionBounds, deletable, limits_of
from strandline.log.segment import LogSegment
from strandline.log.segments import Segments

logger = logging.getLogger(__name__)


class LogRetention:
    """Carries out retention.* on one log, local.retention.* if it is tiered. Appends may be pending."""

    __slots__ = ("_applied", "_directory", "_offsets", "_remote", "_segments", "_start")

    def __init__(
        self,
        directory: PartitionDirectory,
        applied: AppliedConfig,
        offsets: PartitionOffsets,
        segments: Segments,
        start: LogStart,
        remote: RemoteCopies,
    ) -> None:
        self._directory = directory
        self._applied = applied
        self._offsets = offsets
        self._segments = segments
        self._start = start
        self._remote = remote

    def delete_old_segments(self, now_ms: int, *, limit: int = sys.maxsize) -> int:
        """Delete at most about `limit` segments. Returns how many were deleted: if `limit` or more, there may be more.

        Only up to a segment whose producer snapshot is on disk: until then, the batches are the only place that has
        all producers. What waits for a snapshot that is pending (`Segments.has_pending_snapshot`) is left for a later
        call. Raises KafkaStorageError.
        """
        self._directory.check_online()
        try:
            return self._delete_old_segments(now_ms, limit)
        except OSError as error:
            raise self._directory.fail(error) from error

    def _delete_old_segments(self, now_ms: int, limit: int) -> int:
        deleted = 0
        segments, bounds = self._segments, self._bounds()
        is_local = bounds.highest_remote is not None
        for reason, breaches in limits_of(self._applied.config, segments, bounds, now_ms):
            doomed, is_roll_wanted = deletable(segments.as_list(), bounds, breaches)
            if is_roll_wanted or (doomed and len(doomed) == len(segments)):
                segments.roll(self._offsets.reserved_end)
            doomed = self._dispensable(doomed, limit - deleted)
            if self._applied.is_remote:
                doomed = self._announced(doomed, is_local=is_local)
            for segment in doomed:
                logger.info(
                    "deleting %s of %s: %s",
                    segment,
                    self._directory.topic_partition,
                    reason.text(is_local=is_local),
                )
                segments.discard(segment)
                crash_point("log.retention.removed_segment")
            if doomed:
                deleted += len(doomed)
                self._start_with_first_segment(is_local=is_local)
            if deleted >= limit:
                break
        return deleted

    def _dispensable(self, doomed: list[LogSegment], limit: int) -> list[LogSegment]:
        """The first of them, so many that the log may start with the segment after the last one.

        At most `limit`, or as few as possible if that is more: the snapshots of some may have been dropped.
        """
        count = 0
        for number, segment in enumerate(doomed, 1):
            if number > limit and count:
                break
            if self._segments.may_start_after(segment):
                count = number
        return doomed[:count]

    def _announced(self, doomed: list[LogSegment], *, is_local: bool) -> list[LogSegment]:
        """The segments that may be deleted now: they are copied, or the checkpointed log start is above them.

        A tiered log starts at the checkpointed log start, even if no local segment does. If a crash came between the
        deletion and the checkpoint, the log would start with offsets that are in neither tier.
        """
        ready = []
        for segment in doomed:
            following = self._segments.after(segment.base_offset)
            upper = self._offsets.reserved_end if following is None else following.base_offset
            if upper - 1 > self._remote.highest_offset and upper > self._start.checkpointed:
                if not is_local:
                    self._move_log_start_behind(doomed[-1])
                break
            ready.append(segment)
        return ready

    def _move_log_start_behind(self, segment: LogSegment) -> None:
        following = self._segments.after(segment.base_offset)
        if following is not None and following.base_offset > self._offsets.start:
            self._start.move_to(following.base_offset, is_tiered=self._applied.is_remote)

    def _bounds(self) -> RetentionBounds:
        offsets = self._offsets
        return RetentionBounds(
            offsets.start,
            offsets.local_start,
            offsets.high_watermark,
            offsets.reserved_end,
            self._remote.highest_offset if self._applied.is_copied else None,
        )

    def _start_with_first_segment(self, *, is_local: bool) -> None:
        """Move the start over the deleted segments: of the local log only (`is_local`), or of the whole log."""
        first = self._segments.first.base_offset
        if is_local:
            # The epochs stay: remote segments are found by epoch.
            self._offsets.move_local_start(first)
        elif first > self._offsets.start:
            self._start.move_to(first, is_tiered=self._applied.is_remote)
