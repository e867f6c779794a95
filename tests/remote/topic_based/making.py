"""Segments and their events, short to write."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from strandline.model import TopicIdPartition, TopicPartition
from strandline.remote.values import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)

STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED
FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
DELETING = RemoteLogSegmentState.DELETE_SEGMENT_STARTED
DELETED = RemoteLogSegmentState.DELETE_SEGMENT_FINISHED
MARKED = RemotePartitionDeleteState.DELETE_PARTITION_MARKED
PARTITION_STARTED = RemotePartitionDeleteState.DELETE_PARTITION_STARTED
PARTITION_FINISHED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED

TP = TopicIdPartition(UUID(int=0x70), TopicPartition("tiered", 0))


def partition(number: int, topic: str = "tiered", topic_id: int = 0x70) -> TopicIdPartition:
    return TopicIdPartition(UUID(int=topic_id), TopicPartition(topic, number))


def segment_id(number: int, where: TopicIdPartition = TP) -> RemoteLogSegmentId:
    return RemoteLogSegmentId(where, UUID(int=number))


def segment(
    number: int,
    start: int = 0,
    end: int = 9,
    *,
    epochs: Mapping[int, int] | None = None,
    where: TopicIdPartition = TP,
    size: int = 1000,
    state: RemoteLogSegmentState = STARTED,
    txn_index_empty: bool = True,
) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        segment_id=segment_id(number, where),
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=1_790_000_000_000 + end,
        broker_id=1,
        event_timestamp_ms=1_790_000_001_000,
        segment_size_in_bytes=size,
        segment_leader_epochs={0: start} if epochs is None else epochs,
        state=state,
        txn_index_empty=txn_index_empty,
    )


def update(
    number: int, state: RemoteLogSegmentState, *, where: TopicIdPartition = TP, custom: bytes | None = None
) -> RemoteLogSegmentMetadataUpdate:
    return RemoteLogSegmentMetadataUpdate(
        segment_id=segment_id(number, where),
        event_timestamp_ms=1_790_000_002_000,
        state=state,
        broker_id=2,
        custom_metadata=custom,
    )


def deletion(state: RemotePartitionDeleteState, where: TopicIdPartition = TP) -> RemotePartitionDeleteMetadata:
    return RemotePartitionDeleteMetadata(
        partition=where, state=state, event_timestamp_ms=1_790_000_003_000, broker_id=1
    )
