"""Who works when: bounded places, fair turns, growing pauses, and next to nothing for idle partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from strandline.clock import SystemChance
from strandline.remote.manager.jobs import JobPool, Look
from strandline.remote.manager.limits import ManagerLimits
from strandline.remote.ports import RemoteStorageError
from strandline.testing.clock import VirtualClock


class Work:
    """A job that does what a test says."""

    def __init__(self, name: str = "Some work") -> None:
        self.name = name
        self.say = Look.IDLE
        self.looks = self.turns = self.running = 0
        self.gate: asyncio.Event | None = None
        self.error: Exception | None = None
        self.more = 0

    def look(self) -> Look:
        self.looks += 1
        return self.say

    async def run(self, pool: JobPool) -> bool:
        assert self.running == 0, "one turn at a time"
        self.turns += 1
        self.running += 1
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.error is not None:
                raise self.error
            self.more -= 1
            return self.more > 0
        finally:
            self.running -= 1


class CountingClock(VirtualClock):
    """Counts waits."""

    waits = 0

    async def wait_set(self, event: asyncio.Event, *, within: float) -> bool:
        self.waits += 1
        return await super().wait_set(event, within=within)


@asynccontextmanager
async def pool_of(size: int, clock: VirtualClock, **limits: int) -> AsyncIterator[JobPool]:
    pool = JobPool(size, ManagerLimits(**limits), clock=clock, chance=SystemChance(1))
    task = asyncio.ensure_future(pool.run())
    try:
        yield pool
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_idle_partitions_cost_one_look_per_interval_and_few_wakes() -> None:
    clock = CountingClock()
    jobs = [Work() for _ in range(2000)]
    async with pool_of(10, clock) as pool:
        for job in jobs:
            pool.wake(job)
        await clock.advance(30 * 10)
        assert all(9 <= job.looks <= 11 for job in jobs)
        assert all(job.turns == 0 for job in jobs)
        # All of them are looked at at a common moment.
        assert clock.waits < 10 * 35


async def test_no_more_than_the_places_work_at_once_and_the_others_go_in_order() -> None:
    clock = VirtualClock()
    gate = asyncio.Event()
    jobs = [Work() for _ in range(5)]
    async with pool_of(2, clock) as pool:
        for job in jobs:
            job.say, job.gate = Look.WORK, gate
            pool.wake(job)
        await clock.settle()
        assert [job.turns for job in jobs] == [1, 1, 0, 0, 0]
        status = pool.status()
        assert (status.running, status.ready, status.size) == (2, 3, 2)
        assert pool.others_wait
        for job in jobs:
            job.say = Look.IDLE
        gate.set()
        await clock.settle()
        assert [job.turns for job in jobs] == [1, 1, 1, 1, 1]


async def test_a_job_with_more_to_do_lets_the_others_go_first() -> None:
    clock = VirtualClock()
    long, short = Work("long"), Work("short")
    order: list[str] = []
    async with pool_of(1, clock) as pool:
        for job in (long, short):
            job.say = Look.WORK
            pool.wake(job)
        long.more = 3
        for _ in range(400):
            await asyncio.sleep(0)  # noqa: TID251 - turns of the loop, not time
            order += [job.name for job in (long, short) if job.running]
    assert long.turns >= 3
    assert short.turns >= 1


async def test_pauses_after_failures_grow_up_to_the_limit_and_end_with_success() -> None:
    clock = VirtualClock()
    job = Work()
    job.say, job.error = Look.WORK, RemoteStorageError("away")
    async with pool_of(1, clock, task_retry_backoff_ms=500, task_retry_backoff_max_ms=4000) as pool:
        pool.wake(job)
        await clock.advance(60)
        # 0.5 + 1 + 2 + 4 + 4 ..., each up to a fifth longer or shorter
        assert 14 <= job.turns <= 20
        state = pool.state_of(job)
        assert state is not None
        assert state.last_error == "away"
        assert pool.status().failing == 1
        job.error = None
        await clock.advance(5)
        assert pool.status().failing == 0


async def test_whatever_one_job_raises_the_others_go_on() -> None:
    clock = VirtualClock()
    bad, good = Work(), Work()
    bad.say = good.say = Look.WORK
    bad.error = ZeroDivisionError("a plugin with a fault")
    async with pool_of(2, clock) as pool:
        pool.wake(bad)
        pool.wake(good)
        await clock.advance(65)
        assert good.turns == 3
        assert bad.turns > 3


async def test_a_look_that_fails_is_repeated_later_and_does_not_affect_other_jobs() -> None:
    clock = VirtualClock()

    class Blind(Work):
        def look(self) -> Look:
            super().look()
            raise RuntimeError("a plugin with a fault")

    bad, good = Blind(), Work()
    good.say = Look.WORK
    async with pool_of(2, clock) as pool:
        pool.wake(bad)
        pool.wake(good)
        await clock.advance(65)
        assert good.turns == 3
        assert bad.looks > 3


async def test_what_is_not_ready_is_looked_at_soon_and_then_less_and_less() -> None:
    clock = VirtualClock()
    job = Work()
    job.say = Look.NOT_READY
    async with pool_of(1, clock) as pool:
        pool.wake(job)
        await clock.advance(2)
        assert 2 <= job.looks <= 4
        await clock.advance(600)
        assert job.looks < 30
        pool.wake(job)
        job.say = Look.WORK
        await clock.settle()
        assert job.turns == 1


async def test_a_removed_job_ends_its_turn_and_gets_no_other() -> None:
    clock = VirtualClock()
    job = Work()
    job.say, job.gate = Look.WORK, asyncio.Event()
    async with pool_of(1, clock) as pool:
        pool.wake(job)
        await clock.settle()
        pool.remove(job)
        job.gate.set()
        await clock.advance(100)
        assert job.turns == 1
        assert pool.status().jobs == 0


async def test_a_job_that_is_removed_and_taken_in_again_never_runs_twice_at_once() -> None:
    clock = VirtualClock()
    job = Work()
    job.say, job.gate = Look.WORK, asyncio.Event()
    async with pool_of(5, clock) as pool:
        pool.wake(job)
        await clock.settle()
        pool.remove(job)
        pool.wake(job)
        await clock.settle()
        assert job.turns == 1
        job.say = Look.IDLE
        job.gate.set()
        await clock.advance(40)
        assert job.looks >= 2
        assert pool.status().jobs == 1


async def test_a_job_removed_while_it_waits_for_a_place_never_runs() -> None:
    clock = VirtualClock()
    first, second = Work(), Work()
    first.gate = asyncio.Event()
    first.say = second.say = Look.WORK
    async with pool_of(1, clock) as pool:
        pool.wake(first)
        pool.wake(second)
        await clock.settle()
        pool.remove(second)
        first.gate.set()
        await clock.advance(5)
        assert second.turns == 0


async def test_a_job_that_is_done_is_let_go() -> None:
    clock = VirtualClock()
    job = Work()
    job.say = Look.DONE
    async with pool_of(1, clock) as pool:
        pool.wake(job)
        await clock.settle()
        assert pool.status().jobs == 0


async def test_the_age_of_the_oldest_turn_is_seen() -> None:
    clock = VirtualClock()
    job = Work()
    job.say, job.gate = Look.WORK, asyncio.Event()
    async with pool_of(1, clock) as pool:
        pool.wake(job)
        await clock.advance(100)
        assert pool.status().oldest_running_seconds == 100
        assert pool.status().busy_seconds == 100
