"""Forcing a log to disk. Planned on the event loop, carried out in another thread."""

from __future__ import annotations

import os
from collections.abc import Sequence

from strandline.log.epochs import LeaderEpochs
from strandline.log.files import PARTITION_METADATA, sync_directory, sync_file
from strandline.log.offsets import PartitionOffsets
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.producer_state import PartitionProducers
from strandline.log.segment import LogSegment
from strandline.log.segment_file import SegmentFile
from strandline.log.segments import Segments


class FlushPlan:
    """What has to be forced to disk so that the log is safe up to `up_to`. Made on the event loop, run anywhere."""

    __slots__ = (
        "_directories",
        "_files",
        "_paths",
        "directory_changes",
        "epoch_writes",
        "is_hard",
        "up_to",
        "whole_up_to",
    )

    def __init__(
        self,
        up_to: int,
        files: Sequence[SegmentFile],
        paths: Sequence[str],
        directories: Sequence[str],
        *,
        directory_changes: int,
        epoch_writes: int,
        whole_up_to: int = 0,
        is_hard: bool = False,
    ) -> None:
        self.up_to = up_to
        self.whole_up_to = whole_up_to
        """The segments that end here or before are safe with their indexes too."""
        self.is_hard = is_hard
        """Whether everything else of the log becomes safe too, its name in the log directory included."""
        self.directory_changes = directory_changes
        """How many changes of names in the directory are safe once this was carried out."""
        self.epoch_writes = epoch_writes
        """How many versions of the leader epochs are safe then."""
        self._files = files
        self._paths = paths
        self._directories = directories

    @property
    def forces_directory(self) -> bool:
        """True if the names of new files become safe too."""
        return bool(self._directories)

    def run(self) -> None:
        """Force everything to disk. Blocking. Raises OSError."""
        for file in self._files:
            file.sync()
        for path in self._paths:
            sync_file(path)
        for directory in self._directories:
            sync_directory(directory)


