"""Copies one segment, with its indexes, to remote storage.

The metadata of the segment is written before the first byte is copied, and updated after the last one. So remote
storage holds nothing without metadata, and a crash leaves no orphan.
"""

from __future__ import annotations

import logging

from strandline.clock import Clock, Ids
from strandline.crash import crash_point
from strandline.log import ClosedSegment
from strandline.model import NO_EPOCH, BrokerId, TopicIdPartition
from strandline.remote.manager.deleting import SegmentDeleter
from strandline.remote.manager.history import boundaries
from strandline.remote.manager.partition import TieredPartition
from strandline.remote.manager.states import SegmentStates
from strandline.remote.manager.status import Counters
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageError, RemoteStorageManager
from strandline.remote.values import LogSegmentData, RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState

logger = logging.getLogger(__name__)


class CustomMetadataTooLarge(Exception):
    """The storage returned more custom metadata than the settings allow."""


class SegmentCopier:
    """Copies single segments. Shared by all partitions."""

    def __init__(
        self,
        storage: RemoteStorageManager,
        metadata: RemoteLogMetadataManager,
        states: SegmentStates,
        deleter: SegmentDeleter,
        counters: Counters,
        *,
        broker_id: BrokerId,
        custom_metadata_max_bytes: int,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._storage, self._metadata, self._states, self._deleter = storage, metadata, states, deleter
        self._counters, self._broker_id, self._clock, self._ids = counters, broker_id, clock, ids
        self._custom_metadata_max_bytes = custom_metadata_max_bytes

    async def copy(self, partition: TieredPartition, segment: ClosedSegment) -> None:
        """Copy a segment with its indexes. Raises RemoteStorageError, CustomMetadataTooLarge.

        A failed copy is deleted, now or by the expiration task.
        """
        metadata = self._metadata_of(partition.id, segment)
        counters = self._counters.of(partition.id.topic)
        counters.copy_requests += 1
        partition.begin_copy(metadata, self._clock.monotonic())
        try:
            crash_point("remote.copy.before_started")
            await self._states.add(metadata)
            crash_point("remote.copy.after_started")
            await self._copy_files(metadata, segment)
        except Exception:
            counters.copy_errors += 1
            partition.changes += 1
            raise
        finally:
            partition.end_copy()
        if not partition.has_kept:
            partition.changes += 1
        counters.copy_bytes += segment.size

    async def _copy_files(self, metadata: RemoteLogSegmentMetadata, segment: ClosedSegment) -> None:
        try:
            custom = await self._storage.copy_log_segment_data(metadata, segment_files(segment))
            crash_point("remote.copy.after_data")
            if custom is not None and len(custom) > self._custom_metadata_max_bytes:
                raise CustomMetadataTooLarge(
                    f"The storage returned {len(custom)} bytes of custom metadata for a segment, but "
                    f"remote.log.metadata.custom.metadata.max.bytes is {self._custom_metadata_max_bytes}."
                )
            await self._states.update(metadata, RemoteLogSegmentState.COPY_SEGMENT_FINISHED, custom)
            crash_point("remote.copy.after_finished")
        except Exception:
            if not self._is_finished(metadata):
                await self._take_back(metadata)
                raise

    def _is_finished(self, metadata: RemoteLogSegmentMetadata) -> bool:
        """Whether the copy has succeeded, and only the answer was lost."""
        epoch, offset = next(boundaries(metadata))
        try:
            found = self._metadata.remote_log_segment_metadata(metadata.partition, epoch, offset)
        except RemoteStorageError:
            return False
        return found is not None and found.segment_id == metadata.segment_id

    async def _take_back(self, metadata: RemoteLogSegmentMetadata) -> None:
        try:
            await self._deleter.take_back(metadata)
        except (RemoteStorageError, ValueError) as error:
            logger.info("a failed copy of a segment of %s will be deleted later: %s", metadata.partition, error)

    def _metadata_of(self, partition: TopicIdPartition, segment: ClosedSegment) -> RemoteLogSegmentMetadata:
        if not segment.leader_epochs or NO_EPOCH in segment.leader_epochs:
            raise RemoteStorageError(
                f"Segment {segment.base_offset} of {partition} cannot be copied: its leader epochs are not known. "
                "Is its leader-epoch-checkpoint lost?"
            )
        return RemoteLogSegmentMetadata(
            segment_id=RemoteLogSegmentId(partition, self._ids.uuid()),
            start_offset=segment.base_offset,
            end_offset=segment.end_offset,
            max_timestamp_ms=segment.max_timestamp,
            broker_id=self._broker_id,
            event_timestamp_ms=self._clock.now_ms(),
            segment_size_in_bytes=segment.size,
            segment_leader_epochs=segment.leader_epochs,
            txn_index_empty=segment.txn_index is None,
        )


def segment_files(segment: ClosedSegment) -> LogSegmentData:
    """The files of a segment, as storages get them."""
    return LogSegmentData(
        log_segment=segment.log,
        offset_index=segment.offset_index,
        time_index=segment.time_index,
        transaction_index=segment.txn_index,
        producer_snapshot_index=segment.producer_snapshot,
        leader_epoch_index=segment.epoch_history,
    )
