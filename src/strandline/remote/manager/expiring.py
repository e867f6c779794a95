"""The expiration task: remote segments of one partition that retention lets go, or that should not be there.

The log start moves first, then segments go, the oldest first: a reader is told that an offset is gone, and never sent
to a segment that is.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.clock import Clock
from strandline.config.topic import TopicConfig
from strandline.crash import crash_point
from strandline.log import UnifiedLog
from strandline.model import NO_OFFSET, BrokerId, LeaderEpoch, Offset
from strandline.remote.manager.deleting import DeletionTurn, SegmentDeleter
from strandline.remote.manager.expiry_plan import ExpiryPlan, ExpiryQuestion, plan_expiry
from strandline.remote.manager.jobs import JobPool, Look
from strandline.remote.manager.limits import ManagerLimits
from strandline.remote.manager.partition import LeaderPartition, TieredPartition
from strandline.remote.manager.starting import find_out
from strandline.remote.manager.summary import summarize
from strandline.remote.manager.withdrawing import Withdrawal
from strandline.remote.ports import RemoteLogMetadataManager

# A partition on which nothing has changed is still looked at thoroughly from time to time: others write there too.
_INTERVALS_UNSEEN: Final = 20
_DELETIONS_PER_TURN: Final = 16


class _Seen(NamedTuple):
    """What the last plan was made from. As long as it is the same, only time can change the plan."""

    leader: LeaderPartition
    config: TopicConfig
    changes: int
    log_start: Offset
    epoch: LeaderEpoch | None


class _Retention(NamedTuple):
    """retention.ms and retention.bytes; -1 keeps everything."""

    ms: int
    bytes: int


def _retention(config: TopicConfig) -> _Retention:
    """What retention lets go: nothing if cleanup.policy does not have `delete`."""
    return (
        _Retention(config.retention_ms, config.retention_bytes)
        if config.is_deleted_by_retention
        else _Retention(-1, -1)
    )


class ExpirationTask:
    """Expires what one partition has in remote storage."""

    def __init__(
        self,
        partition: TieredPartition,
        metadata: RemoteLogMetadataManager,
        deleter: SegmentDeleter,
        *,
        broker_id: BrokerId,
        limits: ManagerLimits,
        clock: Clock,
    ) -> None:
        self._partition, self._metadata, self._deleter = partition, metadata, deleter
        self._broker_id, self._limits, self._clock = broker_id, limits, clock
        self._withdrawal = Withdrawal(partition, metadata, deleter)
        self._seen: _Seen | None = None
        self._due_ms = 0
        self._due_bytes: int | None = None
        self._sized_at: Offset = NO_OFFSET

    @property
    def name(self) -> str:
        return f"Expiration of remote segments of {self._partition.id.topic_partition}"

    def look(self) -> Look:
        leader = self._partition.leader
        if leader is None or leader.log.is_offline:
            return Look.IDLE
        if self._is_settled(leader):
            return Look.IDLE
        return Look.WORK if self._metadata.is_ready(self._partition.id) else Look.NOT_READY

    async def run(self, pool: JobPool) -> bool:
        leader = self._partition.leader
        if leader is None:
            return False
        if not leader.log.config.remote_storage_enable:
            return await self._withdraw(leader)
        self._partition.is_withdrawn = False
        if not self._partition.is_started:
            find_out(self._partition, leader, self._metadata)
        return await self._expire(leader, pool)

    def _now(self, leader: LeaderPartition) -> _Seen:
        log = leader.log
        return _Seen(
            leader,
            log.config,
            self._partition.changes,
            log.log_start_offset,
            log.epochs.latest,
        )

    def _is_settled(self, leader: LeaderPartition) -> bool:
        """Whether the last plan still holds. Asked of idle partitions again and again."""
        if self._seen is None or self._clock.now_ms() >= self._due_ms or self._now(leader) != self._seen:
            return False
        log = leader.log
        is_sized = log.config.remote_storage_enable and _retention(log.config).bytes >= 0
        if not is_sized or log.log_end_offset == self._sized_at:
            return True
        # What is remote and does not count (duplicates) only makes this look too large, and the plan too early.
        if self._due_bytes is None or self._partition.summary.finished_bytes + log.only_local_size >= self._due_bytes:
            return False
        self._sized_at = log.log_end_offset
        return True

    def _saw(self, leader: LeaderPartition, plan: ExpiryPlan | None) -> None:
        """Nothing is left to do until something changes, or time passes."""
        due_ms = None if plan is None else plan.next_due_ms
        thorough_ms = self._clock.now_ms() + _INTERVALS_UNSEEN * self._limits.task_interval_ms
        self._seen, self._due_ms = self._now(leader), thorough_ms if due_ms is None else min(due_ms, thorough_ms)
        self._due_bytes = None if plan is None else plan.next_due_bytes
        self._sized_at = leader.log.log_end_offset

    # Retention

    async def _expire(self, leader: LeaderPartition, pool: JobPool) -> bool:
        partition, log = self._partition, leader.log
        plan = self._plan(log)
        partition.has_kept = plan.has_kept
        if plan.log_start > log.log_start_offset:
            log.increment_log_start_offset(plan.log_start)
            crash_point("remote.delete.after_log_start")
        deletions = plan.deletions[:_DELETIONS_PER_TURN] if pool.others_wait else plan.deletions
        if deletions:
            partition.changes += 1
            if not await DeletionTurn(self._deleter).run(deletions, lambda: partition.is_led_as(leader)):
                return False
            partition.changes += 1
            return True  # to plan again with what is left, which is mostly nothing
        self._saw(leader, plan)
        return False

    def _plan(self, log: UnifiedLog) -> ExpiryPlan:
        partition, now_ms, retention = self._partition, self._clock.now_ms(), _retention(log.config)
        copying = partition.copying
        segments = self._metadata.list_remote_log_segments(partition.id)
        partition.summary = summarize(segments)
        return plan_expiry(
            ExpiryQuestion(
                segments=segments,
                lookup=lambda epoch, at: self._metadata.remote_log_segment_metadata(partition.id, epoch, at),
                epochs=log.epochs.entries,
                log_start=log.log_start_offset,
                high_watermark=log.high_watermark,
                log_end=log.log_end_offset,
                local_only_bytes=log.only_local_size,
                retention_ms=retention.ms,
                retention_bytes=retention.bytes,
                now_ms=now_ms,
                broker_id=self._broker_id,
                being_copied=None if copying is None else copying.segment.segment_id.id,
                abandoned_before_ms=now_ms - self._limits.abandoned_copy_ms,
            )
        )

    # Tiering switched off

    async def _withdraw(self, leader: LeaderPartition) -> bool:
        if not await self._withdrawal.run(leader):
            return True  # it is tiered again, or led by another broker
        self._partition.summary = summarize(self._metadata.list_remote_log_segments(self._partition.id))
        self._saw(leader, None)
        return False
