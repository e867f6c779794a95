"""Writes states of segments and partitions to remote log metadata, each within a deadline.

A write that misses its deadline is like a crash: it may have happened or not.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from strandline.clock import Clock, within
from strandline.model import BrokerId, TopicIdPartition
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageError
from strandline.remote.values import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)


class SegmentStates:
    """Writes states on behalf of this broker."""

    def __init__(
        self, metadata: RemoteLogMetadataManager, *, broker_id: BrokerId, clock: Clock, deadline_ms: int
    ) -> None:
        self._metadata, self._broker_id, self._clock = metadata, broker_id, clock
        self._deadline = deadline_ms / 1000

    async def add(self, segment: RemoteLogSegmentMetadata) -> None:
        """A copy begins. Raises RemoteStorageError."""
        await self._within(segment.state.name, segment, self._metadata.add_remote_log_segment_metadata(segment))

    async def update(
        self, segment: RemoteLogSegmentMetadata, state: RemoteLogSegmentState, custom_metadata: bytes | None = None
    ) -> RemoteLogSegmentMetadata:
        """Another state; custom metadata is kept. Raises RemoteStorageError, ValueError."""
        update = RemoteLogSegmentMetadataUpdate(
            segment_id=segment.segment_id,
            event_timestamp_ms=self._clock.now_ms(),
            state=state,
            broker_id=self._broker_id,
            custom_metadata=segment.custom_metadata if custom_metadata is None else custom_metadata,
        )
        await self._within(state.name, segment, self._metadata.update_remote_log_segment_metadata(update))
        return segment.updated(update)

    async def delete_partition(self, partition: TopicIdPartition, state: RemotePartitionDeleteState) -> None:
        """The deletion of a partition has reached a state. Raises RemoteStorageError, ValueError."""
        change = RemotePartitionDeleteMetadata(
            partition=partition, state=state, event_timestamp_ms=self._clock.now_ms(), broker_id=self._broker_id
        )
        await self._within(state.name, partition, self._metadata.put_remote_partition_delete_metadata(change))

    async def _within(self, what: str, subject: object, call: Coroutine[Any, Any, None]) -> None:
        try:
            await within(self._clock, self._deadline, call)
        except TimeoutError as error:
            raise RemoteStorageError(
                f"Writing {what} for {_named(subject)} to remote log metadata took longer than {self._deadline:g} s. "
                "Are the partitions of __remote_log_metadata online?"
            ) from error


def _named(subject: object) -> str:
    if isinstance(subject, RemoteLogSegmentMetadata):
        return f"the remote segment {subject.start_offset} to {subject.end_offset} of {subject.partition}"
    return str(subject)
