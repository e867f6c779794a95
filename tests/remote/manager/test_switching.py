"""Tiering that is switched off and on again while segments are being copied, or wait to be copied."""

from __future__ import annotations

import pytest

from strandline.remote.manager import ManagerLimits
from strandline.remote.values import RemoteLogSegmentState
from strandline.testing.objects import ALWAYS
from tests.log.harness import batch
from tests.remote.manager.world import SIZE, TIERED, World, settings

OFF = {"remote_storage_enable": False, "remote_log_delete_on_disable": True}
UNSET = {"remote_storage_enable": False, "remote_log_delete_on_disable": False}
DELETING = RemoteLogSegmentState.DELETE_SEGMENT_STARTED


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
        world.log.retention.delete_old_segments(world.clock.now_ms())
        await _check_everything_is_there(world)


async def test_tiering_that_is_on_again_before_a_copy_has_ended_keeps_what_is_remote(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        world.configure(local_retention_bytes=1)
        world.log.retention.delete_old_segments(world.clock.now_ms())
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


async def test_a_withdrawal_comes_to_its_end_although_it_may_not_be_begun_any_more(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        world.store.fail("delete", times=ALWAYS)
        world.configure(**OFF)
        await world.pass_time(3)
        assert world.manager.is_withdrawing(TIERED)
        world.configure(**UNSET)
        world.store.heal()
        await world.until(lambda: not world.segments())
        assert await world.keys() == set()
        await world.until(lambda: not world.manager.is_withdrawing(TIERED))


async def test_a_withdrawal_that_was_asked_for_once_is_taken_up_after_a_restart(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        world.store.fail("delete", times=ALWAYS)
        world.configure(**OFF)
        await world.until(lambda: len(world.segments(DELETING)) == 3)
        world.configure(**UNSET)
    async with world.running():
        await world.until_ready()
        assert world.manager.has_leftovers(TIERED)
        world.store.heal()
        await world.until(lambda: not world.segments())
        assert await world.keys() == set()
        assert not world.manager.has_leftovers(TIERED)


async def test_a_withdrawal_is_written_down_before_the_first_segment_goes(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        gate = world.store.block("delete", times=1)
        world.configure(**OFF)
        await gate.wait_reached()
        assert world.ranges(DELETING) == [(0, 1), (2, 3), (4, 5)]
        gate.release()
        await world.until(lambda: not world.segments())


async def test_remote_segments_stay_without_remote_log_delete_on_disable(world: World) -> None:
    """A topic that is not tiered any more, with remote segments of its last leader."""
    world.append(7)
    async with world.running():
        await world.until_copied()
        copied, keys = world.ranges(), await world.keys()
    world.harness.config = settings(**UNSET)
    world.log.update_config(world.harness.config)
    async with world.running():
        await world.pass_time(5)
        assert (world.ranges(), await world.keys()) == (copied, keys)
        assert not world.manager.has_leftovers(TIERED)
        assert not world.manager.is_withdrawing(TIERED)


@pytest.mark.parametrize("seconds", [0.25, 0.5, 1.0, 3.0])
async def test_tiering_that_is_on_again_in_the_middle_of_a_withdrawal_leaves_nothing_behind(
    world: World, seconds: float
) -> None:
    world.append(13)
    async with world.running():
        await world.until_copied()
        world.configure(local_retention_bytes=3 * SIZE)
        world.log.retention.delete_old_segments(world.clock.now_ms())
        world.store.fail("delete", times=4)
        world.configure(**OFF)
        await world.pass_time(seconds)
        start = world.log.log_start_offset
        world.configure(**UNSET)
        world.configure()
        await world.pass_time(3)
        await world.until_copied()
        assert world.log.log_start_offset == start
        assert not world.manager.is_withdrawing(TIERED)
        await world.check_nothing_leaked()
        await _check_everything_is_there(world)


async def _check_everything_is_there(world: World) -> None:
    """Every offset has the batch that `world` appends, on disk or in remote storage."""
    await world.check_nothing_lost(
        [bytes(batch(base_offset=offset, leader_epoch=0)) for offset in range(world.log.log_end_offset)]
    )


def _waits_for_quota(world: World) -> bool:
    return "copy.max.bytes.per.second" in world.status().local_because
