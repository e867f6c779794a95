"""The whole life of remote segments on a real S3 server: copied, read, expired, deleted with their topic."""

from __future__ import annotations

from pathlib import Path

from strandline.objects import open_objects
from tests.log.harness import NOW
from tests.remote.manager.world import TIERED, open_world
from tests.s3 import S3
from tests.s3 import s3 as s3
from tests.s3 import s3_url as s3_url


async def test_segments_live_and_die_on_s3(tmp_path: Path, s3: S3, s3_url: str) -> None:
    async with open_objects(s3_url, s3.object_options) as store, open_world(tmp_path, store) as world:
        world.step = 0.02
        world.create_log()
        world.append(4, timestamp=NOW - 100_000)
        world.append(5, timestamp=NOW)
        stored = [world.log.read(offset, 1).records for offset in range(9)]
        batches = [batch.read() for batch in stored if batch is not None]
        async with world.running():
            await world.until_copied()
            assert world.ranges() == [(0, 1), (2, 3), (4, 5), (6, 7)]
            await world.check_nothing_leaked()
            world.configure(local_retention_bytes=1)
            world.log.retention.delete_old_segments(world.clock.now_ms())
            assert world.log.local_log_start_offset == 8
            await world.check_nothing_lost(batches)
        world.harness.crash()
        async with world.running():
            await world.until_copied()
            world.configure(retention_ms=60_000)
            await world.until(lambda: world.ranges() == [(4, 5), (6, 7)])
            await world.until_copied()
            await world.check_nothing_leaked()
            await world.check_nothing_lost(batches)
            world.manager.delete(TIERED)
            await world.until(world.is_forgotten)
            assert await world.keys() == set()


async def test_a_copy_that_s3_refuses_is_tried_again_and_leaves_nothing(tmp_path: Path, s3: S3, s3_url: str) -> None:
    async with open_objects(s3_url, s3.object_options) as store, open_world(tmp_path, store) as world:
        world.step = 0.02
        world.create_log()
        world.append(3)
        world.store.fail("put_file", skip=3)
        world.store.lose_answer("put", skip=1)
        async with world.running():
            await world.until(lambda: world.ranges() == [(0, 1)])
            await world.until_copied()
            await world.check_nothing_leaked()
