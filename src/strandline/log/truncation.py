"""Cutting the end of a log, or dropping all of it and going on at another offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.crash import crash_point
from strandline.errors import KafkaStorageError, OffsetOutOfRange
from strandline.log.applied_config import AppliedConfig
from strandline.log.checkpoints import parse_epochs
from strandline.log.epochs import Epochs
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.producer_snapshot import parse_snapshot
from strandline.log.replay import rebuild_producers

if TYPE_CHECKING:
    from strandline.log.unified import UnifiedLog


class LogTruncation:
    """Truncation of one log, as a follower needs it. Never while appends are pending.

    It has no state and is rarely needed: created for each use, it takes no memory in an idle log.
    """

    __slots__ = (
        "_appender",
        "_applied",
        "_directory",
        "_epochs",
        "_flusher",
        "_log",
        "_offsets",
        "_producers",
        "_remote",
        "_segments",
    )

    def __init__(self, log: UnifiedLog, directory: PartitionDirectory, applied: AppliedConfig) -> None:
        self._log = log
        self._directory = directory
        self._applied = applied
        self._offsets = log.offsets
        self._segments = log.segments
        self._epochs = log.epochs
        self._producers = log.producers
        self._flusher = log.flusher
        self._appender = log.appender
        self._remote = log.remote

    def truncate_to(self, offset: int) -> bool:
        """See `UnifiedLog.truncate_to`."""
        is_cut = self._cut_at(offset)
        if not is_cut:
            # An epoch in which this broker led without an append: another leader may have used the offset since.
            self._epochs.truncate_from_end(self._offsets.end)
        return is_cut

    def _cut_at(self, offset: int) -> bool:
        self._check_quiet()
        if offset >= self._offsets.end:
            return False
        try:
            if self._segments.first.base_offset > offset:
                self._truncate_all(offset)
            else:
                self._truncate(offset)
        except OSError as error:
            raise self._directory.fail(error) from error
        return True

    def truncate_above_boundary(self, boundary: int) -> bool:
        """See `UnifiedLog.truncate_above_boundary`."""
        self._directory.check_online()
        partition, start = self._directory.topic_partition, self._offsets.start
        if boundary < start:
            raise OffsetOutOfRange(
                f"{partition} cannot end at its boundary {boundary}: records below {start} are deleted already."
            )
        if self._reaches_over(boundary):
            raise KafkaStorageError(
                f"{partition} cannot end at its boundary {boundary}: a batch of its local log reaches over it, so this "
                "log is not the one that the boundary was taken from. Nothing was removed."
            )
        copied = self._remote.highest_offset
        is_cut = self._cut_at(boundary)
        self._remote.highest_offset = copied
        return is_cut

    def _reaches_over(self, offset: int) -> bool:
        """True if a batch begins below `offset` and ends at it or above."""
        segment = self._segments.floor(offset - 1)
        if segment is None or offset >= self._offsets.end:
            return False
        found = segment.locate(offset, segment.size)
        return found is not None and next(segment.headers(found[0]))[1].base_offset < offset

    def truncate_fully_and_start_at(self, offset: int, log_start: int | None) -> None:
        """See `UnifiedLog.truncate_fully_and_start_at`."""
        self._check_quiet()
        if log_start is None or not self._applied.is_remote:
            log_start = offset
        try:
            self._start_again(offset, log_start=min(log_start, offset))
        except OSError as error:
            raise self._directory.fail(error) from error

    def start_from_remote(
        self, offset: int, *, log_start: int, epoch_history: bytes, producer_snapshot: bytes, source: str
    ) -> None:
        """See `UnifiedLog.start_from_remote`."""
        self._check_quiet()
        epochs = parse_epochs(epoch_history, source)
        parse_snapshot(producer_snapshot)
        log_start = min(log_start, offset)
        try:
            self._start_again(offset, log_start=log_start, epochs=epochs, producer_snapshot=producer_snapshot)
        except OSError as error:
            raise self._directory.fail(error) from error
        self._directory.env.on_flush_wanted(self._directory.topic_partition)

    def _check_quiet(self) -> None:
        self._directory.check_online()
        if self._appender.pending:
            raise RuntimeError(f"{self._directory.topic_partition} cannot be cut while appends are pending.")

    def _truncate(self, offset: int) -> None:
        for segment in self._segments.as_list():
            if segment.base_offset > offset:
                self._segments.discard(segment)
        self._segments.truncate_active(offset)
        self._offsets.truncate_to(offset)
        self._follow(offset)
        self._rebuild_producers(offset)

    def _truncate_all(self, offset: int) -> None:
        """Every local segment lies above `offset`. The remote segments of a tiered log below it stay."""
        if self._applied.is_remote:
            log_start = min(self._offsets.start, offset)
            self._start_again(offset, log_start=log_start, epochs=self._epochs.entries)
        else:
            self._start_again(offset, log_start=offset)

    def _start_again(
        self, offset: int, *, log_start: int, epochs: Epochs = (), producer_snapshot: bytes | None = None
    ) -> None:
        """Drop everything and go on at `offset`; records between `log_start` and `offset` are in remote storage.

        The new segment comes last: a crash before it leaves an empty log, never one that lacks its epochs.
        """
        for segment in self._segments.as_list():
            self._segments.discard(segment)
        self._producers.clear()
        self._producers.remove_snapshots(lambda _: True)
        crash_point("log.start_again.before_epochs")
        self._epochs.replace(epochs)
        self._epochs.clamp(log_start, offset)
        self._epochs.write()
        if producer_snapshot is not None:
            self._producers.add_snapshot(offset, producer_snapshot)
        crash_point("log.start_again.before_segment")
        self._segments.create(offset)
        self._offsets.restart_at(offset, start=log_start)
        self._follow(offset)
        self._rebuild_producers(offset)

    def _follow(self, offset: int) -> None:
        """Let the other parts know that the log ends at `offset`."""
        self._flusher.truncate_to(offset)
        self._epochs.truncate_from_end(offset)
        self._epochs.write()
        self._remote.truncate_to(offset)
        self._directory.env.on_truncated(self._log, offset)

    def _rebuild_producers(self, end: int) -> None:
        offsets = self._offsets
        rebuild_producers(
            self._segments,
            self._producers,
            log_start=offsets.start,
            end=end,
            high_watermark=offsets.high_watermark,
        )
