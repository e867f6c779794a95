"""Which remote segment holds an offset, by the leader epochs of the log. Asks memory only.

Two leaders may have copied segments with the same offsets and different records. The epochs of the log tell which
of them belong to its history.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from strandline.clock import Clock
from strandline.errors import KafkaStorageError, OffsetOutOfRange
from strandline.model import LeaderEpoch, Offset, TopicIdPartition
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageError
from strandline.remote.reader.log import ReadableLog
from strandline.remote.values import RemoteLogSegmentMetadata

_REMEMBERED: Final = 1024
_REMEMBERED_SECONDS: Final = 1.0

FindSegment: TypeAlias = Callable[[TopicIdPartition, LeaderEpoch, Offset], RemoteLogSegmentMetadata | None]


class _Found(NamedTuple):
    """The last answer for a partition, and for which offsets it would be the same."""

    segment: RemoteLogSegmentMetadata
    epoch: LeaderEpoch
    first: Offset
    last: Offset
    until: float


class SegmentFinder:
    """Finds segments of one partition after the other.

    A consumer that catches up asks for the same segment hundreds of times. The last answer for a partition is used for
    a second: a segment that is deleted meanwhile lies below the log start, or was never referred to.
    """

    def __init__(self, metadata: RemoteLogMetadataManager, clock: Clock) -> None:
        self._metadata, self._clock = metadata, clock
        self._found: dict[TopicIdPartition, _Found] = {}

    def segment_of(self, partition: TopicIdPartition, log: ReadableLog, offset: Offset) -> RemoteLogSegmentMetadata:
        """The segment that holds `offset`.

        Raises OffsetOutOfRange if there is none, KafkaStorageError if that is not known yet.
        """
        epoch = log.epoch_for_offset(offset)
        if epoch is None:
            raise out_of_range(log, offset)
        now = self._clock.monotonic()
        known = self._found.get(partition)
        if known is not None and known.epoch == epoch and known.first <= offset <= known.last and now < known.until:
            return known.segment
        try:
            found = self._metadata.remote_log_segment_metadata(partition, epoch, offset)
        except RemoteStorageError as error:
            raise KafkaStorageError(f"What of {partition} is in remote storage is not known yet: {error}") from error
        if found is None:
            raise out_of_range(log, offset)
        if len(self._found) >= _REMEMBERED:
            self._found.clear()
        self._found[partition] = _Found(found, epoch, offset, _end_of(epoch, found), now + _REMEMBERED_SECONDS)
        return found

    def forget(self, segment_ids: Collection[UUID]) -> None:
        """These segments were deleted, or are not what they should be."""
        self._found = {
            key: known for key, known in self._found.items() if known.segment.segment_id.id not in segment_ids
        }

    def following(self, log: ReadableLog, segment: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata | None:
        """The segment that goes on where this one ends; None if it was the last one. Raises KafkaStorageError."""
        return self._first_from(log, segment, self._metadata.remote_log_segment_metadata)

    def following_with_txn_index(
        self, log: ReadableLog, segment: RemoteLogSegmentMetadata
    ) -> RemoteLogSegmentMetadata | None:
        """The next segment after this one in which a transaction was aborted. Raises KafkaStorageError."""
        return self._first_from(log, segment, self._metadata.next_segment_with_txn_index)

    def _first_from(
        self, log: ReadableLog, segment: RemoteLogSegmentMetadata, find: FindSegment
    ) -> RemoteLogSegmentMetadata | None:
        offset = segment.end_offset + 1
        partition = segment.partition
        try:
            for epoch, start in epochs_from(log, offset):
                found = find(partition, epoch, max(offset, start))
                if found is not None:
                    return found
        except RemoteStorageError as error:
            raise KafkaStorageError(f"What of {partition} is in remote storage is not known yet: {error}") from error
        return None


def _end_of(epoch: LeaderEpoch, segment: RemoteLogSegmentMetadata) -> Offset:
    """The last offset of an epoch in a segment."""
    later = [start for other, start in segment.segment_leader_epochs.items() if other > epoch]
    return min(later) - 1 if later else segment.end_offset


def epochs_from(log: ReadableLog, offset: Offset) -> Iterator[tuple[LeaderEpoch, Offset]]:
    """(epoch, start offset) of the epoch that holds `offset` and of all later ones."""
    entries = log.epochs.entries
    first = max(bisect_right(entries, offset, key=lambda entry: entry[1]) - 1, 0)
    yield from entries[first:]


def out_of_range(log: ReadableLog, offset: Offset) -> OffsetOutOfRange:
    """Nobody has the offset."""
    return OffsetOutOfRange(
        f"Offset {offset} of {log.topic_partition} is neither in remote storage nor local: the log begins at "
        f"{log.log_start_offset}, its local part at {log.local_log_start_offset}."
    )
