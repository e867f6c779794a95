"""Remote segments as the tiering API describes them, for calls to remote storage."""

from __future__ import annotations

from strandline.conversion_api.values import SegmentDescription
from strandline.model import TopicIdPartition
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata


def metadata_of(partition: TopicIdPartition, segment: SegmentDescription) -> RemoteLogSegmentMetadata:
    """The metadata by which a RemoteStorageManager finds a segment."""
    return RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(partition, segment.segment_id),
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        max_timestamp_ms=segment.max_timestamp_ms,
        broker_id=segment.broker_id,
        event_timestamp_ms=segment.event_timestamp_ms,
        segment_size_in_bytes=segment.segment_size_in_bytes,
        segment_leader_epochs=dict(segment.leader_epochs),
        custom_metadata=segment.custom_metadata,
        txn_index_empty=segment.txn_index_empty,
    )
