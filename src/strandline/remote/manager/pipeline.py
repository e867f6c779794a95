"""Segments that the tiering pipeline builds and uploads: their states in remote log metadata, and their deletion.

The pipeline makes segments of diskless batches. The leader announces them before the first byte is uploaded, and
finishes them after the last one. So readers, and the search for abandoned copies, treat them like copied ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from strandline.model import NO_TIMESTAMP, LeaderEpoch, Offset, TopicIdPartition
from strandline.remote.manager.deleting import SegmentDeleter
from strandline.remote.manager.deleting.plan import Deletion, DeletionReason
from strandline.remote.manager.deleting.segment import DeletionTurn
from strandline.remote.manager.states import SegmentStates
from strandline.remote.ports import (
    IndexedMetadata,
    OrderedMetadata,
    RemoteLogMetadataManager,
    RemoteResourceNotFound,
    RemoteStorageError,
    RemoteStorageManager,
)
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState


class PipelineSegments:
    """What a leader does with segments of the pipeline. All raise RemoteStorageError."""

    def __init__(
        self,
        storage: RemoteStorageManager,
        metadata: RemoteLogMetadataManager,
        states: SegmentStates,
        deleter: SegmentDeleter,
        *,
        custom_metadata_max_bytes: int,
    ) -> None:
        self._storage, self._metadata, self._states, self._deleter = storage, metadata, states, deleter
        self._custom_metadata_max_bytes = custom_metadata_max_bytes

    def find(self, partition: TopicIdPartition, segment_id: UUID) -> RemoteLogSegmentMetadata | None:
        """The segment with this id, in any state but DELETE_SEGMENT_FINISHED."""
        if isinstance(self._metadata, IndexedMetadata):
            return self._metadata.find_remote_log_segment(partition, segment_id)
        found = self._metadata.iter_remote_log_segments(partition)
        return next((segment for segment in found if segment.segment_id.id == segment_id), None)

    def ending_at(
        self, partition: TopicIdPartition, end: Offset, epochs: Sequence[LeaderEpoch]
    ) -> RemoteLogSegmentMetadata | None:
        """The segment whose last offset this is, in COPY_SEGMENT_FINISHED, by the first of the epochs that has it."""
        for epoch in epochs:
            segment = self._metadata.remote_log_segment_metadata(partition, epoch, end)
            if segment is not None:
                return segment if segment.end_offset == end else None
        return None

    def from_offset(self, partition: TopicIdPartition, offset: Offset) -> Iterator[RemoteLogSegmentMetadata]:
        """All segments that begin at an offset or behind it, in any state, by start offset."""
        if isinstance(self._metadata, OrderedMetadata):
            return self._metadata.remote_log_segments_from_offset(partition, offset)
        return (s for s in self._metadata.iter_remote_log_segments(partition) if s.start_offset >= offset)

    def overlapping(
        self, partition: TopicIdPartition, first: Offset, last: Offset
    ) -> Sequence[RemoteLogSegmentMetadata]:
        """All segments with some of these offsets, in any state."""
        if isinstance(self._metadata, IndexedMetadata):
            return self._metadata.overlapping_remote_log_segments(partition, first, last)
        found = self._metadata.iter_remote_log_segments(partition)
        return [segment for segment in found if segment.start_offset <= last and segment.end_offset >= first]

    async def start(self, segment: RemoteLogSegmentMetadata) -> None:
        """Announce a segment: COPY_SEGMENT_STARTED."""
        await self._states.add(segment)

    async def check_uploaded(self, segment: RemoteLogSegmentMetadata, custom_metadata: bytes | None) -> None:
        """Return if the storage of this broker has the log of a segment to its end; storages write it last.

        The pipeline may have uploaded it to another storage. Raises RemoteResourceNotFound, RemoteStorageError.
        """
        uploaded = replace(segment, custom_metadata=custom_metadata)
        last = segment.segment_size_in_bytes - 1
        if not len(await self._storage.fetch_log_segment(uploaded, last, 1)):
            raise RemoteResourceNotFound(f"Its log in {self._storage.url} has no more than {last} bytes.")

    async def finish(self, segment: RemoteLogSegmentMetadata, custom_metadata: bytes | None) -> None:
        """All of its bytes are in remote storage: COPY_SEGMENT_FINISHED. Readers find it from now on."""
        if custom_metadata is not None and len(custom_metadata) > self._custom_metadata_max_bytes:
            raise RemoteStorageError(
                f"The storage returned {len(custom_metadata)} bytes of custom metadata for a segment of "
                f"{segment.partition}, more than remote.log.metadata.custom.metadata.max.bytes "
                f"({self._custom_metadata_max_bytes})."
            )
        if segment.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED:
            await self._states.update(segment, RemoteLogSegmentState.COPY_SEGMENT_FINISHED, custom_metadata)
        elif segment.state is not RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            raise RemoteStorageError(
                f"The segment {segment.start_offset} to {segment.end_offset} of {segment.partition} cannot be "
                "finished: its deletion has begun."
            )

    async def delete(self, deletions: Sequence[Deletion], *, goes_on: Callable[[], bool]) -> bool:
        """Delete segments with their bytes, until `goes_on` is false. True if all are deleted."""
        return await DeletionTurn(self._deleter).run(deletions, goes_on)

    async def take_back(self, segment: RemoteLogSegmentMetadata) -> None:
        """Delete what an upload that failed has left. It is to be deleted once more, later: see `SegmentDeleter`."""
        try:
            await self._deleter.take_back(segment)
        except ValueError as error:  # another broker was faster
            raise RemoteStorageError(f"A failed upload cannot be taken back: {error}") from error

    async def delete_late(self, partition: TopicIdPartition, segment_id: UUID, start: Offset, end: Offset) -> None:
        """Delete what was written of a segment after it had been given up, or after its topic was deleted."""
        await self._deleter.delete_late(
            RemoteLogSegmentMetadata(
                segment_id=RemoteLogSegmentId(partition, segment_id),
                start_offset=start,
                end_offset=end,
                max_timestamp_ms=NO_TIMESTAMP,
                broker_id=-1,
                event_timestamp_ms=NO_TIMESTAMP,
                segment_size_in_bytes=0,
                segment_leader_epochs={0: start},
            )
        )

    async def delete_lost(self, segment: RemoteLogSegmentMetadata) -> None:
        """Delete a segment that was finished, but is not part of the log."""
        await self._deleter.delete(Deletion(segment, DeletionReason.LOST))

    async def delete_abandoned(self, segment: RemoteLogSegmentMetadata) -> None:
        """Delete what is left of an upload for good."""
        await self._deleter.delete(Deletion(segment, DeletionReason.ABANDONED))
