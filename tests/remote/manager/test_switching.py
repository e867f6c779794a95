"""Tiering that is switched off and on again while segments are being copied, or wait to be copied."""

from __future__ import annotations

from strandline.remote.manager import ManagerLimits
from strandline.remote.values import RemoteLogSegmentState
from tests.log.harness import batch
from tests.remote.manager.world import SIZE, World

OFF = {"remote_storage_enable": False, "remote_log_delete_on_disable": True}


async def test_what_was_chosen_before_tiering_was_switched_off_leaves_no_gap_when_it_is_on_again(world: World) -> None:
    world.limits = ManagerLimits(task_interval_ms=1000, copy_max_bytes_per_second=SIZE // 5)
    world.append(13)
    async with world.running():
        await world.until(lambda: world.ranges() and _waits_for_quota(world))
        copied = world.ranges()
        world.configure(**OFF)
        await world.until(lambda: not world.segments(), step=0.001)
        assert world.manager.status().copier.running  # it waits with what it chose when the others were still there
        world.configure(local_retention_bytes=1)
        await world.until_copied()
        assert world.ranges()[0] == copied[0] == (0, 1)
        world.log.delete_old_segments(world.clock.now_ms())
        await _check_everything_is_there(world)


async def test_tiering_that_is_on_again_before_a_copy_has_ended_keeps_what_is_remote(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        world.configure(local_retention_bytes=1)
        world.log.delete_old_segments(world.clock.now_ms())
        assert (world.log.log_start_offset, world.log.local_log_start_offset) == (0, 6)
        gate = world.store.block("put_file", times=1, skip=3)
        world.append(4)
        await world.until(lambda: world.segments(RemoteLogSegmentState.COPY_SEGMENT_STARTED))
        world.configure(**OFF)
        await world.pass_time(2)
        world.configure(local_retention_bytes=1)
        gate.release()
        await world.until_copied()
        await world.pass_time(2)
        assert world.log.log_start_offset == 0
        await _check_everything_is_there(world)


async def _check_everything_is_there(world: World) -> None:
    """Every offset has the batch that `world` appends, on disk or in remote storage."""
    await world.check_nothing_lost(
        [bytes(batch(base_offset=offset, leader_epoch=0)) for offset in range(world.log.log_end_offset)]
    )


def _waits_for_quota(world: World) -> bool:
    return "copy.max.bytes.per.second" in world.status().local_because
