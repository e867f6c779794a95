"""Segments that the tiering pipeline has uploaded: what a leader sees of them in its own storage."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from strandline.model import TopicIdPartition, TopicPartition
from strandline.remote.manager.pipeline import PipelineSegments
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata

SEGMENT = RemoteLogSegmentMetadata(
    segment_id=RemoteLogSegmentId(TopicIdPartition(uuid.UUID(int=7), TopicPartition("t", 0)), uuid.UUID(int=8)),
    start_offset=0,
    end_offset=9,
    max_timestamp_ms=1,
    broker_id=1,
    event_timestamp_ms=1,
    segment_size_in_bytes=100,
    segment_leader_epochs={0: 0},
)


class Storage:
    """Has so many bytes of the log, and finds it only by what its copy has returned."""

    url = "vault://"

    def __init__(self, size: int) -> None:
        self.size = size

    async def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, start: int, length: int) -> bytes:
        if metadata.custom_metadata != b"shelf 7":
            raise RemoteResourceNotFound("There is no such shelf.")
        return bytes(max(min(length, self.size - start), 0))


def segments(storage: Any) -> PipelineSegments:
    nothing: Any = None
    return PipelineSegments(storage, nothing, nothing, nothing, custom_metadata_max_bytes=100)


async def test_a_log_is_uploaded_if_its_last_byte_is_there() -> None:
    await segments(Storage(100)).check_uploaded(SEGMENT, b"shelf 7")
    with pytest.raises(RemoteResourceNotFound, match="no more than 99 bytes"):
        await segments(Storage(99)).check_uploaded(SEGMENT, b"shelf 7")
    with pytest.raises(RemoteResourceNotFound, match="no such shelf"):
        await segments(Storage(100)).check_uploaded(SEGMENT, None)
