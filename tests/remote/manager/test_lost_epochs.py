"""The leader-epoch-checkpoint of a log is lost, and with it the way to its remote segments: they stay."""

from __future__ import annotations

import pytest

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
        world.log.delete_old_segments(world.clock.now_ms())
        assert (world.log.log_start_offset, world.log.local_log_start_offset) == (0, 6)
        before = world.ranges()
    offsets = world.harness.offsets()
    world.log.close()
    (world.harness.directory / "leader-epoch-checkpoint").unlink()
    world.harness.open(offsets, is_clean=True)
    world.log.update_high_watermark(world.log.log_end_offset)
    world.epoch = 2
    world.append(4)
    async with world.running():
        await world.until_copied()
        await world.pass_time(5)
        assert world.ranges() == [*before, (6, 7), (8, 9)]
        assert world.log.log_start_offset == 0
        await world.check_nothing_leaked()
    assert "leader-epoch-checkpoint" in caplog.text
