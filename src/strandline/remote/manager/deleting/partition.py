"""The deletion of a partition: all of its remote segments are deleted, in steps that survive restarts."""

from __future__ import annotations

from strandline.clock import Clock
from strandline.crash import crash_point
from strandline.remote.manager.deleting.plan import DeletionReason
from strandline.remote.manager.deleting.segment import DeletionTurn, SegmentDeleter, in_batches
from strandline.remote.manager.jobs import JobPool, Look
from strandline.remote.manager.partition import TieredPartition
from strandline.remote.manager.states import SegmentStates
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.values import RemotePartitionDeleteState

_S = RemotePartitionDeleteState


class PartitionDeletion:
    """Takes a partition from DELETE_PARTITION_MARKED to DELETE_PARTITION_FINISHED.

    A partition without metadata needs none of it. A partition with metadata but without segments does: otherwise its
    metadata would be kept forever.
    """

    def __init__(
        self,
        partition: TieredPartition,
        metadata: RemoteLogMetadataManager,
        states: SegmentStates,
        deleter: SegmentDeleter,
        clock: Clock,
    ) -> None:
        self._partition, self._metadata, self._states, self._deleter = partition, metadata, states, deleter
        self._clock = clock
        self.is_done = False

    @property
    def name(self) -> str:
        return f"deletion of all remote segments of {self._partition.id}"

    def look(self) -> Look:
        if self.is_done:
            return Look.DONE
        return Look.WORK if self._metadata.is_ready(self._partition.id) else Look.NOT_READY

    async def run(self, pool: JobPool) -> bool:
        # An in-flight copy would leave objects without metadata behind.
        await self._partition.quiet.wait()
        partition = self._partition.id
        state = self._metadata.partition_delete_state(partition)
        if state is not None or partition in self._metadata.partitions():
            await self._delete(state)
        self._metadata.on_stop_partitions((partition,))
        self.is_done = True
        return True  # the next look removes the job

    async def _delete(self, state: RemotePartitionDeleteState | None) -> None:
        partition = self._partition.id
        if state is None:
            crash_point("remote.partition_delete.before_marked")
            await self._states.delete_partition(partition, state := _S.DELETE_PARTITION_MARKED)
            crash_point("remote.partition_delete.after_marked")
        if state is _S.DELETE_PARTITION_MARKED:
            await self._states.delete_partition(partition, state := _S.DELETE_PARTITION_STARTED)
            crash_point("remote.partition_delete.after_started")
        while self._metadata.remote_log_summary(partition).segments:
            known = self._metadata.iter_remote_log_segments(partition)
            async for deletions in in_batches(self._clock, known, DeletionReason.TOPIC_DELETED):
                await DeletionTurn(self._deleter).run(deletions, lambda: True)
        if state is _S.DELETE_PARTITION_STARTED:
            crash_point("remote.partition_delete.after_segments")
            await self._states.delete_partition(partition, _S.DELETE_PARTITION_FINISHED)
            crash_point("remote.partition_delete.after_finished")
