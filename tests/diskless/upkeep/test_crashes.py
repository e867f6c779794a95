"""A cleaner may die at any step: the next one finishes the work, and nothing else is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.diskless.fsck import FsckOptions
from tests.diskless.batches import append
from tests.diskless.upkeep.process import clean_up
from tests.diskless.world import A0, B0, open_world

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "place",
    [
        "diskless.retention.after_trim",
        "diskless.orphans.before_take",
        "diskless.orphans.after_take",
        "diskless.cleaner.before_delete",
        "diskless.cleaner.after_delete",
        "diskless.cleaner.after_forget",
    ],
)
async def test_a_crash_at_any_step_leaves_work_for_the_next_one_and_no_loss(tmp_path: Path, place: str) -> None:
    url, objects = f"sqlite:///{tmp_path / 'metadata.db'}", tmp_path / "objects"
    async with open_world(url, objects) as world:
        await world.create_logs(A0, B0)
        for _ in range(5):
            await world.write(A0)
        shared, kept = await world.write(A0, B0), await world.write(B0)
        for _ in range(3):
            await world.upload([append(A0)])

    died = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.diskless.upkeep.process", url, str(objects)),
        cwd=ROOT,
        env={**os.environ, ENVIRONMENT_VARIABLE: place},
    )
    assert await died.wait() == -signal.SIGKILL

    async with open_world(url, objects) as world:
        await clean_up(world)
        assert await world.keys() == {shared, kept}
        assert await world.marked() == set()
        report = await world.compare(FsckOptions(grace_ms=0, overdue_ms=0, deep=True))
        assert report.findings == ()
        assert report.files == 2
