"""The copy task: copies closed segments of one log to remote storage, oldest first."""

from __future__ import annotations

import logging
from typing import Final

from strandline.clock import Clock
from strandline.log import ClosedSegment, UnifiedLog
from strandline.model import Offset
from strandline.remote.manager.copying.plan import copy_from, to_copy
from strandline.remote.manager.copying.segment import CustomMetadataTooLarge, SegmentCopier
from strandline.remote.manager.jobs import JobPool, Look
from strandline.remote.manager.partition import LeaderPartition, TieredPartition, offsets_of
from strandline.remote.manager.starting import find_out
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.quota import RateQuota

logger = logging.getLogger(__name__)

# `RemoteCopies.segments_to_copy` does some work for each of them.
_SEGMENTS_PER_LOOK: Final = 8


class CopyTask:
    """Copies the closed segments of one partition."""

    def __init__(
        self,
        partition: TieredPartition,
        metadata: RemoteLogMetadataManager,
        copier: SegmentCopier,
        quota: RateQuota,
        clock: Clock,
    ) -> None:
        self._partition, self._metadata, self._copier, self._quota = partition, metadata, copier, quota
        self._clock = clock

    @property
    def name(self) -> str:
        return f"copying of {self._partition.id.topic_partition} to remote storage"

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
            logger.error("%s stopped: %s", self.name, error)
            return False

    async def _run(self, pool: JobPool) -> bool:
        partition, leader = self._partition, self._partition.leader
        if leader is None:
            return False
        refused: Offset | None = None
        while partition.is_led_as(leader) and not partition.is_withdrawing:
            if not partition.is_started:
                await find_out(partition, leader, self._metadata, self._clock)
                if not partition.is_started:
                    return False  # what has changed meanwhile wakes this task again
                continue
            segments = self._segments(leader.log)
            if not segments or segments[0].base_offset == refused:
                return False  # trying it again at once would block the other partitions
            for segment in segments:
                if not await self._copy(leader, segment):
                    refused = segment.base_offset
                    break
                if pool.others_wait:
                    return True
        return False

    def _segments(self, log: UnifiedLog) -> list[ClosedSegment]:
        """The next segments that may be copied."""
        start = copy_from(offsets_of(log), self._partition.copied)
        if start is None or not log.config.remote_storage_enable or log.config.remote_log_copy_disable:
            return []
        return to_copy(log.remote.segments_to_copy(start, limit=_SEGMENTS_PER_LOOK), start, log.last_stable_offset)

    async def _copy(self, leader: LeaderPartition, segment: ClosedSegment) -> bool:
        """Copy one segment. False if it must not be copied any more, or this broker does not lead the partition."""
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
        """Whether a segment still begins where remote storage ends.

        While it waited for the quota, tiering may have been switched off and on again, or the log start may have passed
        it. Copying it then would leave a gap in remote storage, and the offsets in the gap would count as copied.
        """
        partition, config = self._partition, log.config
        is_wanted = config.remote_storage_enable and not config.remote_log_copy_disable
        if not is_wanted or partition.is_withdrawing or not partition.is_started:
            return False
        start = copy_from(offsets_of(log), partition.copied)
        return start is not None and segment.base_offset <= start < segment.next_base_offset