class LogFlusher:
    """Owns the recovery point: the offset below which all records are on disk.

    Indexes may not be: a segment that was forced to disk while it was active, batch by batch, is complete when it is
    rolled, and nothing is left for `begin` to do. After a crash they are rebuilt. `begin_hard` forces them too.
    """

    __slots__ = (
        "_directory",
        "_epochs",
        "_offsets",
        "_producers",
        "_segments",
        "_was_hard",
        "_whole_up_to",
        "flushed_at",
        "recovery_point",
    )

    def __init__(
        self,
        directory: PartitionDirectory,
        offsets: PartitionOffsets,
        segments: Segments,
        epochs: LeaderEpochs,
        producers: PartitionProducers,
    ) -> None:
        self._directory = directory
        self._offsets = offsets
        self._segments = segments
        self._epochs = epochs
        self._producers = producers
        self.recovery_point = 0
        self._was_hard = False  # in this process: an earlier one may have left anything
        self._whole_up_to = 0  # the segments below it are on disk with their indexes; none that is known after a start
        self.flushed_at = directory.env.clock.monotonic()
        """When flush.ms began, by the monotonic clock."""

    @property
    def has_unflushed(self) -> bool:
        """True if the log has records, written or about to be, that are not on disk."""
        return self._offsets.reserved_end > self.recovery_point

    def begin(self, up_to: int | None = None) -> FlushPlan | None:
        """Plan to force everything below `up_to` (default: the log end) to disk; None if it is there already.

        `FlushPlan.run` may run in any thread; `finish` then moves the recovery point, on the event loop. Raises
        KafkaStorageError.
        """
        self._directory.check_online()
        end = self._offsets.end
        target = end if up_to is None else min(up_to, end)
        if target <= self.recovery_point and not self._epochs.needs_sync:
            return None
        try:
            return self.plan(max(target, self.recovery_point))
        except OSError as error:
            raise self._directory.fail(error) from error

    def begin_hard(self) -> FlushPlan:
        """Plan to force every file of the log to disk, whatever the recovery point says.

        Segments, all their indexes, producer snapshots, leader epochs, `partition.metadata`, the directory, and its
        name in the log directory. What an earlier hard flush has covered and nothing has changed since is left out: one
        while appends go on leaves little to do for the next. A producer snapshot that is pending is written at once:
        see `snapshot_writing`. `run` and `finish` as after `begin`. Raises KafkaStorageError.
        """
        self._directory.check_online()
        end, segments = self._offsets.end, self._segments
        files: list[SegmentFile] = []
        paths: list[str] = []
        try:
            self._producers.finish_snapshots()
            self._epochs.write()
            for segment in segments.covering(self._whole_up_to):
                # By its path unless it is open: a log may have more segments than the process may have descriptors.
                if segment.file.is_open:
                    files.append(segment.file)
                else:
                    paths.append(segment.file.path)
                segment.write_indexes()
                paths += self._index_paths(segment)
                paths.append(self._producers.snapshot_path(segment.base_offset))
        except OSError as error:
            raise self._directory.fail(error) from error
        unfinished = segments.floor(end)  # the segments before it are closed, and everything in them is written
        directory = self._directory.path
        directories = [directory]
        if self._epochs.needs_sync or not self._was_hard:
            paths.append(self._epochs.path)
        if not self._was_hard:
            paths.append(os.path.join(directory, PARTITION_METADATA))
            directories.append(os.path.dirname(directory))
        return FlushPlan(
            end,
            files,
            paths,
            directories,
            directory_changes=self._directory.changes,
            epoch_writes=self._epochs.writes,
            whole_up_to=0 if unfinished is None else unfinished.base_offset,
            is_hard=True,
        )

    def finish(self, plan: FlushPlan) -> None:
        """Note that a plan was carried out."""
        self.postpone()
        # Not before: another flush may be planned, and finished, while this one runs.
        self._directory.mark_synced(plan.directory_changes)
        self._epochs.mark_synced(plan.epoch_writes)
        if plan.up_to > self.recovery_point:
            self.recovery_point = min(plan.up_to, self._offsets.end)
            self._directory.env.directory.has_new_recovery_points = True
        self._whole_up_to = max(self._whole_up_to, min(plan.whole_up_to, self._offsets.end))
        self._was_hard = self._was_hard or plan.is_hard

    def flush(self, up_to: int | None = None) -> None:
        """Force the log to disk. Blocking: not for the event loop. Raises KafkaStorageError."""
        plan = self.begin(up_to)
        if plan is not None:
            try:
                plan.run()
            except OSError as error:
                raise self._directory.fail(error) from error
            self.finish(plan)

    def flush_for_close(self) -> None:
        """Force everything to disk, the indexes of the active segment too. Blocking. Raises OSError."""
        plan = self.plan(self._offsets.end, is_closing=True)
        plan.run()
        self.finish(plan)

    def plan(self, up_to: int, *, is_closing: bool = False) -> FlushPlan:
        """The files that hold everything below `up_to`. Raises OSError."""
        files: list[SegmentFile] = []
        paths: list[str] = []
        active = self._segments.active
        for segment in self._segments.covering(self.recovery_point):
            if segment.base_offset >= up_to and files:
                break
            files.append(segment.file)
            # After a crash the indexes of the active segment are rebuilt anyway.
            if segment is not active or is_closing:
                segment.write_indexes()
                paths += self._index_paths(segment)
            paths.append(self._producers.snapshot_path(segment.base_offset))
        if self._epochs.needs_sync:
            paths.append(self._epochs.path)
        if is_closing:
            paths.append(self._producers.snapshot_path(self._offsets.end))
        directories: tuple[str, ...] = ()
        if self._directory.needs_sync:
            directories = (self._directory.path,)
            paths.append(os.path.join(self._directory.path, PARTITION_METADATA))
        return FlushPlan(
            up_to,
            files,
            paths,
            directories,
            directory_changes=self._directory.changes,
            epoch_writes=self._epochs.writes,
        )

    @staticmethod
    def _index_paths(segment: LogSegment) -> list[str]:
        paths = [segment.offset_index.path, segment.time_index.path]
        if not segment.txn_index.is_empty:
            paths.append(segment.txn_index.path)
        return paths

    def watch_unflushed(self) -> None:
        """Let flush.ms apply to what is in the log already: after a start, or when the setting has changed."""
        if self.has_unflushed:
            self._directory.env.on_dirty(self._directory.topic_partition)

    def postpone(self) -> None:
        """Let flush.ms begin again."""
        self.flushed_at = self._directory.env.clock.monotonic()

    def truncate_to(self, offset: int) -> None:
        """Follow the log, which ends at `offset` now."""
        self.recovery_point = min(self.recovery_point, offset)
        self._whole_up_to = min(self._whole_up_to, offset)
