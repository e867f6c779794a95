"""How much of a log that ends at a boundary is in remote storage: without a gap, or with one.

Another log goes on at the boundary. Once everything below it is in remote storage, the local copy is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from strandline.log import UnifiedLog
from strandline.model import NO_OFFSET, Offset, TopicIdPartition
from strandline.remote.manager.history import EpochEntry, Lookup
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.values import RemoteLogSegmentMetadata

# Segments that are looked at when a status is asked for: some milliseconds of work. The next question goes on.
_LOOKUPS_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixStatus:
    """How much of what is below a boundary is in remote storage."""

    is_complete: bool
    """Every offset from the log start to the boundary is in a segment in COPY_SEGMENT_FINISHED that readers find."""
    tiered_log_start: Offset
    """Where the first remote segment of the log begins, at the log start or below; -1 if there is none."""
    tiered_high: Offset
    """The last offset up to which no gap was found; -1 if there is none."""
    copied_bytes: int
    """Of all remote segments."""
    total_bytes: int
    """The same, and those of local segments without a remote copy."""
    has_remote_segments: bool
    """Whether there is any remote segment, in whatever state."""


def covered_until(
    epochs: Sequence[EpochEntry], start: Offset, boundary: Offset, lookup: Lookup, *, lookups: int
) -> Offset:
    """The first offset from `start` on that no remote segment of the log has, at most `boundary`. Pure.

    Gives up after so many lookups: the answer is then an offset up to which no gap was found. Segments may overlap.
    """
    at = start
    for position, (epoch, epoch_start) in enumerate(epochs):
        if at < epoch_start or at >= boundary:
            break
        end = min(epochs[position + 1][1] if position + 1 < len(epochs) else boundary, boundary)
        while at < end:
            segment = lookup(epoch, at) if lookups > 0 else None
            if segment is None:
                return at
            lookups -= 1
            at = min(segment.end_of_epoch(epoch) + 1, end)
    return min(at, boundary)


@dataclass(slots=True)
class _Looked:
    """The part of one partition in which no gap was found: from `start` to `end`, exclusive."""

    boundary: Offset
    start: Offset
    end: Offset


class PrefixCoverage:
    """Answers for the partitions of this broker, and remembers how far it has looked.

    A gap-free prefix stays one: what was looked at is not looked at again, unless the boundary is another, the log was
    cut below it, or the first remote segment begins above the log start. Belongs to the event loop.
    """

    def __init__(self, metadata: RemoteLogMetadataManager) -> None:
        self._metadata = metadata
        self._looked: dict[TopicIdPartition, _Looked] = {}

    def status(self, partition: TopicIdPartition, log: UnifiedLog, boundary: Offset) -> PrefixStatus | None:
        """As of now; None while the remote log metadata has not been read."""
        if not self._metadata.is_ready(partition):
            return None
        start = log.log_start_offset
        first, covered = self._look(partition, log, boundary)
        summary = self._metadata.remote_log_summary(partition)
        return PrefixStatus(
            is_complete=start >= boundary or covered >= boundary,
            tiered_log_start=NO_OFFSET if first is None else first.start_offset,
            tiered_high=max(covered - 1, NO_OFFSET),
            copied_bytes=summary.finished_bytes,
            total_bytes=summary.finished_bytes + log.remote.only_local_size,
            has_remote_segments=summary.segments > 0,
        )

    def _look(
        self, partition: TopicIdPartition, log: UnifiedLog, boundary: Offset
    ) -> tuple[RemoteLogSegmentMetadata | None, Offset]:
        """The segment that holds the log start, and the offset below which no gap was found; -1 without a segment."""
        lookup = partial(self._metadata.remote_log_segment_metadata, partition)
        start = log.log_start_offset
        epoch = log.epoch_for_offset(start) if start < boundary <= log.log_end_offset else None
        first = None if epoch is None else lookup(epoch, start)
        if first is None:
            self.forget(partition)
            return None, NO_OFFSET
        looked = self._looked.get(partition)
        if looked is None or looked.boundary != boundary or start < looked.start:
            self._looked[partition] = looked = _Looked(boundary, start, start)
        if looked.end < boundary:
            at = max(looked.end, start)
            looked.end = covered_until(log.epochs.entries, at, boundary, lookup, lookups=_LOOKUPS_AT_ONCE)
        return first, looked.end

    def forget(self, partition: TopicIdPartition) -> None:
        """Look at everything again at the next question."""
        self._looked.pop(partition, None)
