"""What a log has to do with remote storage: segments that are ready to be copied, and what is known to be there.

Copying, reading and expiring remote segments is not done here. Which segments leave this disk after they were copied
is up to retention (`LogKeeper.delete_old_segments`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from strandline.log.checkpoints import parse_epochs
from strandline.log.keeper import LogKeeper
from strandline.log.producer_snapshot import parse_snapshot
from strandline.log.producers import rebuild_snapshot
from strandline.log.segment import LogSegment
from strandline.model import NO_OFFSET


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSegment:
    """A segment that changes no more, with everything that goes to remote storage.

    Its files stay until it was copied, unless the log start passes it: then copying it is of no use either.
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

    @property
    def end_offset(self) -> int:
        """The last offset, inclusive."""
        return self.next_base_offset - 1


class LogTiers(LogKeeper):
    """The side of a log that remote storage sees. Everything here is for tiered logs (`is_remote`)."""

    __slots__ = ()

    # Copying

    def segments_to_copy(self, from_offset: int, *, limit: int | None = None) -> list[FinishedSegment]:
        """The finished segments from the one that holds `from_offset` on, oldest first, at most `limit`.

        Only what lies below the last stable offset. The index files and the producer snapshot of each are up to date
        on disk. Raises KafkaStorageError.
        """
        self.check_online()
        stable = self.last_stable_offset
        found: list[FinishedSegment] = []
        try:
            for segment, following in pairwise(self.segments.covering(from_offset)):
                if following.base_offset > stable or len(found) == limit:
                    break
                if following.base_offset > from_offset:
                    found.append(self._finished(segment, following.base_offset))
        except OSError as error:
            raise self.env.directory.fail(error) from error
        return found

    def _finished(self, segment: LogSegment, next_base: int) -> FinishedSegment:
        segment.write_indexes()
        for index in (segment.offset_index, segment.time_index):
            if not segment.size and not os.path.exists(index.path):
                index.create()  # a segment without records has none
        snapshot = self.producers.snapshot_path(next_base)
        if not os.path.exists(snapshot):
            rebuild_snapshot(self, next_base)
        return FinishedSegment(
            base_offset=segment.base_offset,
            next_base_offset=next_base,
            size=segment.size,
            max_timestamp=segment.largest_timestamp,
            log=Path(segment.file.path),
            offset_index=Path(segment.offset_index.path),
            time_index=Path(segment.time_index.path),
            txn_index=None if segment.txn_index.is_empty else Path(segment.txn_index.path),
            producer_snapshot=Path(snapshot),
            leader_epochs=self.epochs.in_range(segment.base_offset, next_base),
            epoch_history=self.epochs.history(next_base),
        )

    def update_highest_offset_in_remote_storage(self, offset: int) -> None:
        """Everything up to `offset` is in remote storage: it may leave this disk. Never goes back."""
        if self.is_remote:
            known = min(offset, self.log_end_offset - 1)
            self.highest_offset_in_remote_storage = max(known, self.highest_offset_in_remote_storage)

    @property
    def only_local_size(self) -> int:
        """Bytes of the segments that are not in remote storage yet."""
        highest = self.highest_offset_in_remote_storage
        return sum(segment.size for segment in self.segments if segment.base_offset > highest)

    # The log start

    def set_log_start_offset(self, offset: int) -> bool:
        """Learn from remote storage where the log starts: at the earliest segment there. True if it moved.

        Never above the local log start, and never below the first epoch the log knows: what was deleted stays so, and
        nothing below can be found without its epoch.
        """
        self.check_online()
        first = self.epochs.first_start
        floor = self.log_start_offset if first is None else min(first, self.log_start_offset)
        target = min(max(offset, floor), self.local_log_start_offset)
        if not self.is_remote or target == self.log_start_offset:
            return False
        self._move_log_start(target, is_tiered=True)
        return True

    def forget_remote(self) -> None:
        """Nothing of the log is in remote storage any more: it starts where the local log does."""
        self.check_online()
        self.highest_offset_in_remote_storage = NO_OFFSET
        if self.log_start_offset < self.local_log_start_offset:
            # It may be tiered again when a crash brings the old log start back.
            self._move_log_start(self.local_log_start_offset, is_tiered=True)

    # As follower

    def start_from_remote(
        self, offset: int, *, log_start: int, epoch_history: bytes, producer_snapshot: bytes, source: str
    ) -> None:
        """Go on at `offset`, where the leader's local log starts or above: what lies below is in remote storage.

        The remote segment that ends before `offset` gives the epochs and the producers up to there; `source` names it
        in errors. Raises KafkaStorageError or CorruptMessage if they are damaged; then nothing has changed.
        """
        self._check_quiet()
        epochs = parse_epochs(epoch_history, source)
        parse_snapshot(producer_snapshot)
        log_start = min(log_start, offset)
        try:
            self._start_again(offset, log_start=log_start, epochs=epochs, producer_snapshot=producer_snapshot)
        except OSError as error:
            raise self.env.directory.fail(error) from error
        self.env.on_flush_wanted(self.topic_partition)
