"""How costs grow, by count: in proportion to what there is, or not at all. `python -m bench.growth` has the times."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from bench.controlplane_load import FIRST_TIMESTAMP, PARTITIONS, RECORDS_PER_ROW, loaded_plane
from bench.growing.counting_store import CountingStore
from bench.growing.segments import PARTITION, log_with, metadata_of, topic_with

from strandline.clock import SystemClock
from strandline.controlplane import FindBatches, RetentionRule, SqlControlPlane
from strandline.controlplane.conversion.values import ClaimWish, TieringRule
from strandline.remote.manager import LeaderPartition, SegmentTier, report
from strandline.remote.manager.jobs import PoolStatus
from strandline.remote.manager.partition import TieredPartition
from strandline.remote.manager.report import TierReport
from strandline.remote.manager.starting import find_out
from strandline.remote.turns import AT_ONCE
from tests.controlplane.making import batch, commit
from tests.coordinators.groups.test_classic_group import group_of, unheard
from tests.guards.counting import exponent

POOL = PoolStatus(size=1, jobs=0, running=0, ready=0, failing=0, busy_seconds=0.0, oldest_running_seconds=0.0)
# A turn of the loop looks at so many segments, and calls so many functions for each.
CALLS_PER_SEGMENT = 100


class CountingClock(SystemClock):
    """Counts the calls of Python functions in this thread, and those of the longest turn."""

    def __init__(self) -> None:
        self.calls = self.longest = self._turn_began = 0

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        self.calls += event == "call"

    def __enter__(self) -> CountingClock:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self._end_turn()

    def _end_turn(self) -> None:
        self.longest = max(self.longest, self.calls - self._turn_began)
        self._turn_began = self.calls

    async def sleep(self, seconds: float) -> None:
        """Nobody else has a turn: only the length of this one counts."""
        self._end_turn()


def led(root: Path, size: int) -> tuple[TieredPartition, LeaderPartition]:
    """A log whose records are in so many remote segments."""
    root.mkdir()
    leader = LeaderPartition(partition=PARTITION, log=log_with(root, size, SystemClock()), leader_epoch=0)
    partition = TieredPartition(PARTITION)
    partition.lead(leader)
    return partition, leader


async def lead(root: Path, size: int) -> CountingClock:
    partition, leader = led(root, size)
    async with metadata_of(topic_with(size), root, SystemClock()) as metadata:
        with CountingClock() as clock:
            await find_out(partition, leader, metadata, clock)
    assert partition.is_started
    leader.log.close()
    return clock


async def describe(root: Path, size: int) -> CountingClock:
    partition, leader = led(root, size)
    async with metadata_of(topic_with(size), root, SystemClock()) as metadata:
        with CountingClock() as clock:
            await TierReport(metadata, clock).partition(partition, leader, copying=None, expiring=None, pool=POOL)
    leader.log.close()
    return clock


async def test_a_million_segments_are_counted_and_the_newest_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To free a million rows, or to count them at the end, would hold up everybody else."""
    monkeypatch.setattr(report, "MOST_ROWS", 20)
    partition, leader = led(tmp_path / "log", 50)
    async with metadata_of(topic_with(50), tmp_path, SystemClock()) as metadata:
        made = TierReport(metadata, SystemClock())
        status = await made.partition(partition, leader, copying=None, expiring=None, pool=POOL)
    leader.log.close()
    assert [row.start_offset for row in status.segments if row.tier is not SegmentTier.LOCAL] == [*range(300, 500, 10)]
    assert (status.remote_segments, status.segments_left_out) == (50, 30)


@pytest.mark.parametrize("work", [lead, describe])
async def test_remote_segments_are_looked_at_once_each_and_in_short_turns(work: Any, tmp_path: Path) -> None:
    small, large = 300, 3_000
    few, many = await work(tmp_path / "few", small), await work(tmp_path / "many", large)
    grows = exponent((small, few.calls), (large, many.calls))
    assert grows <= 1.03, f"{work.__name__}: {few.calls} calls for {small} segments, {many.calls} for {large}"
    assert many.longest <= AT_ONCE * CALLS_PER_SEGMENT
    assert many.longest <= few.longest * 1.05, "the longest turn must not depend on the number of segments"


async def statements(root: Path, rows: int) -> dict[str, int]:
    """What is sent to the database for one call each, with so many rows in it."""
    found: dict[str, int] = {}
    async with loaded_plane(f"sqlite:///{root / f'{rows}.db'}", rows) as loaded:
        store = CountingStore(loaded.store)
        plane = SqlControlPlane(store)
        one, end = PARTITIONS[0], rows // len(PARTITIONS) * RECORDS_PER_ROW
        topic_id = one.topic_id
        wish = ClaimWish(claimant="guard", max_files=5, max_rows=1_000, claim_ms=60_000)
        calls: dict[str, Callable[[], Any]] = {
            "commit": lambda: commit(plane, "guard", batch(one)),
            "find": lambda: plane.reads.find_batches([FindBatches(one, end - 1, 1)], max_rows=10),
            "search by time": lambda: plane.reads.first_row_at_time(one, FIRST_TIMESTAMP + rows // 2),
            "retention": lambda: plane.trimming.enforce_retention([RetentionRule(one, 1 << 60, 1 << 60)], max_rows=100),
            "status of tiering": lambda: plane.wishes.tiering_progress([TieringRule(topic_id, 0)]),
            "claim": lambda: plane.claims.claim_wal_files_for_splitting(wish, [TieringRule(topic_id, 0)]),
        }
        for name, call in calls.items():
            before = store.statements
            await call()
            found[name] = store.statements - before
    return found


async def test_the_number_of_statements_does_not_depend_on_the_number_of_rows(tmp_path: Path) -> None:
    few, many = await statements(tmp_path, 2_000), await statements(tmp_path, 40_000)
    assert few == many
    assert few["commit"] <= 5
    assert few["find"] == 1


def test_members_that_join_again_are_not_counted_at_each_join() -> None:
    def rejoin(size: int) -> int:
        group = group_of(size)
        with CountingClock() as clock:
            for one in group.members.values():
                assert not group.have_all_joined
                one.join_reply = unheard
            assert group.have_all_joined
        return clock.calls

    assert exponent((100, rejoin(100)), (1_000, rejoin(1_000))) <= 1.03
