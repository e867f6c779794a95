"""Forcing a log to disk. Planned on the event loop, carried out in another thread."""

from __future__ import annotations

import os

from strandline.log.append import FlushPlan
from strandline.log.files import PARTITION_METADATA
from strandline.log.segment_file import SegmentFile
from strandline.log.state import LogState


class LogFlusher(LogState):
    """The durable side of a log: `recovery_point` is the offset below which the disk has everything."""

    __slots__ = ()

    def begin_flush(self, up_to: int | None = None) -> FlushPlan | None:
        """Plan to force everything below `up_to` (default: the log end) to disk; None if that is done.

        `FlushPlan.run` may run in any thread; `finish_flush` then moves the recovery point, on the event loop.
        """
        self.check_online()
        target = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        if target <= self.recovery_point and not self.epochs.needs_sync:
            return None
        try:
            return self._plan_flush(max(target, self.recovery_point))
        except OSError as error:
            raise self.env.directory.fail(error) from error

    def watch_unflushed(self) -> None:
        """Let flush.ms hold for what is in the log already: after a start, or when the setting has changed."""
        if self.reserved_end > self.recovery_point:
            self.env.on_dirty(self.topic_partition)

    def finish_flush(self, plan: FlushPlan) -> None:
        """Note that a plan was carried out."""
        self._finish_flush(plan)

    def flush(self, up_to: int | None = None) -> None:
        """Force the log to disk. Blocking: not for the event loop. Raises KafkaStorageError."""
        plan = self.begin_flush(up_to)
        if plan is not None:
            try:
                plan.run()
            except OSError as error:
                raise self.env.directory.fail(error) from error
            self._finish_flush(plan)

    def _plan_flush(self, up_to: int, *, is_closing: bool = False) -> FlushPlan:
        files: list[SegmentFile] = []
        paths: list[str] = []
        active = self.segments.active
        for segment in self.segments.covering(self.recovery_point):
            if segment.base_offset >= up_to and files:
                break
            files.append(segment.file)
            # After a crash the indexes of the active segment are rebuilt anyway.
            if segment is not active or is_closing:
                segment.write_indexes()
                paths += [segment.offset_index.path, segment.time_index.path]
                if not segment.txn_index.is_empty:
                    paths.append(segment.txn_index.path)
            paths.append(self.producers.snapshot_path(segment.base_offset))
        if self.epochs.needs_sync:
            paths.append(self.epochs.path)
        if is_closing:
            paths.append(self.producers.snapshot_path(self.log_end_offset))
        directory = None
        if self._directory_changes > self._directory_synced:
            paths.append(os.path.join(self._directory, PARTITION_METADATA))
            directory = self._directory
        return FlushPlan(
            up_to,
            files,
            paths,
            directory,
            directory_changes=self._directory_changes,
            epoch_writes=self.epochs.writes,
        )

    def _finish_flush(self, plan: FlushPlan) -> None:
        self.last_flush_ms = self.env.clock.now_ms()
        # Not before: another flush may be planned, and be through, while this one is under way.
        self._directory_synced = max(self._directory_synced, plan.directory_changes)
        self.epochs.mark_synced(plan.epoch_writes)
        if plan.up_to > self.recovery_point:
            self.recovery_point = min(plan.up_to, self.log_end_offset)
            self.env.directory.has_new_recovery_points = True
