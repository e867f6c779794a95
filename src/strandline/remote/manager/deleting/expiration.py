"""The expiration task: deletes remote segments of one partition that have expired, or that the log does not need.

The log start moves first and is stored, then segments are deleted, oldest first: a reader gets OffsetOutOfRange, and is
never sent to a deleted segment, also after a crash.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.clock import Clock
from strandline.config import TopicConfig
from strandline.crash import crash_point
from strandline.model import NO_OFFSET, BrokerId, LeaderEpoch, Offset
from strandline.remote.manager.deleting.late_copies import DeletionStep, LateCopies
from strandline.remote.manager.deleting.plan import Deletion, ExpiryPlan, ExpiryQuestion, planning
from strandline.remote.manager.deleting.segment import DeletionTurn, SegmentDeleter
from strandline.remote.manager.deleting.withdrawal import Withdrawal
from strandline.remote.manager.jobs import JobPool, Look
from strandline.remote.manager.limits import ManagerLimits
from strandline.remote.manager.partition import LeaderPartition, TieredPartition
from strandline.remote.manager.starting import find_out
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.turns import in_turns

# An unchanged partition still gets a new plan from time to time: other brokers write metadata too.
_INTERVALS_UNSEEN: Final = 20
_DELETIONS_PER_TURN: Final = 16


class _PlanBasis(NamedTuple):
    """What the last plan was made from. While it is the same, only time and the size of the log change the plan."""

    leader: LeaderPartition
    config: TopicConfig
    changes: int
    log_start: Offset
    epoch: LeaderEpoch | None


class _Retention(NamedTuple):
    """retention.ms and retention.bytes; -1 keeps everything."""

    ms: int
    bytes: int


class _Size(NamedTuple):
    """What the size of a log depends on while its segments stay the same."""

    end: Offset
    suffix_bytes: int


def _size(leader: LeaderPartition) -> _Size:
    return _Size(leader.log.log_end_offset, leader.suffix_bytes())


def _retention(config: TopicConfig) -> _Retention:
    """The retention of a topic: unlimited if cleanup.policy does not contain `delete`."""
    return (
        _Retention(config.retention_ms, config.retention_bytes)
        if config.is_deleted_by_retention
        else _Retention(-1, -1)
    )


class ExpirationTask:
    """Expires the remote segments of one partition."""

    def __init__(
        self,
        partition: TieredPartition,
        metadata: RemoteLogMetadataManager,
        deleter: SegmentDeleter,
        *,
        broker_id: BrokerId,
        limits: ManagerLimits,
        late_seconds: float,
        clock: Clock,
    ) -> None:
        """`late_seconds`: how long what a failed copy has sent may take to arrive; see `LateWrites`."""
        self._partition, self._metadata, self._deleter = partition, metadata, deleter
        self._broker_id, self._limits, self._clock = broker_id, limits, clock
        self._late = LateCopies(late_seconds, clock)
        self._withdrawal = Withdrawal(partition, metadata, deleter, clock)
        self._basis: _PlanBasis | None = None
        self._due_ms = 0
        self._due_bytes: int | None = None
        self._sized_at = _Size(NO_OFFSET, 0)

    @property
    def name(self) -> str:
        return f"expiration of remote segments of {self._partition.id.topic_partition}"

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
            await find_out(self._partition, leader, self._metadata, self._clock)
            is_same = self._partition.is_led_as(leader) and leader.log.config.remote_storage_enable
            if not (self._partition.is_started and is_same):
                return True  # finding out took a while: look again
        return await self._expire(leader, pool)

    def _now(self, leader: LeaderPartition) -> _PlanBasis:
        log = leader.log
        return _PlanBasis(
            leader,
            log.config,
            self._partition.changes,
            log.log_start_offset,
            log.epochs.latest,
        )

    def _is_settled(self, leader: LeaderPartition) -> bool:
        """Whether the last plan still holds. Called regularly for idle partitions."""
        if self._basis is None or self._clock.now_ms() >= self._due_ms or self._now(leader) != self._basis:
            return False
        log = leader.log
        is_sized = log.config.remote_storage_enable and _retention(log.config).bytes >= 0
        if not is_sized:
            return True
        size = _size(leader)
        if size == self._sized_at:
            return True
        # The summary includes duplicates, which do not count: at worst a plan is made too early.
        if self._due_bytes is None or not self._metadata.is_ready(self._partition.id):
            return False
        remote = self._metadata.remote_log_summary(self._partition.id).finished_bytes
        if remote + log.remote.only_local_size + size.suffix_bytes >= self._due_bytes:
            return False
        self._sized_at = size
        return True

    def _settle(self, basis: _PlanBasis, plan: ExpiryPlan | None, *, size: _Size) -> None:
        """The plan is carried out: nothing is to be done until its basis changes, the log grows, or time passes."""
        due_ms = None if plan is None else plan.next_due_ms
        thorough_ms = self._clock.now_ms() + _INTERVALS_UNSEEN * self._limits.task_interval_ms
        times = (due_ms, self._late.due_ms(), thorough_ms)
        self._basis, self._due_ms = basis, min(time for time in times if time is not None)
        self._due_bytes = None if plan is None else plan.next_due_bytes
        self._sized_at = size

    # Retention

    async def _expire(self, leader: LeaderPartition, pool: JobPool) -> bool:
        partition, log = self._partition, leader.log
        basis, size, copied = self._now(leader), _size(leader), partition.copied
        self._basis = None
        plan = await self._plan(leader)
        if not partition.is_led_as(leader):
            return False  # the log start is the new leader's to move
        # Making the plan took a while. It still holds if meanwhile the log start has moved up, or a segment was copied
        # and the plan keeps others.
        is_same = self._now(leader)._replace(changes=basis.changes, log_start=basis.log_start) == basis
        if not is_same or (not plan.has_kept and partition.copied != copied):
            return True
        partition.has_kept = plan.has_kept
        if plan.log_start > log.log_start_offset:
            log.start.increment(plan.log_start)
            crash_point("remote.delete.after_log_start")
        if plan.deletions:
            await leader.store_log_start()  # whether this plan moved it or a client
        deletions = plan.deletions[:_DELETIONS_PER_TURN] if pool.others_wait else plan.deletions
        # A plan that is full of segments which have to wait is not made again before the first of them may go.
        is_waiting = all(self._late.step(each) is DeletionStep.WAIT for each in deletions)
        if plan.is_complete:
            self._late.keep(plan.deletions)
        if not await DeletionTurn(self._deleter).each(deletions, self._delete, lambda: partition.is_led_as(leader)):
            return False
        if len(deletions) < len(plan.deletions) or not (plan.is_complete or is_waiting):
            return True
        self._settle(basis._replace(log_start=plan.log_start), plan, size=size)
        return False

    async def _delete(self, deletion: Deletion) -> None:
        step = self._late.step(deletion)
        if step is DeletionStep.FINISH:
            await self._deleter.delete(deletion)
        elif step is DeletionStep.CLEAR:
            await self._deleter.take_back(deletion.segment)
            self._late.cleared(deletion)

    async def _plan(self, leader: LeaderPartition) -> ExpiryPlan:
        """The plan, as of this call."""
        log, partition, now_ms = leader.log, self._partition, self._clock.now_ms()
        retention = _retention(log.config)
        copying = partition.copying
        question = ExpiryQuestion(
            segments=self._metadata.iter_remote_log_segments(partition.id),
            from_oldest=self._metadata.iter_remote_log_segments(partition.id),
            lookup=lambda epoch, at: self._metadata.remote_log_segment_metadata(partition.id, epoch, at),
            epochs=tuple(log.epochs.entries),
            log_start=log.log_start_offset,
            high_watermark=log.high_watermark,
            log_end=log.log_end_offset,
            local_only_bytes=log.remote.only_local_size,
            suffix_bytes=leader.suffix_bytes(),
            retention_ms=retention.ms,
            retention_bytes=retention.bytes,
            now_ms=now_ms,
            broker_id=self._broker_id,
            being_copied=None if copying is None else copying.segment.segment_id.id,
            abandoned_before_ms=now_ms - self._limits.abandoned_copy_ms,
        )
        return await in_turns(self._clock, planning(question))

    # Tiering switched off

    async def _withdraw(self, leader: LeaderPartition) -> bool:
        if not await self._withdrawal.run(leader):
            return True  # the topic is tiered again, or another broker leads the partition
        self._settle(self._now(leader), None, size=_size(leader))
        return False
