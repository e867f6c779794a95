"""The broker may die at any step of a copy or a deletion: after the next start nothing is lost, and nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from strandline.crash import ENVIRONMENT_VARIABLE
from tests.remote.manager.manager_process import delete, expire, open_directory, prepare, switch_off, work
from tests.remote.manager.world import TIERED

ROOT = Path(__file__).parents[3]

COPY = (
    "remote.copy.before_started",
    "remote.copy.after_started",
    "remote.copy.after_started:2",
    "remote.storage.after_indexes",
    "remote.storage.after_log",
    "remote.copy.after_data",
    "remote.copy.after_data:3",
    "remote.copy.after_finished",
    "remote.metadata.after_append:2",
)
EXPIRE = (
    "remote.delete.after_log_start",
    "remote.delete.before_started",
    "remote.delete.after_started",
    "remote.storage.after_log_deleted",
    "remote.delete.after_data",
    "remote.delete.after_data:2",
    "remote.delete.after_finished",
)
DELETE = (
    "remote.partition_delete.before_marked",
    "remote.partition_delete.after_marked",
    "remote.partition_delete.after_started",
    "remote.delete.after_started:2",
    "remote.delete.after_data:3",
    "remote.partition_delete.after_segments",
    "remote.partition_delete.after_finished",
)


async def die(root: Path, what: str, place: str) -> None:
    """Let another process do some work, and die at a place."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.remote.manager.manager_process", str(root), what),
        cwd=ROOT,
        env={**os.environ, ENVIRONMENT_VARIABLE: place},
    )
    assert await process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("place", COPY)
async def test_a_crash_during_a_copy_loses_nothing_and_leaves_nothing(tmp_path: Path, place: str) -> None:
    batches = await prepare(tmp_path)
    await die(tmp_path, "copy", place)
    async with open_directory(tmp_path) as world:
        world.open_log()
        async with world.running():
            await world.until_copied()
            assert world.ranges() == [(0, 1), (2, 3), (4, 5)]
            await world.check_nothing_leaked()
            world.configure(local_retention_bytes=1)
            assert world.log.retention.delete_old_segments(world.clock.now_ms()) == 3
            assert world.log.local_log_start_offset == 6
            await world.check_nothing_lost(batches)


@pytest.mark.parametrize("place", EXPIRE)
async def test_a_crash_during_expiration_is_taken_up_and_keeps_what_is_young(tmp_path: Path, place: str) -> None:
    batches = await prepare(tmp_path)
    await work(tmp_path, "copy")
    await die(tmp_path, "expire", place)
    async with open_directory(tmp_path) as world:
        world.open_log()
        async with world.running():
            await expire(world)
            assert world.log.log_start_offset == 4
            await world.check_nothing_leaked()
            await world.check_nothing_lost(batches)


@pytest.mark.parametrize("place", [*EXPIRE, "remote.withdraw.after_marked"])
async def test_a_crash_while_tiering_is_switched_off_is_taken_up(tmp_path: Path, place: str) -> None:
    batches = await prepare(tmp_path)
    await work(tmp_path, "copy")
    await die(tmp_path, "switch_off", place)
    async with open_directory(tmp_path) as world:
        world.open_log()
        async with world.running():
            await switch_off(world)
            assert await world.keys() == set()
            await world.check_nothing_lost(batches)


@pytest.mark.parametrize("place", DELETE)
async def test_a_crash_during_the_deletion_of_a_topic_is_taken_up(tmp_path: Path, place: str) -> None:
    await prepare(tmp_path)
    await work(tmp_path, "copy")
    await die(tmp_path, "delete", place)
    async with open_directory(tmp_path) as world:
        world.open_log()  # only the world has it; the topic is gone
        async with world.running(lead=False):
            if place.endswith("before_marked"):  # not marked yet: the comparison of metadata and topics finds it
                await delete(world)
            await world.until(lambda: world.is_forgotten() and world.manager.status().deletions == 0)
            assert await world.keys() == set()
            assert await world.manager.partition_status(TIERED) is None
