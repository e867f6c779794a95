"""Work on shards that is done once, in steps: others have their turns, and partitions come and go in between."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from strandline.coordinators.runtime import CoordinatorState
from strandline.testing.clock import VirtualClock
from tests.coordinators.runtime.dictionary import POISON, Dictionary, DictionaryShard
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog
from tests.coordinators.runtime.test_ownership import batch_of

Work = Callable[[DictionaryShard], Iterator[None]]


def noted(what: str, steps: int, events: list[str] | None = None) -> Work:
    """Work of so many steps that are noted."""

    def work(shard: DictionaryShard) -> Iterator[None]:
        for step in range(steps):
            (shard.events if events is None else events).append(f"{what} {step}")
            yield

    return work


async def test_one_step_is_taken_in_a_turn_however_many_shards_there_are(clock: VirtualClock) -> None:
    dictionary, events = Dictionary(MemoryCoordinatorLog(3), clock), list[str]()
    async with dictionary.runtime.running():
        for partition in range(3):
            dictionary.lead(partition, 1)
        await dictionary.runtime.wait_loaded()
        dictionary.runtime.sweep_once(noted("step", 4, events))
        dictionary.runtime.sweep_once(noted("another", 4, events))
        assert events == [], "the caller waits for none"
        most = before = 0
        for _ in range(300):
            await clock.sleep(0)
            most, before = max(most, len(events) - before), len(events)
    assert (len(events), most) == (24, 1)


async def test_work_waits_until_the_shard_is_loaded(dictionary: Dictionary) -> None:
    dictionary.follow(0, 2)
    dictionary.log.hold()
    dictionary.lead(0, 3)
    dictionary.runtime.sweep_once(noted("work", 2))
    await dictionary.clock.settle()
    assert dictionary.shards[-1].events == []
    dictionary.log.release()
    await dictionary.runtime.wait_loaded()
    await dictionary.clock.settle()
    assert dictionary.shards[-1].events == ["loaded", "work 0", "work 1"]


async def test_work_ends_with_the_leadership(dictionary: Dictionary) -> None:
    shard = dictionary.shards[0]

    def work(shard: DictionaryShard) -> Iterator[None]:
        shard.events.append("step")
        asyncio.get_running_loop().call_soon(dictionary.follow, 0, 2)
        yield
        shard.events.append("too late")

    dictionary.runtime.sweep_once(work)
    dictionary.runtime.sweep_once(noted("too late", 1))
    await dictionary.clock.settle()
    assert shard.events == ["loaded", "step", "unloaded: NotCoordinator"]
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    dictionary.runtime.sweep_once(noted("work", 1))
    await dictionary.clock.settle()
    assert dictionary.shards[-1].events == ["loaded", "work 0"]


async def test_a_shard_that_cannot_be_loaded_keeps_no_work(dictionary: Dictionary) -> None:
    dictionary.follow(0, 2)
    dictionary.log.batches[0] = [batch_of(POISON)]
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    work = noted("work", 1)
    kept = weakref.ref(work)
    dictionary.runtime.sweep_once(work)
    del work
    await dictionary.clock.settle()
    gc.collect()
    assert kept() is None
    assert dictionary.shards[-1].events == []


async def test_equal_work_that_has_not_begun_is_done_once(dictionary: Dictionary) -> None:
    first, second = noted("first", 2), noted("second", 2)
    dictionary.runtime.sweep_once(first)
    for work in (second, second, first):
        await dictionary.clock.sleep(0)
        dictionary.runtime.sweep_once(work)
    await dictionary.clock.settle()
    # Work that has begun may be past what it is asked for again.
    once = [["first 0", "first 1"], ["second 0", "second 1"]]
    assert dictionary.shards[0].events == ["loaded", *once[0], *once[1], *once[0]]


async def test_what_a_step_writes_is_committed_before_the_next(dictionary: Dictionary) -> None:
    def work(shard: DictionaryShard) -> Iterator[None]:
        for step in range(3):
            shard.events.append(f"step {step}")
            shard.put({b"%d" % step: b"v"}, lambda _: shard.events.append("written"))
            yield

    dictionary.log.hold()
    dictionary.runtime.sweep_once(work)
    await dictionary.clock.settle()
    assert dictionary.shards[0].events == ["loaded", "step 0"]
    dictionary.log.release()
    await dictionary.clock.settle()
    assert dictionary.shards[0].events == ["loaded", *(s for step in range(3) for s in (f"step {step}", "written"))]


async def test_work_that_fails_does_not_stop_what_comes_behind_it(
    dictionary: Dictionary, caplog: pytest.LogCaptureFixture
) -> None:
    def work(shard: DictionaryShard) -> Iterator[None]:
        yield
        raise ZeroDivisionError

    dictionary.runtime.sweep_once(work)
    dictionary.runtime.sweep_once(noted("work", 1))
    await dictionary.clock.settle()
    assert dictionary.shards[0].events == ["loaded", "work 0"]
    assert "work on a shard of a coordinator failed" in caplog.text


# The end of a shard


async def test_a_shard_is_unloaded_in_steps_and_then_lets_go(dictionary: Dictionary) -> None:
    shard = dictionary.shards[0]
    shard.steps_when_unloaded = noted("unloading", 2)(shard)
    shard.steps_to_let_go = noted("letting go", 2)(shard)
    dictionary.follow(0, 2)
    seen = ["loaded", "unloaded: NotCoordinator", "unloading 0"]
    assert shard.events == seen
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    await dictionary.put("a", "1")  # the next shard does not wait for the end of the last one
    await dictionary.clock.settle()
    assert shard.events == [*seen, "unloading 1", "letting go 0", "letting go 1"]
    assert dictionary.get("a") == "1"


async def test_a_shard_that_was_not_loaded_lets_go_of_what_it_has(dictionary: Dictionary) -> None:
    dictionary.follow(0, 2)
    dictionary.log.batches[0] = [batch_of(b"a", POISON)]
    dictionary.lead(0, 3)
    shard = dictionary.shards[-1]
    shard.steps_to_let_go = noted("letting go", 2)(shard)
    await dictionary.runtime.wait_loaded()
    await dictionary.clock.settle()
    (context,) = dictionary.runtime.contexts
    assert context.state is CoordinatorState.FAILED
    assert shard.events == ["letting go 0", "letting go 1"]


async def test_the_steps_that_are_left_are_taken_when_the_coordinator_stops(clock: VirtualClock) -> None:
    dictionary = Dictionary(MemoryCoordinatorLog(2), clock)
    async with dictionary.runtime.running():
        for partition in range(2):
            dictionary.lead(partition, 1)
        await dictionary.runtime.wait_loaded()
        for shard in dictionary.shards:
            shard.steps_when_unloaded = noted("unloading", 3)(shard)
        dictionary.follow(0, 2)
    for shard in dictionary.shards:
        assert shard.events == ["loaded", "unloaded: NotCoordinator", *(f"unloading {step}" for step in range(3))]


async def test_all_shards_are_unloaded_when_a_task_of_the_coordinator_fails(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    dictionary, is_serving = Dictionary(MemoryCoordinatorLog(3), clock), asyncio.Event()

    async def fail() -> None:
        await is_serving.wait()
        raise ZeroDivisionError

    async def serve() -> None:
        async with dictionary.runtime.running():
            for partition in range(3):
                dictionary.lead(partition, 1)
            await dictionary.runtime.wait_loaded()
            for shard in dictionary.shards:
                shard.steps_when_unloaded = noted("unloading", 2)(shard)
            is_serving.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(dictionary.runtime.timers, "run", fail)
    with pytest.raises(ExceptionGroup) as failure:
        await serve()
    assert [type(error) for error in failure.value.exceptions] == [ZeroDivisionError]
    for shard in dictionary.shards:
        assert shard.events == ["loaded", "unloaded: NotCoordinator", "unloading 0", "unloading 1"]


async def test_a_coordinator_that_stops_does_not_let_go_of_what_ends_with_it(clock: VirtualClock) -> None:
    dictionary = Dictionary(MemoryCoordinatorLog(2), clock)
    async with dictionary.runtime.running():
        for partition in range(2):
            dictionary.lead(partition, 1)
        await dictionary.runtime.wait_loaded()
        for shard in dictionary.shards:
            shard.steps_when_unloaded = noted("unloading", 2)(shard)
            shard.steps_to_let_go = noted("letting go", 2)(shard)
        dictionary.follow(0, 2)
    for shard in dictionary.shards:
        assert shard.events == ["loaded", "unloaded: NotCoordinator", "unloading 0", "unloading 1"]


async def test_waiting_members_of_a_shard_are_answered_before_another_one_lets_go(dictionary: Dictionary) -> None:
    events: list[str] = []
    for epoch, name in ((2, "first"), (4, "second")):
        shard = dictionary.shards[-1]
        shard.steps_when_unloaded = noted(f"unloading the {name}", 3, events)(shard)
        shard.steps_to_let_go = noted(f"letting go of the {name}", 1, events)(shard)
        dictionary.follow(0, epoch)
        dictionary.lead(0, epoch + 1)
        await dictionary.runtime.wait_loaded()
    await dictionary.clock.settle()
    assert [event for event in events if event.startswith("letting go")] == events[-2:]
    assert len(events) == 8


async def test_a_shard_whose_end_fails_at_once_lets_go_and_leaves_the_others_alone(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> Iterator[None]:
        raise ZeroDivisionError
        yield

    dictionary = Dictionary(MemoryCoordinatorLog(2), clock)
    async with dictionary.runtime.running():
        for partition in range(2):
            dictionary.lead(partition, 1)
        await dictionary.runtime.wait_loaded()
        dictionary.shards[0].steps_when_unloaded = fail()
        dictionary.shards[0].steps_to_let_go = noted("letting go", 1)(dictionary.shards[0])
        dictionary.follow(0, 2)
        await clock.settle()
    assert dictionary.shards[0].events == ["loaded", "unloaded: NotCoordinator", "letting go 0"]
    assert dictionary.shards[1].events == ["loaded", "unloaded: NotCoordinator"]
    assert "could not be unloaded" in caplog.text


async def test_a_shard_that_cannot_be_unloaded_does_not_keep_others_from_it(
    dictionary: Dictionary, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> Iterator[None]:
        yield
        raise ZeroDivisionError

    shard = dictionary.shards[0]
    shard.steps_when_unloaded = fail()
    dictionary.follow(0, 2)
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    shard = dictionary.shards[-1]
    shard.steps_when_unloaded = noted("unloading", 2)(shard)
    dictionary.follow(0, 4)
    await dictionary.clock.settle()
    assert shard.events == ["loaded", "unloaded: NotCoordinator", "unloading 0", "unloading 1"]
    assert "could not be unloaded" in caplog.text


# Writes


async def test_many_small_writes_are_appended_in_several_turns(dictionary: Dictionary) -> None:
    shard, turns = dictionary.shards[0], list[int]()
    for number in range(5):
        shard.put({b"%d-%d" % (number, at): b"v" for at in range(1_000)}, lambda _: None)
    for _ in range(20):
        turns.append(sum(len(records) for _, records in dictionary.log.appends))
        await dictionary.clock.sleep(0)
    written = [after - before for before, after in pairwise(turns) if after > before]
    assert written == [1_000] * 5
