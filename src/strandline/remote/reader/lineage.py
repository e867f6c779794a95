"""Which remote segment holds an offset, by the leader epochs of the log. Asks memory only.

Two leaders may have copied segments with the same offsets and different records. The epochs of the log tell which
of them belong to its history.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TypeAlias

from strandline.errors import KafkaStorageError, OffsetOutOfRange
from strandline.log import UnifiedLog
from strandline.model import LeaderEpoch, Offset
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageError
from strandline.remote.values import RemoteLogSegmentMetadata, TopicIdPartition

FindSegment: TypeAlias = Callable[[TopicIdPartition, LeaderEpoch, Offset], RemoteLogSegmentMetadata | None]


class Lineage:
    """Finds segments of one partition after the other."""

    def __init__(self, metadata: RemoteLogMetadataManager) -> None:
        self._metadata = metadata

    def segment_of(self, partition: TopicIdPartition, log: UnifiedLog, offset: Offset) -> RemoteLogSegmentMetadata:
        """The segment that holds `offset`.

        Raises OffsetOutOfRange if there is none, KafkaStorageError if that is not known yet.
        """
        epoch = log.epoch_for_offset(offset)
        if epoch is None:
            raise out_of_range(log, offset)
        try:
            found = self._metadata.remote_log_segment_metadata(partition, epoch, offset)
        except RemoteStorageError as error:
            raise KafkaStorageError(f"What of {partition} is in remote storage is not known yet: {error}") from error
        if found is None:
            raise out_of_range(log, offset)
        return found

    def following(self, log: UnifiedLog, segment: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata | None:
        """The segment that goes on where this one ends; None if it was the last one. Raises KafkaStorageError."""
        return self._first_from(log, segment, self._metadata.remote_log_segment_metadata)

    def following_with_txn_index(
        self, log: UnifiedLog, segment: RemoteLogSegmentMetadata
    ) -> RemoteLogSegmentMetadata | None:
        """The next segment after this one in which a transaction was aborted. Raises KafkaStorageError."""
        return self._first_from(log, segment, self._metadata.next_segment_with_txn_index)

    def _first_from(
        self, log: UnifiedLog, segment: RemoteLogSegmentMetadata, find: FindSegment
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


def epochs_from(log: UnifiedLog, offset: Offset) -> Iterator[tuple[LeaderEpoch, Offset]]:
    """(epoch, start offset) of the epoch that holds `offset` and of all later ones."""
    entries = log.epochs.entries
    first = max(bisect_right(entries, offset, key=lambda entry: entry[1]) - 1, 0)
    yield from entries[first:]


def out_of_range(log: UnifiedLog, offset: Offset) -> OffsetOutOfRange:
    """Nobody has the offset."""
    return OffsetOutOfRange(
        f"Offset {offset} of {log.topic_partition} is neither in remote storage nor local: the log begins at "
        f"{log.log_start_offset}, its local part at {log.local_log_start_offset}."
    )
