"""The RemoteLogManager: its partitions, the tasks of each, and their status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass

from strandline.averages import OneMinuteAverage
from strandline.clock import Chance, Clock, Ids
from strandline.model import BrokerId, TopicIdPartition
from strandline.remote.manager.copying import CopyTask, SegmentCopier
from strandline.remote.manager.deleting import ExpirationTask, PartitionDeletion, SegmentDeleter, SegmentsDeleted
from strandline.remote.manager.jobs import JobPool, Look, PoolStatus
from strandline.remote.manager.limits import ManagerLimits
from strandline.remote.manager.partition import LeaderPartition, TieredPartition
from strandline.remote.manager.pipeline import PipelineSegments
from strandline.remote.manager.report import TierReport
from strandline.remote.manager.states import SegmentStates
from strandline.remote.manager.status import Counters, ManagerStatus, PartitionTierStatus
from strandline.remote.ports import LateWrites, RemoteLogMetadataManager, RemoteStorageManager
from strandline.remote.quota import RateQuota
from strandline.remote.values import RemoteLogSegmentId, RemotePartitionDeleteState


@dataclass(frozen=True, slots=True)
class _Tasks:
    """A partition and its tasks."""

    partition: TieredPartition
    copy: CopyTask
    expiration: ExpirationTask


def _ignore_deleted(segments: Collection[RemoteLogSegmentId]) -> None:
    """For callers that cache nothing of remote segments."""


class RemoteLogManager:
    """Copies, expires and deletes, for every partition that this broker leads.

    `lead`, `stop`, `delete` and `reconsider` only schedule work, which is done inside `running`. Belongs to the event
    loop.
    """

    def __init__(
        self,
        storage: RemoteStorageManager,
        metadata: RemoteLogMetadataManager,
        *,
        broker_id: BrokerId,
        limits: ManagerLimits,
        clock: Clock,
        ids: Ids,
        chance: Chance,
        on_segments_deleted: SegmentsDeleted = _ignore_deleted,
    ) -> None:
        self._metadata, self._broker_id, self._limits, self._clock = metadata, broker_id, limits, clock
        self._late_seconds = storage.late_seconds if isinstance(storage, LateWrites) else 0.0
        self._counters = Counters()
        self._states = SegmentStates(
            metadata, broker_id=broker_id, clock=clock, deadline_ms=limits.metadata_deadline_ms
        )
        self._deleter = SegmentDeleter(storage, self._states, self._counters, on_segments_deleted)
        self._copier = SegmentCopier(
            storage,
            metadata,
            self._states,
            self._deleter,
            self._counters,
            broker_id=broker_id,
            custom_metadata_max_bytes=limits.custom_metadata_max_bytes,
            clock=clock,
            ids=ids,
        )
        self.pipeline = PipelineSegments(
            storage,
            metadata,
            self._states,
            self._deleter,
            custom_metadata_max_bytes=limits.custom_metadata_max_bytes,
        )
        self._quota = RateQuota(
            limits.copy_max_bytes_per_second,
            windows=limits.copy_quota_window_num,
            window_seconds=limits.copy_quota_window_size_seconds,
            clock=clock,
        )
        self._copies = JobPool(limits.copier_thread_pool_size, limits, clock=clock, chance=chance)
        self._expirations = JobPool(limits.expiration_thread_pool_size, limits, clock=clock, chance=chance)
        self._tasks: dict[TopicIdPartition, _Tasks] = {}
        self._deletions: dict[TopicIdPartition, PartitionDeletion] = {}
        self._report = TierReport(metadata, clock)
        self._busy_copying, self._busy_expiring = OneMinuteAverage(clock), OneMinuteAverage(clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[RemoteLogManager]:
        """Work inside this block. At its end copies are cancelled; the next leader deletes their remains."""
        self._expirations.wake(_InterruptedDeletions(self))
        async with asyncio.TaskGroup() as group:
            pools = [
                group.create_task(self._copies.run(), name="remote-log-copier"),
                group.create_task(self._expirations.run(), name="remote-log-expiration"),
            ]
            try:
                yield self
            finally:
                for pool in pools:
                    pool.cancel()

    # Partitions

    def lead(self, leader: LeaderPartition) -> None:
        """This broker leads a partition, perhaps in a new epoch."""
        tasks = self._tasks_of(leader.partition)
        tasks.partition.lead(leader)
        self._copies.wake(tasks.copy)
        self._expirations.wake(tasks.expiration)

    def stop(self, partition: TopicIdPartition) -> None:
        """This broker does not lead a partition any more. An in-flight copy completes; no other begins."""
        tasks = self._tasks.get(partition)
        if tasks is None:
            return
        tasks.partition.leader = None
        self._copies.remove(tasks.copy)
        self._expirations.remove(tasks.expiration)
        if tasks.partition.quiet.is_set():
            del self._tasks[partition]

    def delete(self, partition: TopicIdPartition) -> None:
        """The topic of a partition was deleted: delete all of its remote segments."""
        deletion = self._deletions.get(partition)
        if deletion is not None and not deletion.is_done:
            return
        self._metadata.on_partition_leadership_changes((partition,), ())
        tasks = self._tasks_of(partition)
        self.stop(partition)
        deletion = PartitionDeletion(tasks.partition, self._metadata, self._states, self._deleter, self._clock)
        self._deletions[partition] = deletion
        self._expirations.wake(deletion)

    def reconsider(self, partition: TopicIdPartition) -> None:
        """The settings of a partition have changed: look at it now."""
        tasks = self._tasks.get(partition)
        if tasks is not None and tasks.partition.leader is not None:
            tasks.partition.refusal = None
            self._copies.wake(tasks.copy)
            self._expirations.wake(tasks.expiration)

    def copy_now(self, partition: TopicIdPartition) -> None:
        """Segments of a led partition were closed that should not wait for the next regular look."""
        tasks = self._tasks.get(partition)
        if tasks is not None and tasks.partition.leader is not None:
            self._copies.wake(tasks.copy)

    def is_withdrawing(self, partition: TopicIdPartition) -> bool:
        """Whether tiering of a led partition was switched off, and remote segments are left to delete."""
        tasks = self._tasks.get(partition)
        return tasks is not None and tasks.partition.is_withdrawn

    def has_leftovers(self, partition: TopicIdPartition) -> bool:
        """Whether segments in DELETE_SEGMENT_STARTED are left, as far as the metadata has been read."""
        if not self._metadata.is_ready(partition):
            return False
        return self._metadata.remote_log_summary(partition).deleting_segments > 0

    def change_copy_quota(self, bytes_per_second: int) -> None:
        """Another `remote.log.manager.copy.max.bytes.per.second` from now on."""
        self._quota.change(bytes_per_second)

    def resume_deletions(self) -> None:
        """Resume deletions of partitions that a crash has interrupted, and drop tasks that are done."""
        for partition, deletion in list(self._deletions.items()):
            if deletion.is_done:
                del self._deletions[partition]
        for partition, tasks in list(self._tasks.items()):
            if tasks.partition.leader is None and tasks.partition.quiet.is_set():
                del self._tasks[partition]
        for partition in self._metadata.partitions():
            has_tasks = partition in self._tasks or partition in self._deletions
            if not has_tasks and self._is_deletion_interrupted(partition):
                self.delete(partition)

    def _is_deletion_interrupted(self, partition: TopicIdPartition) -> bool:
        state = self._metadata.partition_delete_state(partition) if self._metadata.is_ready(partition) else None
        if state is RemotePartitionDeleteState.DELETE_PARTITION_FINISHED:
            # The broker that wrote this state did not know of all segments.
            return self._metadata.remote_log_summary(partition).segments > 0
        return state is not None

    def _tasks_of(self, partition: TopicIdPartition) -> _Tasks:
        tasks = self._tasks.get(partition)
        if tasks is None:
            tiered = TieredPartition(partition)
            self._tasks[partition] = tasks = _Tasks(
                tiered,
                CopyTask(tiered, self._metadata, self._copier, self._quota, self._clock),
                ExpirationTask(
                    tiered,
                    self._metadata,
                    self._deleter,
                    broker_id=self._broker_id,
                    limits=self._limits,
                    late_seconds=self._late_seconds,
                    clock=self._clock,
                ),
            )
        return tasks

    # Status

    def status(self) -> ManagerStatus:
        """Numbers of all topics and of both pools."""
        now = self._clock.monotonic()
        partitions = [tasks.partition for tasks in self._tasks.values()]
        copies, expirations = self._copies.status(), self._expirations.status()
        since = [partition.copying.since for partition in partitions if partition.copying is not None]
        return ManagerStatus(
            topics=self._report.topics(self._counters.frozen(), partitions),
            partitions=sum(partition.leader is not None for partition in partitions),
            deletions=sum(not deletion.is_done for deletion in self._deletions.values()),
            copier=copies,
            expiration=expirations,
            oldest_copy_seconds=max((now - start for start in since), default=0.0),
            copier_idle_percent=_idle_percent(self._busy_copying, copies),
            expiration_idle_percent=_idle_percent(self._busy_expiring, expirations),
        )

    async def partition_status(self, partition: TopicIdPartition) -> PartitionTierStatus | None:
        """One partition in detail; None if this broker does not lead it. Takes a while if it has many segments."""
        tasks = self._tasks.get(partition)
        leader = None if tasks is None else tasks.partition.leader
        if tasks is None or leader is None:
            return None
        return await self._report.partition(
            tasks.partition,
            leader,
            copying=self._copies.state_of(tasks.copy),
            expiring=self._expirations.state_of(tasks.expiration),
            pool=self._copies.status(),
        )


def _idle_percent(busy: OneMinuteAverage, pool: PoolStatus) -> float:
    """Of all slots of a pool, over the last minute."""
    return max(100.0 * (1 - busy.per_second(pool.busy_seconds) / pool.size), 0.0)


class _InterruptedDeletions:
    """Looks regularly for deletions of partitions that no task carries on."""

    name = "resuming interrupted deletions"

    def __init__(self, manager: RemoteLogManager) -> None:
        self._manager = manager

    def look(self) -> Look:
        self._manager.resume_deletions()
        return Look.IDLE

    async def run(self, pool: JobPool) -> bool:
        return False
