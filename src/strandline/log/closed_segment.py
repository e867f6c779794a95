"""A closed segment with everything that goes to remote storage. A log has written it, or the segment builder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.log.epochs import LeaderEpochs
from strandline.log.segment import LogSegment


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedSegment:
    """A closed segment, with everything that is copied to remote storage.

    Its files stay until it is copied, unless the log start passes it: then it need not be copied any more.
    """

    base_offset: int
    next_base_offset: int
    size: int
    """Bytes of the log file."""
    max_timestamp: int
    """The largest timestamp of a record, or when the file was last changed if no record has one."""
    log: Path
    offset_index: Path
    time_index: Path
    txn_index: Path | None
    """None if no transaction was aborted in the segment."""
    producer_snapshot: Path
    """All producers as of `next_base_offset`."""
    leader_epochs: Mapping[int, int]
    """Ascending: the epochs of the segment, and where each begins in it."""
    epoch_history: bytes
    """All epochs of the log up to the end of the segment, as a leader-epoch-checkpoint file."""

    @classmethod
    def of(cls, segment: LogSegment, next_base: int, *, producer_snapshot: str, epochs: LeaderEpochs) -> ClosedSegment:
        """A finished segment that ends before `next_base`. Its index files are up to date on disk. Raises OSError."""
        segment.write_indexes()
        for index in (segment.offset_index, segment.time_index):
            if not segment.size and not os.path.exists(index.path):
                index.create()  # a segment without records has none
        return cls(
            base_offset=segment.base_offset,
            next_base_offset=next_base,
            size=segment.size,
            max_timestamp=segment.largest_timestamp,
            log=Path(segment.file.path),
            offset_index=Path(segment.offset_index.path),
            time_index=Path(segment.time_index.path),
            txn_index=None if segment.txn_index.is_empty else Path(segment.txn_index.path),
            producer_snapshot=Path(producer_snapshot),
            leader_epochs=epochs.in_range(segment.base_offset, next_base),
            epoch_history=epochs.history(next_base),
        )

    @property
    def end_offset(self) -> int:
        """The last offset, inclusive."""
        return self.next_base_offset - 1
