"""What a log knows about its copies in remote storage: segments that can be copied, and how far they are.

Copying, reading and expiring remote segments is not done here. Which segments leave the local disk after they were
copied is up to retention (`LogRetention`).
"""

from __future__ import annotations

import os
from itertools import pairwise

from strandline.log.applied_config import AppliedConfig
from strandline.log.closed_segment import ClosedSegment
from strandline.log.epochs import LeaderEpochs
from strandline.log.log_start import LogStart
from strandline.log.offsets import PartitionOffsets
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.producer_state import PartitionProducers
from strandline.log.replay import rebuild_snapshot
from strandline.log.segment import LogSegment
from strandline.log.segments import Segments
from strandline.model import NO_OFFSET


class RemoteCopies:
    """How far a log is copied to remote storage, and what can be copied. For tiered logs only (`is_remote`)."""

    __slots__ = (
        "_applied",
        "_directory",
        "_epochs",
        "_offsets",
        "_producers",
        "_segments",
        "_start",
        "highest_offset",
    )

    def __init__(
        self,
        directory: PartitionDirectory,
        applied: AppliedConfig,
        offsets: PartitionOffsets,
        segments: Segments,
        epochs: LeaderEpochs,
        producers: PartitionProducers,
        start: LogStart,
    ) -> None:
        self._directory = directory
        self._applied = applied
        self._offsets = offsets
        self._segments = segments
        self._epochs = epochs
        self._producers = producers
        self._start = start
        self.highest_offset = NO_OFFSET
        """Everything from the log start up to here is in remote storage, as far as this broker knows yet."""

    # Copying

    def segments_to_copy(self, from_offset: int, *, limit: int | None = None) -> list[ClosedSegment]:
        """The closed segments from the one that holds `from_offset` on, oldest first, at most `limit`.

        Only what lies below the last stable offset. The index files and the producer snapshot of each are up to date
        on disk: a segment whose snapshot is pending comes with a later call. Raises KafkaStorageError.
        """
        self._directory.check_online()
        stable = self._offsets.last_stable
        found: list[ClosedSegment] = []
        try:
            for segment, following in pairwise(self._segments.covering(from_offset)):
                if following.base_offset > stable or len(found) == limit:
                    break
                if self._producers.is_pending(following.base_offset):
                    break
                if following.base_offset > from_offset:
                    found.append(self._closed(segment, following.base_offset))
        except OSError as error:
            raise self._directory.fail(error) from error
        return found

    def _closed(self, segment: LogSegment, next_base: int) -> ClosedSegment:
        snapshot = self._producers.snapshot_path(next_base)
        if not os.path.exists(snapshot):
            log_start = self._offsets.start
            rebuild_snapshot(self._directory, self._segments, self._producers, log_start=log_start, offset=next_base)
        return ClosedSegment.of(segment, next_base, producer_snapshot=snapshot, epochs=self._epochs)

    def update_highest_offset(self, offset: int) -> None:
        """Everything up to `offset` is in remote storage, and may be deleted locally. The offset never goes back."""
        if self._applied.is_remote:
            known = min(offset, self._offsets.end - 1)
            self.highest_offset = max(known, self.highest_offset)

    def truncate_to(self, offset: int) -> None:
        """Follow the log, which ends at `offset` now."""
        self.highest_offset = min(self.highest_offset, offset - 1)

    @property
    def only_local_size(self) -> int:
        """Bytes of the segments that are not in remote storage yet."""
        highest = self.highest_offset
        return sum(segment.size for segment in self._segments if segment.base_offset > highest)

    # The log start

    def set_log_start(self, offset: int) -> bool:
        """Start the log at `offset`, where the earliest remote segment does. True if the log start moved.

        Never above the local log start, and never below the first epoch the log knows: deleted records stay deleted,
        and a remote segment below could not be found without its epoch.
        """
        self._directory.check_online()
        offsets, first = self._offsets, self._epochs.first_start
        floor = offsets.start if first is None else min(first, offsets.start)
        target = min(max(offset, floor), offsets.local_start)
        if not self._applied.is_remote or target == offsets.start:
            return False
        self._start.move_to(target, is_tiered=True)
        return True

    def forget(self) -> None:
        """Nothing of the log is in remote storage any more: the log starts where the local log does."""
        self._directory.check_online()
        self.highest_offset = NO_OFFSET
        if self._offsets.start < self._offsets.local_start:
            # The log may be tiered again when a crash brings the old log start back.
            self._start.move_to(self._offsets.local_start, is_tiered=True)
