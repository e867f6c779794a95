"""The copy task: finished segments of one log to remote storage, oldest first.

First the description says that a copy begins, then the bytes go, then the description says that it has ended. Whatever
is in remote storage is therefore described, and a crash leaves nothing that nobody knows of.
"""

from __future__ import annotations

import logging
from typing import Final

from strandline.clock import Clock, Ids
from strandline.crash import crash_point
from strandline.log import ClosedSegment, UnifiedLog
from strandline.model import NO_EPOCH, BrokerId, Offset, TopicIdPartition
from strandline.remote.manager.copy_plan import copy_from, to_copy
from strandline.remote.manager.counters import Counters
from strandline.remote.manager.deleting import SegmentDeleter
from strandline.remote.manager.jobs import JobPool, Look
from strandline.remote.manager.lineage import boundaries
from strandline.remote.manager.partition import LeaderPartition, TieredPartition, offsets_of
from strandline.remote.manager.starting import find_out
from strandline.remote.manager.states import SegmentStates
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageError, RemoteStorageManager
from strandline.remote.quota import RateQuota
from strandline.remote.values import LogSegmentData, RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState

logger = logging.getLogger(__name__)

# Each of them is made ready to be copied when it is asked for.
_SEGMENTS_PER_LOOK: Final = 8


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
        counters.copied_segments += 1
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


class CopyTask:
    """Copies what one partition has finished."""

    def __init__(
        self,
        partition: TieredPartition,
        metadata: RemoteLogMetadataManager,
        copier: SegmentCopier,
        quota: RateQuota,
    ) -> None:
        self._partition, self._metadata, self._copier, self._quota = partition, metadata, copier, quota

    @property
    def name(self) -> str:
        return f"Copying of {self._partition.id.topic_partition} to remote storage"

    def look(self) -> Look:
        partition = self._partition
        leader = partition.leader
        if leader is None or partition.refusal is not None:
            return Look.IDLE
        log = leader.log
        if log.is_offline or not log.config.remote_storage_enable:
            return Look.IDLE
        if partition.is_withdrawing:
            return Look.NOT_READY
        if not partition.is_started:
            return Look.WORK if self._metadata.is_ready(partition.id) else Look.NOT_READY
        if log.config.remote_log_copy_disable or copy_from(offsets_of(log), partition.copied) is None:
            return Look.IDLE
        return Look.WORK

    async def run(self, pool: JobPool) -> bool:
        try:
            return await self._run(pool)
        except CustomMetadataTooLarge as error:
            self._partition.refusal = str(error)
            logger.error("%s stops: %s", self.name, error)
            return False

    async def _run(self, pool: JobPool) -> bool:
        partition, leader = self._partition, self._partition.leader
        if leader is None:
            return False
        refused: Offset | None = None
        while partition.is_led_as(leader) and not partition.is_withdrawing:
            if not partition.is_started:
                find_out(partition, leader, self._metadata)
            segments = self._segments(leader.log)
            if not segments or segments[0].base_offset == refused:
                return False  # the same one at once would be refused for ever, and nobody else be served
            for segment in segments:
                if not await self._copy(leader, segment):
                    refused = segment.base_offset
                    break
                if pool.others_wait:
                    return True
        return False

    def _segments(self, log: UnifiedLog) -> list[ClosedSegment]:
        """The next ones that may be copied."""
        start = copy_from(offsets_of(log), self._partition.copied)
        if start is None or not log.config.remote_storage_enable or log.config.remote_log_copy_disable:
            return []
        return to_copy(log.remote.segments_to_copy(start, limit=_SEGMENTS_PER_LOOK), start, log.last_stable_offset)

    async def _copy(self, leader: LeaderPartition, segment: ClosedSegment) -> bool:
        """Copy one segment. False if it is not to be copied any more, or this broker does not lead the partition."""
        partition, log = self._partition, leader.log
        partition.is_waiting_for_quota = True
        try:
            await self._quota.wait_for_room(segment.size)
        finally:
            partition.is_waiting_for_quota = False
        if not partition.is_led_as(leader) or not self._is_next(log, segment):
            return False
        await self._copier.copy(partition, segment)
        if not partition.is_led_as(leader):
            return False
        partition.copied = segment.end_offset
        log.remote.update_highest_offset(segment.end_offset)
        return True

    def _is_next(self, log: UnifiedLog, segment: ClosedSegment) -> bool:
        """Whether a segment still goes on where remote storage ends.

        While it waited for its turn, tiering may have been switched off and on again, or the log start have passed it.
        Copied all the same it would leave a gap, and what is in the gap would be taken for copied.
        """
        partition, config = self._partition, log.config
        is_wanted = config.remote_storage_enable and not config.remote_log_copy_disable
        if not is_wanted or partition.is_withdrawing or not partition.is_started:
            return False
        start = copy_from(offsets_of(log), partition.copied)
        return start is not None and segment.base_offset <= start < segment.next_base_offset
