"""The values that go in and out of a log."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from strandline.log.segment_file import SegmentFile


class AppendOrigin(enum.Enum):
    """The origin of an append as leader, which decides which checks a batch has to pass."""

    CLIENT = enum.auto()
    """A producer: everything is checked, sequences included."""
    COORDINATOR = enum.auto()
    """A coordinator of this cluster: control batches allowed, producer epochs checked, sequences not."""


@dataclass(slots=True)
class LogAppendInfo:
    """The offsets of an append. A duplicate gets those of the first append."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 under CreateTime."""
    log_start_offset: int
    is_duplicate: bool
    size: int
    max_timestamp: int


@dataclass(slots=True)
class FileSlice:
    """A range of a segment's file. Holding it keeps the bytes readable, even after the segment is deleted."""

    file: SegmentFile
    position: int
    length: int

    def read(self) -> bytes:
        """The bytes themselves. Blocking; for small ranges and tests."""
        return self.file.read(self.position, self.length)
