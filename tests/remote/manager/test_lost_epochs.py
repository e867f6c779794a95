"""The leader-epoch-checkpoint of a log is lost, and with it the way to its remote segments: they stay."""

from __future__ import annotations

import pytest

from strandline.log import LoadedOffsets
from strandline.testing.objects import ALWAYS
from tests.remote.manager.test_switching import DELETING, OFF
from tests.remote.manager.world import World


async def test_remote_segments_stay_when_the_leader_epochs_of_the_log_are_lost(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.append(4)
    world.epoch = 1
    world.append(3)
    async with world.running():
        await world.until_copied()
        world.configure(local_retention_bytes=1)
        world.log.retention.delete_old_segments(world.clock.now_ms())
        assert (world.log.log_start_offset, world.log.local_log_start_offset) == (0, 6)
        before = world.ranges()
    lose_epochs(world)
    world.epoch = 2
    world.append(4)
    async with world.running():
        await world.until_copied()
        await world.pass_time(5)
        assert world.ranges() == [*before, (6, 7), (8, 9)]
        assert world.log.log_start_offset == 0
        await world.check_nothing_leaked()
    assert "leader-epoch-checkpoint" in caplog.text


async def test_copying_goes_on_with_the_local_log_when_nothing_of_its_epochs_is_remote(world: World) -> None:
    world.append(4)
    async with world.running():
        await world.until_copied()
        world.log.roll()
        world.epoch = 1
        world.append(3)
        world.configure(local_retention_bytes=1)
        await world.until_copied()
        world.log.retention.delete_old_segments(world.clock.now_ms())
        before = world.ranges()
        assert world.log.local_log_start_offset == 6
    lose_epochs(world)
    world.log.epochs.replace([(5, 6)])  # as if the records of the local log had been written in a later epoch
    world.epoch = 5
    world.append(4)
    async with world.running():
        await world.until_copied()
        assert world.ranges() == [*before, (6, 7), (8, 9)]


async def test_segments_that_are_being_deleted_do_not_keep_the_log_start(world: World) -> None:
    """Tiering was switched off, a crash brought the old log start back, and the topic is tiered again."""
    world.append(7)
    async with world.running():
        await world.until_copied()
        world.configure(local_retention_bytes=1)
        world.log.retention.delete_old_segments(world.clock.now_ms())
        before = world.harness.offsets()
        assert (before.log_start, world.log.local_log_start_offset) == (0, 6)
        world.store.fail("delete", times=ALWAYS)
        world.configure(**OFF)
        await world.until(lambda: len(world.segments(DELETING)) == 3)
    world.configure(local_retention_bytes=1)
    lose_epochs(world, before)
    assert world.log.log_start_offset == 0
    async with world.running():
        await world.until(lambda: world.log.log_start_offset == 6)
        world.store.heal()
        await world.until(lambda: not world.segments(DELETING))
        await world.check_nothing_leaked()


def lose_epochs(world: World, offsets: LoadedOffsets | None = None) -> None:
    offsets = offsets or world.harness.offsets()
    world.log.close()
    (world.harness.directory / "leader-epoch-checkpoint").unlink()
    world.harness.open(offsets, is_clean=True)
    world.log.update_high_watermark(world.log.log_end_offset)
