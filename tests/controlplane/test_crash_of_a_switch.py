"""A leader that dies while it sets a boundary: all of it is there, or nothing, and it can be done again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from strandline.controlplane import BoundarySet, SqlControlPlane
from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.sql import open_store
from tests.controlplane.switching import P, Q, boundary, log_of, producer, request, switch
from tests.postgres import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]

_LEADER = """
import asyncio, sys
from strandline.controlplane import SqlControlPlane
from strandline.sql import open_store
from tests.controlplane.switching import P, boundary, producer

async def lead():
    async with open_store(sys.argv[1], deadline=600) as store:
        new = boundary(P, 10, producer(7, (0, 1, 9)), position=int(sys.argv[2]))
        await SqlControlPlane(store).migrations.initialize_diskless_migration([new])

asyncio.run(lead())
"""


@pytest.mark.parametrize("place", ["before_commit", "after_commit"])
async def test_a_boundary_and_its_producers_are_set_at_once_or_not_at_all(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'metadata.db'}"
    async with open_store(url) as store:
        position = await request(SqlControlPlane(store), partitions=1)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, f"controlplane.migration.{place}")
    leader = await asyncio.create_subprocess_exec(sys.executable, "-c", _LEADER, url, str(position))
    assert await leader.wait() == -signal.SIGKILL
    async with open_store(url) as store:
        plane = SqlControlPlane(store)
        is_set = place == "after_commit"
        assert (P in await plane.reads.logs([P])) == is_set
        assert len(await plane.producers.producers(P)) == is_set
        again = boundary(P, 10, producer(7, (0, 1, 9)), position=position, epoch=4)
        assert await plane.migrations.initialize_diskless_migration([again]) == [
            BoundarySet(None, 10, 3 if is_set else 4)
        ]
        assert (await log_of(plane, P)).high_watermark == 10
        assert [switch.sealed_at_ms is None for switch in await plane.migrations.topic_migrations()] == [False]


async def test_a_leader_that_is_suspended_does_not_hold_up_the_others_of_the_topic(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has locked the row of the switch, and no deadline of its own ends that: a suspended process sees none."""
    async with open_store(postgres_url, deadline=600) as store:
        plane = SqlControlPlane(store)
        position = await request(plane, partitions=2)
        monkeypatch.setenv(ENVIRONMENT_VARIABLE, "stop@controlplane.migration.before_commit")
        leader = await asyncio.create_subprocess_exec(sys.executable, "-c", _LEADER, postgres_url, str(position))
        try:
            stopped = partial(os.waitid, os.P_PID, leader.pid, os.WSTOPPED | os.WNOWAIT)
            assert await asyncio.to_thread(stopped) is not None
            async with asyncio.timeout(30):
                assert await switch(plane, boundary(Q, 10, position=position)) == [None]
            assert P not in await plane.reads.logs([P])
        finally:
            leader.kill()
            await leader.wait()
