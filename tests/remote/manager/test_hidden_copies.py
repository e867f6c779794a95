"""A finished copy that no reader is sent to: another one took its place, and went. It is no copy to rely upon."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from strandline.remote.values import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tests.log.harness import batch
from tests.remote.manager.world import BROKER, TIERED, World

_S = RemoteLogSegmentState


async def test_a_segment_whose_copy_is_hidden_is_copied_again_before_it_leaves_the_disk(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        first = world.segments()[0]
        await hide(world, first)
        assert world.ranges() == [(0, 1), (2, 3), (4, 5)]
        assert world.metadata.remote_log_segment_metadata(TIERED, 0, 0) is None
    world.harness.reopen()
    async with world.running():
        await world.until_copied()
        world.configure(local_retention_bytes=1)
        world.log.retention.delete_old_segments(world.clock.now_ms())
        assert (world.log.log_start_offset, world.log.local_log_start_offset) == (0, 6)
        await world.check_nothing_lost([bytes(batch(base_offset=offset, leader_epoch=0)) for offset in range(7)])
        await world.until(lambda: world.ranges() == [(0, 1), (2, 3), (4, 5)])
        await world.check_nothing_leaked()


async def hide(world: World, segment: RemoteLogSegmentMetadata) -> None:
    """Another leader copies the same records, and its copy is deleted."""
    other = replace(segment, segment_id=RemoteLogSegmentId(TIERED, UUID(int=7)), state=_S.COPY_SEGMENT_STARTED)
    await world.metadata.add_remote_log_segment_metadata(other)
    for state in (_S.COPY_SEGMENT_FINISHED, _S.DELETE_SEGMENT_STARTED, _S.DELETE_SEGMENT_FINISHED):
        await world.metadata.update_remote_log_segment_metadata(
            RemoteLogSegmentMetadataUpdate(
                segment_id=other.segment_id, event_timestamp_ms=world.clock.now_ms(), state=state, broker_id=BROKER
            )
        )
