"""A process that cleans up once: `python -m tests.diskless.upkeep.process DATABASE DIRECTORY`. Tests let it die."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from strandline.clock import SystemChance
from strandline.diskless.upkeep import FileCleaner, OrphanFinder, RetentionEnforcer, TopicRetention
from tests.diskless.world import A0, World, open_world


async def clean_up(world: World) -> None:
    """Every kind of background work, one round each, without any grace."""
    world.clock.move(1000)
    clock, chance = world.clock, SystemChance(1)
    await RetentionEnforcer(
        lambda: [TopicRetention(A0.topic_id, A0.topic, [0], ("delete",), 1, -1)],
        world.plane.trimming,
        world.plane.producers,
        clock=clock,
        chance=chance,
        interval_ms=1,
        max_rows=2,
        producer_expiration_ms=1,
    ).run_once()
    await OrphanFinder(
        world.plane.files, world.store, clock=clock, chance=chance, broker_id=1, interval_ms=1, grace_ms=1
    ).run_once()
    world.clock.move(1000)
    await FileCleaner(
        world.plane.files, world.store, clock=clock, chance=chance, interval_ms=1, grace_ms=1, max_files_per_round=100
    ).run_once()


async def main(database: str, directory: str) -> None:
    async with open_world(database, Path(directory)) as world:
        await clean_up(world)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
