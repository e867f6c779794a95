"""What is below B0 of a log that this broker does not have, as far as remote storage has it.

The log of the prefix, with its history of leader epochs, is on another broker. Remote log metadata has that history
too: later leaders write larger epochs, so that of several copies of an offset that of the largest epoch is the log's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from strandline.controlplane import DisklessLog, MigrationState
from strandline.errors import KafkaStorageError
from strandline.hybrid.diskless.converted import ConvertedEpochs, ConvertedLog
from strandline.hybrid.remote.topics import TieredTopics
from strandline.model import NO_EPOCH, NO_OFFSET, LeaderEpoch, Offset, TopicIdPartition
from strandline.reads import AnsweredOffsets
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageError

if TYPE_CHECKING:  # a broker without diskless or tiered topics does not load them
    from strandline.diskless.reader import DisklessReader
    from strandline.remote.reader.log import LocalSegment
    from strandline.remote.values import RemoteLogSegmentMetadata

_LOOKUPS_AT_ONCE: Final = 200


class RemotePrefix(ConvertedLog):
    """From the log start up to B0. A `ReadableLog` of the remote reader. Lives on the event loop."""

    __slots__ = ("_covered", "end", "is_proving")

    def __init__(
        self,
        key: TopicIdPartition,
        end: Offset,
        boundary_epoch: LeaderEpoch,
        reader: DisklessReader,
        tiered: TieredTopics,
    ) -> None:
        super().__init__(key, 0, boundary_epoch, reader, tiered)
        self.end = end
        """B0."""
        self._covered: Offset = NO_OFFSET
        """Up to here no gap was found."""
        self.is_proving = False
        """True if the last look has not come to its end."""

    def look(self, log: DisklessLog) -> bool:
        """Whether every offset from the log start to B0 is in a segment that reads find here.

        Only if its leader has said so too: while it copies, segments of an earlier history may lie where its own will.
        Of very many segments it looks at some at a time.
        """
        self.is_proving = False
        if log.migration_state is not MigrationState.HYBRID or not log.is_prefix_tiered:
            return False
        before = self._covered
        try:
            self._covered = self._covered_until(log.log_start_offset)
        except (KafkaStorageError, RemoteStorageError):  # remote storage is off here, or its metadata not read yet
            self.is_proving = self._followed_by is not None
            return False
        self.is_proving = before < self._covered < self.end
        return self._covered >= self.end

    def _covered_until(self, start: Offset) -> Offset:
        from strandline.remote.manager.prefix import covered_until  # a broker without tiered storage does not load it

        lookup = partial(self.tier.metadata.remote_log_segment_metadata, self.id)
        epoch = self.epoch_for_offset(start)
        if epoch is None or lookup(epoch, start) is None:
            return NO_OFFSET
        return covered_until(self.epochs.entries, max(self._covered, start), self.end, lookup, lookups=_LOOKUPS_AT_ONCE)

    def is_of_log(self, segment: RemoteLogSegmentMetadata) -> bool:
        """Whether the end of a segment is in the log. Raises KafkaStorageError."""
        end = segment.end_offset
        return end >= self.end or self.epoch_for_offset(end) in segment.segment_leader_epochs

    def end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset] | None:
        """The largest epoch of the prefix up to `epoch`, and its end; None if the epoch does not end in the prefix.

        Raises KafkaStorageError.
        """
        entries = self.epochs.entries
        if not entries or epoch == NO_EPOCH or epoch >= self.boundary_epoch:
            return None
        higher = bisect_right(entries, epoch, key=lambda entry: entry[0])
        end = entries[higher][1] if higher < len(entries) else self.end
        return (epoch, end) if higher == 0 else (entries[higher - 1][0], end)

    # What the remote reader asks

    @property
    def local_log_start_offset(self) -> Offset:
        """B0: what follows is not in the prefix."""
        return self.end

    def whole(self) -> AnsweredOffsets:
        known = self._reader.known_offsets(self.id)
        return AnsweredOffsets(self.end, self.end, 0) if known is None else super().whole()

    def _epochs_in(self, metadata: RemoteLogMetadataManager) -> ConvertedEpochs:
        return ConvertedEpochs(lineage(metadata.leader_epochs_from(self.id, self.log_start_offset), self.end), self.end)

    @property
    def segments(self) -> Iterable[LocalSegment]:
        """None: no transaction reaches over B0."""
        return ()

    @property
    def knows_aborted(self) -> bool:
        """Always: those of the prefix are in the indexes of its segments."""
        return True


def lineage(found: Iterable[tuple[LeaderEpoch, Offset]], end: Offset) -> Sequence[tuple[LeaderEpoch, Offset]]:
    """The history of a log that ends at `end`, from the epochs of all segments, in their order. Pure.

    An epoch that begins where an earlier one has records replaces them: that leader did not have them.
    """
    entries: list[tuple[LeaderEpoch, Offset]] = []
    for epoch, start in found:
        if start >= end:
            continue
        while entries and entries[-1][1] >= start:
            entries.pop()
        entries.append((epoch, start))
    return entries
