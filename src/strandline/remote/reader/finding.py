"""Finds the remote segment that holds an offset, by the leader epochs of the log. Answers from memory.

Two leaders may have copied segments with the same offsets and different records. The leader epochs of the log decide
which of them belong to it.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from strandline.clock import Clock
from strandline.errors import KafkaStorageError, NotLeaderOrFollower, OffsetOutOfRange
from strandline.model import LeaderEpoch, Offset, TopicIdPartition, uuid_to_text
from strandline.remote.ports import OrderedMetadata, RemoteLogMetadataManager, RemoteStorageError
from strandline.remote.reader.errors import LoggedLately
from strandline.remote.reader.log import ReadableLog
from strandline.remote.values import RemoteLogSegmentMetadata

logger = logging.getLogger(__name__)

_REMEMBERED: Final = 1024
_REMEMBERED_SECONDS: Final = 1.0
_LOGGED_EPOCHS: Final = 4

FindSegment: TypeAlias = Callable[[TopicIdPartition, LeaderEpoch, Offset], RemoteLogSegmentMetadata | None]


class _Found(NamedTuple):
    """The last answer for a partition, and the offsets for which it is the same."""

    segment: RemoteLogSegmentMetadata
    epoch: LeaderEpoch
    first: Offset
    last: Offset
    until: float


class SegmentFinder:
    """Finds segments for all partitions.

    A consumer that catches up reads the same segment hundreds of times. The last answer for a partition is reused for
    one second: a segment that is deleted meanwhile lies below the log start, or no lookup finds it.
    """

    def __init__(self, metadata: RemoteLogMetadataManager, clock: Clock) -> None:
        self._metadata, self._clock = metadata, clock
        self._found: dict[TopicIdPartition, _Found] = {}
        self._logged: LoggedLately[TopicIdPartition] = LoggedLately(clock)

    def segment_of(self, partition: TopicIdPartition, log: ReadableLog, offset: Offset) -> RemoteLogSegmentMetadata:
        """The segment that holds `offset`.

        Raises what `not_found` says if there is none, KafkaStorageError while the metadata has not been read.
        """
        epoch = log.epoch_for_offset(offset)
        if epoch is None:
            raise self._refusal(partition, log, offset, epoch)
        now = self._clock.monotonic()
        known = self._found.get(partition)
        if known is not None and known.epoch == epoch and known.first <= offset <= known.last and now < known.until:
            return known.segment
        try:
            found = self._metadata.remote_log_segment_metadata(partition, epoch, offset)
        except RemoteStorageError as error:
            raise metadata_not_ready(partition, error) from error
        if found is None:
            raise self._refusal(partition, log, offset, epoch)
        if len(self._found) >= _REMEMBERED:
            self._found.clear()
        self._found[partition] = _Found(found, epoch, offset, found.end_of_epoch(epoch), now + _REMEMBERED_SECONDS)
        return found

    def _refusal(
        self, partition: TopicIdPartition, log: ReadableLog, offset: Offset, epoch: LeaderEpoch | None
    ) -> OffsetOutOfRange | NotLeaderOrFollower:
        """An offset below the log start is refused every day; one in the log that no segment has is a defect."""
        if offset >= log.log_start_offset and self._logged.add(partition):
            before, after = self._neighbours(partition, offset)
            logger.error(
                "offset %d of %s is in the log, but no remote segment has it: its leader epoch is %s, the log start "
                "offset is %d, the local log start offset %d, the leader epochs from there on are %s; the segment "
                "before it is %s, the segment after it is %s",
                offset,
                log.topic_partition,
                "unknown" if epoch is None else epoch,
                log.log_start_offset,
                log.local_log_start_offset,
                list(islice(epochs_from(log, offset), _LOGGED_EPOCHS)),
                _described(before),
                _described(after),
            )
        return not_found(log, offset)

    def _neighbours(
        self, partition: TopicIdPartition, offset: Offset
    ) -> tuple[RemoteLogSegmentMetadata | None, RemoteLogSegmentMetadata | None]:
        """The last segment that begins at or before an offset, and the first that begins after it, in any state."""
        if not isinstance(self._metadata, OrderedMetadata) or not self._metadata.is_ready(partition):
            return None, None
        before = self._metadata.last_remote_log_segment_up_to(partition, offset)
        return before, next(self._metadata.remote_log_segments_from_offset(partition, offset + 1), None)

    def forget(self, segment_ids: Collection[UUID]) -> None:
        """These segments were deleted or are damaged."""
        self._found = {
            key: known for key, known in self._found.items() if known.segment.segment_id.id not in segment_ids
        }

    def following(self, log: ReadableLog, segment: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata | None:
        """The segment that begins where this one ends; None if there is none. Raises KafkaStorageError."""
        return self._first_from(log, segment, self._metadata.remote_log_segment_metadata)

    def following_with_txn_index(
        self, log: ReadableLog, segment: RemoteLogSegmentMetadata
    ) -> RemoteLogSegmentMetadata | None:
        """The next segment in which a transaction was aborted; None if there is none. Raises KafkaStorageError."""
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
            raise metadata_not_ready(partition, error) from error
        return None


def epochs_from(log: ReadableLog, offset: Offset) -> Iterator[tuple[LeaderEpoch, Offset]]:
    """(epoch, start offset) of the epoch that holds `offset` and of all later epochs."""
    entries = log.epochs.entries
    first = max(bisect_right(entries, offset, key=lambda entry: entry[1]) - 1, 0)
    yield from entries[first:]


def not_found(log: ReadableLog, offset: Offset) -> OffsetOutOfRange | NotLeaderOrFollower:
    """Neither tier has the offset. It may have been in the log when the read began.

    Out of range is what was deleted or never written, and nothing else: consumers would jump over records. An offset of
    the log that no segment has here may be known to the next leader; clients ask again, and learn who that is.
    """
    if offset < log.log_start_offset:
        return OffsetOutOfRange(
            f"Offset {offset} of {log.topic_partition} is below the log start offset {log.log_start_offset}."
        )
    if offset > log.high_watermark:
        return OffsetOutOfRange(
            f"Offset {offset} of {log.topic_partition} is above the high watermark {log.high_watermark}."
        )
    return NotLeaderOrFollower(
        f"Offset {offset} of {log.topic_partition} is neither in remote storage nor local: the log start offset is "
        f"{log.log_start_offset}, the local log start offset {log.local_log_start_offset}. `strandline fsck` says what "
        "is missing; DeleteRecords up to the next segment lets consumers go on."
    )


def _described(segment: RemoteLogSegmentMetadata | None) -> str:
    if segment is None:
        return "none"
    return (
        f"{uuid_to_text(segment.segment_id.id)} (offsets {segment.start_offset} to {segment.end_offset}, "
        f"{segment.state.name}, leader epochs {dict(segment.segment_leader_epochs)})"
    )


def metadata_not_ready(partition: TopicIdPartition, error: RemoteStorageError) -> KafkaStorageError:
    """The remote log metadata of a partition has not been read."""
    return KafkaStorageError(f"The remote log metadata of {partition} has not been read yet. {error}")
