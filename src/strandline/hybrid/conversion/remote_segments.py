"""Segments of the pipeline in remote log metadata: finding them, and how the pipeline gets them described."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from strandline.controlplane.conversion import EpochStart, SplitObject
from strandline.conversion_api.values import SegmentDescription
from strandline.errors import KafkaStorageError
from strandline.model import LeaderEpoch, Offset, TopicIdPartition
from strandline.remote.ports import RemoteStorageError
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentState

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.hybrid.remote.tier import RemoteTier


def segment_before(
    tier: RemoteTier, partition: TopicIdPartition, base_offset: Offset, epoch: LeaderEpoch
) -> SegmentDescription | None:
    """The segment whose producers and epochs go on. The newest epoch counts that has such a segment."""
    if base_offset == 0:
        return None
    try:
        found = tier.manager.pipeline.ending_at(partition, base_offset - 1, range(epoch, -1, -1))
    except RemoteStorageError as error:
        raise not_available(partition, error) from error
    return None if found is None else described(found)


def find_segment(tier: RemoteTier, partition: TopicIdPartition, segment_id: UUID) -> RemoteLogSegmentMetadata | None:
    """A segment in remote log metadata. Raises KafkaStorageError if that is not there, which can happen at any time."""
    try:
        return tier.manager.pipeline.find(partition, segment_id)
    except RemoteStorageError as error:
        raise not_available(partition, error) from error


def not_available(partition: TopicIdPartition, error: Exception) -> KafkaStorageError:
    return KafkaStorageError(f"Remote storage is not available for {partition.topic_partition}: {error}")


def is_finished(segment: RemoteLogSegmentMetadata | None) -> bool:
    return segment is not None and segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def is_there(segment: RemoteLogSegmentMetadata | None) -> bool:
    return segment is not None and segment.state is not RemoteLogSegmentState.DELETE_SEGMENT_STARTED


def joined_epochs(splits: Iterable[SplitObject]) -> list[EpochStart]:
    """The leader epochs of split files that follow each other, and where each begins."""
    found: list[EpochStart] = []
    for split in splits:
        found += (entry for entry in split.leader_epochs if not found or entry[0] > found[-1][0])
    return found


def described(segment: RemoteLogSegmentMetadata) -> SegmentDescription:
    """A segment as the pipeline gets it."""
    return SegmentDescription(
        segment_id=segment.segment_id.id,
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        max_timestamp_ms=segment.max_timestamp_ms,
        broker_id=segment.broker_id,
        event_timestamp_ms=segment.event_timestamp_ms,
        segment_size_in_bytes=segment.segment_size_in_bytes,
        leader_epochs=tuple(segment.segment_leader_epochs.items()),
        custom_metadata=segment.custom_metadata,
        txn_index_empty=segment.txn_index_empty,
    )
