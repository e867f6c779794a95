"""Copies one segment, with its indexes, to remote storage.

First the metadata says that a copy begins, then the bytes go, then the metadata says that it has ended. Whatever
is in remote storage is therefore described, and a crash leaves nothing that nobody knows of.
"""

from __future__ import annotations

import logging

from strandline.clock import Clock, Ids
from strandline.crash import crash_point
from strandline.log import ClosedSegment
from strandline.model import NO_EPOCH, BrokerId, TopicIdPartition
from strandline.remote.manager.deleting.segment import SegmentDeleter
from strandline.remote.manager.history import boundaries
from strandline.remote.manager.partition import TieredPartition
from strandline.remote.manager.states import SegmentStates
from strandline.remote.manager.status import Counters
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageError, RemoteStorageManager
from strandline.remote.values import LogSegmentData, RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState

logger = logging.getLogger(__name__)


class CustomMetadataTooLarge(Exception):
    """What the storage wants kept with a segment does not fit into the description."""


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
        """Copy a segment with all that belongs to it. Raises RemoteStorageError, CustomMetadataTooLarge.

        A copy that fails is deleted again, now or by the expiration task.
        """
        described = self._describe(partition.id, segment)
        counters = self._counters.of(partition.id.topic)
        counters.copy_requests += 1
        partition.begin_copy(described, self._clock.monotonic())
        try:
            crash_point("remote.copy.before_started")
            await self._states.add(described)
            crash_point("remote.copy.after_started")
            await self._copy_described(described, segment)
        except Exception:
            counters.copy_errors += 1
            partition.changes += 1
            raise
        finally:
            partition.end_copy()
        if not partition.has_kept:
            partition.changes += 1
        counters.copy_bytes += segment.size

    async def _copy_described(self, described: RemoteLogSegmentMetadata, segment: ClosedSegment) -> None:
        try:
            custom = await self._storage.copy_log_segment_data(described, _files_of(segment))
            crash_point("remote.copy.after_data")
            if custom is not None and len(custom) > self._custom_metadata_max_bytes:
                raise CustomMetadataTooLarge(
                    f"The storage wants {len(custom)} bytes kept with each segment, and "
                    f"remote.log.metadata.custom.metadata.max.bytes is {self._custom_metadata_max_bytes}."
                )
            await self._states.update(described, RemoteLogSegmentState.COPY_SEGMENT_FINISHED, custom)
            crash_point("remote.copy.after_finished")
        except Exception:
            if not self._is_finished(described):
                await self._take_back(described)
                raise

    def _is_finished(self, described: RemoteLogSegmentMetadata) -> bool:
        """Whether the copy has ended well all the same: only the answer was lost."""
        epoch, offset = next(boundaries(described))
        try:
            found = self._metadata.remote_log_segment_metadata(described.partition, epoch, offset)
        except RemoteStorageError:
            return False
        return found is not None and found.segment_id == described.segment_id

    async def _take_back(self, described: RemoteLogSegmentMetadata) -> None:
        try:
            await self._deleter.take_back(described)
        except (RemoteStorageError, ValueError) as error:
            logger.info("What is left of a failed copy of %s is deleted later: %s", described.partition, error)

    def _describe(self, partition: TopicIdPartition, segment: ClosedSegment) -> RemoteLogSegmentMetadata:
        if not segment.leader_epochs or NO_EPOCH in segment.leader_epochs:
            raise RemoteStorageError(
                f"The segment {segment.base_offset} of {partition} cannot be copied: its leader epochs are not known. "
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


def _files_of(segment: ClosedSegment) -> LogSegmentData:
    return LogSegmentData(
        log_segment=segment.log,
        offset_index=segment.offset_index,
        time_index=segment.time_index,
        transaction_index=segment.txn_index,
        producer_snapshot_index=segment.producer_snapshot,
        leader_epoch_index=segment.epoch_history,
    )
