"""Where the log of a new leader begins, and up to where it counts as copied, whatever happens while it finds out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model import Offset
from strandline.remote.manager import LeaderPartition, starting
from strandline.remote.manager.partition import LogOffsets, TieredPartition
from strandline.remote.manager.starting import Runs, copied_without_gap, find_out, log_start_of_new_leader
from strandline.testing.clock import VirtualClock
from tests.remote.manager.deleting.test_plan import segment
from tests.remote.manager.offsets import offsets
from tests.remote.manager.world import TIERED, World, settings

REMOTE = [segment(1, 0, 9), segment(2, 10, 19), segment(3, 20, 29)]


def test_without_remote_segments_a_log_begins_with_its_local_part() -> None:
    assert log_start_of_new_leader(offsets(log_start=5, local=20), Runs()) == 20


def test_a_log_that_begins_with_its_local_part_begins_with_what_is_remote_before_it() -> None:
    assert log_start_of_new_leader(offsets(log_start=30, local=30), Runs(REMOTE)) == 0
    assert log_start_of_new_leader(offsets(log_start=30, local=30), Runs(REMOTE[1:])) == 10


def test_records_that_were_deleted_stay_so() -> None:
    assert log_start_of_new_leader(offsets(log_start=15, local=30), Runs(REMOTE)) == 15
    assert log_start_of_new_leader(offsets(log_start=35, local=35, first_base=30), Runs(REMOTE)) == 35


def test_a_log_does_not_begin_before_the_first_remote_segment() -> None:
    assert log_start_of_new_leader(offsets(log_start=0, local=30), Runs(REMOTE[1:])) == 10


def test_a_log_does_not_begin_before_a_gap() -> None:
    assert log_start_of_new_leader(offsets(log_start=30, local=30), Runs([REMOTE[0], REMOTE[2]])) == 20


def test_what_is_local_counts_as_copied_up_to_the_first_gap() -> None:
    assert copied_without_gap(29, 5, Runs(REMOTE)) == 29
    assert copied_without_gap(29, 5, Runs([REMOTE[0], REMOTE[2]])) == 9
    assert copied_without_gap(29, 5, Runs(REMOTE[1:])) == 4
    assert copied_without_gap(29, 50, Runs(REMOTE)) == 29
    assert copied_without_gap(-1, 0, Runs()) == -1


Spans = list[tuple[Offset, Offset]]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=12),
    st.integers(0, 70),
    st.integers(0, 70),
    st.integers(-1, 80),
)
def test_runs_say_the_same_as_the_segments_one_by_one(
    drawn: Spans, log_start: Offset, local: Offset, highest: Offset
) -> None:
    spans = sorted((start, start + length) for start, length in drawn)
    runs = Runs([segment(number + 1, start, end) for number, (start, end) in enumerate(spans)])
    where = offsets(log_start=min(log_start, local), local=local)
    assert log_start_of_new_leader(where, runs) == _log_start_one_by_one(where, spans)
    assert copied_without_gap(highest, local, runs) == _copied_one_by_one(highest, local, spans)


def _log_start_one_by_one(where: LogOffsets, spans: Spans) -> Offset:
    if not spans:
        return where.local_log_start
    if where.log_start < where.local_log_start or where.log_start > where.first_base:
        return min(max(where.log_start, min(start for start, _ in spans)), where.local_log_start)
    found = where.local_log_start
    for start, end in sorted(spans, key=lambda span: span[1], reverse=True):
        if end + 1 < found:
            break
        found = min(found, start)
    return found


def _copied_one_by_one(highest: Offset, local: Offset, spans: Spans) -> Offset:
    reached = local
    for start, end in spans:
        if end < local:
            continue
        if start > reached:
            break
        reached = max(reached, end + 1)
    return min(highest, reached - 1)


class Meanwhile(VirtualClock):
    """Does something in one of the turns that are left to others."""

    def __init__(self, turn: int, act: Callable[[], object]) -> None:
        super().__init__()
        self._turn, self._act = turn, act
        self.turns = 0

    async def sleep(self, seconds: float) -> None:
        self.turns += 1
        if self.turns == self._turn:
            self._act()


@asynccontextmanager
async def _copied(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[TieredPartition, LeaderPartition]]:
    """A log with six remote segments of two offsets, whose leader has not found out anything yet."""
    monkeypatch.setattr(starting, "AT_ONCE", 1)
    world.append(13)
    async with world.running():
        await world.until_copied()
        leader = LeaderPartition(partition=TIERED, log=world.log, leader_epoch=0)
        partition = TieredPartition(TIERED)
        partition.lead(leader)
        yield partition, leader


async def test_a_leader_leaves_turns_to_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _copied(world, monkeypatch) as (partition, leader):
        clock = Meanwhile(0, lambda: None)
        await find_out(partition, leader, world.metadata, clock)
        assert clock.turns == 6
        assert (partition.is_started, partition.copied) == (True, 11)


@pytest.mark.parametrize("turn", [1, 3, 6])
async def test_records_that_are_deleted_meanwhile_stay_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    async with _copied(world, monkeypatch) as (partition, leader):
        clock = Meanwhile(turn, lambda: world.log.start.increment(7))
        await find_out(partition, leader, world.metadata, clock)
        assert partition.is_started
        assert clock.turns > 6, "it did not look again"
        assert world.log.log_start_offset == 7


async def test_a_log_that_never_rests_is_looked_at_without_a_pause(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Restless(Meanwhile):
        async def sleep(self, seconds: float) -> None:
            partition.changes += 1
            await super().sleep(seconds)

    async with _copied(world, monkeypatch) as (partition, leader):
        clock = Restless(0, lambda: None)
        await find_out(partition, leader, world.metadata, clock)
        assert (partition.is_started, partition.copied) == (True, 11)
        assert clock.turns == 5 * 6


@pytest.mark.parametrize("turn", [1, 6])
async def test_who_does_not_lead_any_more_changes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    async with _copied(world, monkeypatch) as (partition, leader):

        def lose() -> None:
            partition.leader = None

        await find_out(partition, leader, world.metadata, Meanwhile(turn, lose))
        assert (partition.is_started, partition.copied) == (False, -1)


@pytest.mark.parametrize("turn", [1, 6])
async def test_a_topic_that_is_not_tiered_any_more_is_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    async with _copied(world, monkeypatch) as (partition, leader):

        def switch_off() -> None:
            world.log.update_config(settings(remote_storage_enable=False))

        await find_out(partition, leader, world.metadata, Meanwhile(turn, switch_off))
        assert not partition.is_started


async def test_of_two_tasks_one_looks_and_both_know(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _copied(world, monkeypatch) as (partition, leader):
        clocks = [VirtualClock(), Meanwhile(0, lambda: None)]
        await asyncio.gather(*(find_out(partition, leader, world.metadata, clock) for clock in clocks))
        assert (partition.is_started, clocks[1].turns) == (True, 0)  # type: ignore[attr-defined]
