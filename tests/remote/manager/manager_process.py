"""A broker's work on one tiered log: `python -m tests.remote.manager.manager_process DIRECTORY WORK`. Tests let it die.

Everything is in the directory: the log, the objects, the metadata topic.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from strandline.objects import open_objects
from tests.log.harness import NOW
from tests.remote.manager.world import TIERED, World, open_world

OLD = NOW - 100_000


@asynccontextmanager
async def open_directory(root: Path) -> AsyncIterator[World]:
    """The world in a directory, as a process finds it."""
    async with (
        open_objects(f"file://{root / 'remote'}") as store,
        open_world(root, store, topic_path=root / "topic") as world,
    ):
        world.step = 0.02
        yield world


async def prepare(root: Path) -> list[bytes]:
    """A log with three closed segments, two of them old. Returns its batches."""
    async with open_directory(root) as world:
        world.create_log()
        world.append(4, timestamp=OLD)
        world.append(3, timestamp=NOW)
        batches = [world.log.read(offset, 1).records for offset in range(7)]
        world.log.close()
        return [batch.read() for batch in batches if batch is not None]


async def copy(world: World) -> None:
    await world.until_copied()


async def expire(world: World) -> None:
    world.configure(retention_ms=60_000)
    await world.until(lambda: world.ranges() == [(4, 5)] and len(world.segments()) == 1)
    await world.until_copied()


async def switch_off(world: World) -> None:
    world.configure(remote_storage_enable=False, remote_log_delete_on_disable=True)
    await world.until(lambda: world.metadata.is_ready(TIERED))
    await world.until(lambda: not world.segments())


async def delete(world: World) -> None:
    world.manager.delete(TIERED)
    await world.until(lambda: world.is_forgotten() and world.manager.status().deletions == 0)


WORK = {"copy": copy, "expire": expire, "switch_off": switch_off, "delete": delete}


async def work(root: Path, name: str) -> None:
    """Open everything and do one thing to its end."""
    async with open_directory(root) as world:
        world.open_log()
        async with world.running():
            await WORK[name](world)


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), sys.argv[2]))
