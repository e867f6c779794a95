"""The share coordinator: finds the shard of a share partition, and turns its callbacks into answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol

from strandline.clock import Clock
from strandline.config.sharing import ShareSettings
from strandline.coordinators.runtime import (
    CoordinatorLog,
    CoordinatorPartitionWriter,
    CoordinatorRuntime,
    InternalTopic,
)
from strandline.coordinators.share_states.shard import ShareShard
from strandline.coordinators.share_states.turns import Changed
from strandline.coordinators.share_states.values import (
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    ShareStateUpdate,
)
from strandline.errors import StrandlineError
from strandline.metadata import Images, MetadataDelta, MetadataImage
from strandline.model import SHARE_GROUP_STATE_TOPIC, LeaderEpoch, Offset
from strandline.records import Codec

_HERE: Final = ""
"""This broker, among those that ask."""


def share_state_topic(settings: ShareSettings) -> InternalTopic:
    """`__share_group_state`, as the settings describe it."""
    return InternalTopic(
        name=SHARE_GROUP_STATE_TOPIC,
        partitions=settings.share_coordinator_state_topic_num_partitions,
        codec=Codec(settings.share_coordinator_state_topic_compression_codec),
        load_buffer_bytes=settings.share_coordinator_load_buffer_size,
        base_sequence=0,
    )


class PrunedLog(CoordinatorLog, Protocol):
    """A coordinator's log whose oldest records can be deleted."""

    def delete_before(self, partition: int, offset: Offset, *, leader_epoch: LeaderEpoch) -> None:
        """Delete the records before an offset that is committed. Raises what `append` raises."""


class ShareCoordinator:
    """`ShareGroupStates` for the share partitions whose coordinator this broker is; the others get NotCoordinator.

    `runtime` owns the partitions and must be notified of changes of their leaders.
    """

    def __init__(self, log: PrunedLog, images: Images, *, clock: Clock, settings: ShareSettings) -> None:
        self._log, self._images, self._clock, self._settings = log, images, clock, settings
        self.runtime: CoordinatorRuntime[ShareShard] = CoordinatorRuntime(
            "share partition",
            log,
            self._make_shard,
            clock=clock,
            write_timeout_ms=settings.share_coordinator_write_timeout_ms,
        )
        cold_ms = settings.share_coordinator_cold_partition_snapshot_interval_ms
        self.runtime.sweep_every(cold_ms, lambda shard: shard.snapshot_cold(cold_ms))
        self.runtime.sweep_every(cold_ms, ShareShard.drop_left_over)
        self.runtime.sweep_every(settings.share_coordinator_state_topic_prune_interval_ms, ShareShard.prune)

    def _make_shard(self, writer: CoordinatorPartitionWriter) -> ShareShard:
        return ShareShard(
            writer,
            self._clock,
            has_partition=self._has_partition,
            updates_per_snapshot=self._settings.share_coordinator_snapshot_update_records_per_snapshot,
            delete_before=lambda offset: self._log.delete_before(
                writer.partition, offset, leader_epoch=writer.leader_epoch
            ),
        )

    def _has_partition(self, key: SharePartitionKey) -> bool:
        topic = self._images.image.topics_by_id.get(key.topic_id)
        return topic is not None and topic.partition(key.partition) is not None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ShareCoordinator]:
        """Serve inside the block. Leaving it unloads every partition: waiting requests get NotCoordinator."""
        async with self.runtime.running():
            yield self

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Topics were deleted: their share partitions are forgotten."""
        deleted = tuple(delta.deleted_topics)
        if deleted:
            self.runtime.sweep_once(lambda shard: shard.drop_deleted_topics(deleted))

    def partition_for(self, key: SharePartitionKey) -> int:
        """The partition of `__share_group_state` whose leader coordinates the share partition."""
        return self.runtime.partition_for(key.coordinator_key)

    # `ShareGroupStates`

    async def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: Offset) -> None:
        shard = self._shard(key)
        await self._changed(
            lambda answer: shard.initialize(key, state_epoch=state_epoch, start_offset=start_offset, answer=answer)
        )

    async def read(self, key: SharePartitionKey, *, leader_epoch: LeaderEpoch, broker: str = _HERE) -> ShareState:
        """`broker` is the one that reads: from now on, no other broker may write in this leader epoch."""
        shard = self._shard(key)

        def start(answer: Callable[[ShareState | StrandlineError], None]) -> None:
            shard.read(key, leader_epoch=leader_epoch, reader=broker, answer=answer)

        found = await self.runtime.wait_written(start)
        if isinstance(found, StrandlineError):
            raise found
        return found

    async def write(self, key: SharePartitionKey, update: ShareStateUpdate, *, broker: str = _HERE) -> None:
        shard = self._shard(key)
        await self._changed(lambda answer: shard.write(key, update, broker, answer))

    async def delete(self, key: SharePartitionKey) -> None:
        shard = self._shard(key)
        await self._changed(lambda answer: shard.delete(key, answer))

    async def summary(self, key: SharePartitionKey) -> ShareStateSummary:
        return self._shard(key).summary(key)

    def _shard(self, key: SharePartitionKey) -> ShareShard:
        return self.runtime.shard_for(key.coordinator_key)

    async def _changed(self, start: Callable[[Changed], None]) -> None:
        error = await self.runtime.wait_written(start)
        if error is not None:
            raise error
