"""Switches tiering off with `remote.log.delete.on.disable`: the log keeps its local part, remote segments are deleted.

Once the log has dropped its remote part, retention never deletes these segments: a log that is not tiered expires
nothing remote. So every one of them must be deleted here, or, if the topic is tiered again before its deletion has
begun, come back under retention, whatever happens to the settings. To ensure this over restarts, all are marked
(DELETE_SEGMENT_STARTED) before the first one is deleted, and marked segments are deleted without looking at the setting
again. Without the setting, segments that are not marked are left alone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from strandline.clock import Clock
from strandline.crash import crash_point
from strandline.model import NO_OFFSET
from strandline.remote.manager.deleting.plan import Deletion, DeletionReason
from strandline.remote.manager.deleting.segment import DeletionTurn, SegmentDeleter, in_batches
from strandline.remote.manager.partition import LeaderPartition, TieredPartition
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.values import RemoteLogSegmentState


class Withdrawal:
    """Deletes all remote segments of one partition, while its topic is not tiered."""

    def __init__(
        self, partition: TieredPartition, metadata: RemoteLogMetadataManager, deleter: SegmentDeleter, clock: Clock
    ) -> None:
        self._partition, self._metadata, self._deleter, self._clock = partition, metadata, deleter, clock

    async def run(self, leader: LeaderPartition) -> bool:
        """Delete; False if the topic is tiered again or the leader moved. Raises RemoteStorageError, ValueError."""
        partition = self._partition
        while not partition.quiet.is_set():
            await partition.quiet.wait()
            if not self._is_switched_off(leader):
                return False  # the remote segments stay
        is_wanted = leader.log.config.remote_log_delete_on_disable or partition.is_withdrawn
        partition.is_withdrawing = True
        try:
            return await (self._delete_everything(leader) if is_wanted else self._finish_deletions(leader))
        finally:
            partition.is_withdrawing = False

    def _is_switched_off(self, leader: LeaderPartition) -> bool:
        return self._partition.is_led_as(leader) and not leader.log.config.remote_storage_enable

    async def _delete_everything(self, leader: LeaderPartition) -> bool:
        partition = self._partition
        leader.log.remote.forget()
        partition.copied, partition.is_started = NO_OFFSET, False
        partition.is_withdrawn = True
        await leader.store_log_start()
        crash_point("remote.delete.after_log_start")
        partition.changes += 1
        turn = DeletionTurn(self._deleter)
        async with aclosing(self._deletions(DeletionReason.SWITCHED_OFF)) as batches:
            async for deletions in batches:
                if not await turn.begin(deletions, lambda: self._is_switched_off(leader)):
                    return False
        crash_point("remote.withdraw.after_marked")
        async with aclosing(self._deletions(DeletionReason.SWITCHED_OFF)) as batches:
            async for deletions in batches:
                if not await turn.run(deletions, lambda: self._is_switched_off(leader)):
                    return False
        partition.changes += 1
        partition.is_withdrawn = False
        return True

    async def _finish_deletions(self, leader: LeaderPartition) -> bool:
        """Complete the deletions of segments that are marked already."""
        started = RemoteLogSegmentState.DELETE_SEGMENT_STARTED
        async with aclosing(self._deletions(DeletionReason.INTERRUPTED)) as batches:
            async for deletions in batches:
                begun = [each for each in deletions if each.segment.state is started]
                if not await DeletionTurn(self._deleter).run(begun, lambda: self._is_switched_off(leader)):
                    return False
        return True

    def _deletions(self, reason: DeletionReason) -> AsyncGenerator[Sequence[Deletion]]:
        return in_batches(self._clock, self._metadata.iter_remote_log_segments(self._partition.id), reason)
