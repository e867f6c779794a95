"""An append that has its place in the log but is not written yet, and a flush that is planned."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.log.files import sync_directory, sync_file
from strandline.log.segment import LogSegment
from strandline.log.segment_file import SegmentFile
from strandline.log.values import LogAppendInfo
from strandline.records.batch import Buffer


class FlushPlan:
    """What has to be forced to disk so that the log is safe up to `up_to`. Made on the event loop, run anywhere."""

    __slots__ = ("_directory", "_files", "_paths", "directory_changes", "epoch_writes", "up_to")

    def __init__(
        self,
        up_to: int,
        files: Sequence[SegmentFile],
        paths: Sequence[str],
        directory: str | None,
        *,
        directory_changes: int,
        epoch_writes: int,
    ) -> None:
        self.up_to = up_to
        self.directory_changes = directory_changes
        """How many changes of names in the directory are safe once this was carried out."""
        self.epoch_writes = epoch_writes
        """How many versions of the leader epochs are."""
        self._files = files
        self._paths = paths
        self._directory = directory

    @property
    def forces_directory(self) -> bool:
        """True if the names of new files become safe too."""
        return self._directory is not None

    def run(self) -> None:
        """Force everything to disk. Blocking. Raises OSError."""
        for file in self._files:
            file.sync()
        for path in self._paths:
            sync_file(path)
        if self._directory is not None:
            sync_directory(self._directory)


class PendingAppend:
    """A batch whose offsets and place in the file are reserved.

    `write` does the blocking system calls and nothing else; it may run in any thread, as long as the appends of one
    log are written in the order in which they began. A duplicate has nothing to write.
    """

    __slots__ = ("_buffer", "_flush", "_position", "end_offset", "info", "segment")

    def __init__(
        self, info: LogAppendInfo, segment: LogSegment, buffer: Buffer, position: int, end_offset: int
    ) -> None:
        self.info = info
        self.segment = segment
        self.end_offset = end_offset
        """The log end offset once this is finished."""
        self._buffer: Buffer | None = buffer
        self._position = position
        self._flush: FlushPlan | None = None

    @property
    def is_duplicate(self) -> bool:
        """True if there is nothing to write: the batch is in the log already, or about to be."""
        return self.info.is_duplicate

    @property
    def must_leave_loop(self) -> bool:
        """True if `write` calls fsync and therefore may not run on the event loop."""
        return self._flush is not None

    @property
    def flush(self) -> FlushPlan | None:
        """What `write` forces to disk, None if nothing."""
        return self._flush

    def sync_with(self, plan: FlushPlan) -> None:
        """Let `write` force the log to disk too."""
        self._flush = plan

    def own_records(self) -> None:
        """Copy the batch: its buffer belongs to somebody who needs it back before it is written."""
        if self._buffer is not None:
            self._buffer = bytes(self._buffer)

    @property
    def end_position(self) -> int:
        """Where the batch ends in its file."""
        return self._position + self.info.size

    @property
    def position(self) -> int:
        """Where the batch starts in its file."""
        return self._position

    def write(self) -> None:
        """Write the batch, and force it to disk if flush.messages says so. Blocking. Raises OSError."""
        buffer = self._buffer
        if buffer is not None:
            self.segment.file.write(buffer, self._position)
            self._buffer = None
        if self._flush is not None:
            self._flush.run()
