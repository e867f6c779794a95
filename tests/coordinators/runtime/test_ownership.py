"""Owning partitions: loading, fencing by epoch, leadership that goes and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from strandline.clock import SystemClock
from strandline.coordinators.runtime import CoordinatorRuntime, CoordinatorState, ReadBatch, ReadRecord
from strandline.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaStorageError,
    NotCoordinator,
    StrandlineError,
)
from strandline.model import TopicPartition, coordinator_partition
from strandline.testing.clock import VirtualClock
from tests.coordinators.runtime.dictionary import BUG, POISON, Dictionary, DictionaryShard
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog


def state_of(runtime: CoordinatorRuntime[DictionaryShard]) -> CoordinatorState:
    (context,) = runtime.contexts
    return context.state


def batch_of(*keys: bytes) -> ReadBatch:
    return ReadBatch(records=tuple(ReadRecord(at, key, b"v") for at, key in enumerate(keys)))


# Loading


async def test_what_was_written_is_there_after_loading(dictionary: Dictionary) -> None:
    await dictionary.put("a", "1")
    await dictionary.put("b", "2")
    await dictionary.put("a", None)
    dictionary.follow(0, 2)
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    assert (dictionary.get("a"), dictionary.get("b")) == (None, "2")
    assert dictionary.shards[-1] is not dictionary.shards[0]


async def test_transaction_markers_are_replayed_in_order(dictionary: Dictionary) -> None:
    dictionary.follow(0, 2)
    dictionary.log.batches[0] = [
        ReadBatch(records=(ReadRecord(0, b"a", b"1"),), producer_id=7, is_transactional=True),
        ReadBatch(producer_id=7, is_transactional=True, committed=True),
        ReadBatch(producer_id=8, is_transactional=True, committed=False),
    ]
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    assert dictionary.shards[-1].transactions == [(7, True), (8, False)]


async def test_requests_are_refused_while_the_partition_is_loading(dictionary: Dictionary) -> None:
    await dictionary.put("a", "1")
    dictionary.follow(0, 2)
    dictionary.log.hold()
    dictionary.lead(0, 3)
    await dictionary.clock.settle()
    with pytest.raises(CoordinatorLoadInProgress):
        dictionary.get("a")
    with pytest.raises(CoordinatorLoadInProgress):
        await dictionary.put("a", "2")
    with pytest.raises(CoordinatorLoadInProgress):
        dictionary.runtime.check_all_loaded()
    dictionary.log.release()
    await dictionary.runtime.wait_loaded()
    dictionary.runtime.check_all_loaded()
    assert dictionary.get("a") == "1"


async def test_a_long_log_is_loaded_in_several_turns_of_the_loop(clock: VirtualClock) -> None:
    log = MemoryCoordinatorLog(2)
    log.batches[0] = [batch_of(*(b"%d" % at for at in range(300)))] * 20
    dictionary = Dictionary(log, clock)
    async with dictionary.runtime.running():
        dictionary.lead(0, 1)
        dictionary.lead(1, 1)
        states = []
        while any(context.state is CoordinatorState.LOADING for context in dictionary.runtime.contexts):
            states.append([context.state for context in dictionary.runtime.contexts])
            await clock.sleep(0)
    assert [CoordinatorState.LOADING, CoordinatorState.ACTIVE] in states  # the short one did not wait for the long one


async def test_work_for_every_shard_waits_for_the_end_of_loading(dictionary: Dictionary) -> None:
    dictionary.follow(0, 2)
    dictionary.log.hold()
    dictionary.lead(0, 3)
    dictionary.runtime.for_each_shard(lambda shard: shard.events.append("work 1"))
    await dictionary.clock.settle()
    assert dictionary.shards[-1].events == []
    dictionary.log.release()
    await dictionary.runtime.wait_loaded()
    dictionary.runtime.for_each_shard(lambda shard: shard.events.append("work 2"))
    assert dictionary.shards[-1].events == ["loaded", "work 1", "work 2"]


async def test_others_have_a_turn_between_the_steps_of_a_shard_that_begins(dictionary: Dictionary) -> None:
    await dictionary.put("a", "1")
    dictionary.follow(0, 2)
    dictionary.lead(0, 3)
    shard, seen = dictionary.shards[-1], list[str | None]()

    def steps() -> Iterator[None]:
        for _ in range(3):
            asyncio.get_running_loop().call_soon(lambda: seen.append(dictionary.get("a")))
            shard.events.append("step")
            yield
            assert len(seen) == shard.events.count("step"), "a request was served since the last step"

    shard.steps_when_loaded = steps()
    dictionary.runtime.for_each_shard(lambda one: one.events.append("work"))
    await dictionary.runtime.wait_loaded()
    assert state_of(dictionary.runtime) is CoordinatorState.ACTIVE
    assert seen == ["1", "1", "1"]
    assert shard.events == ["loaded", "step", "work", "step", "step"]


@pytest.mark.parametrize("when", ["steps_to_prepare", "steps_when_loaded"])
async def test_leadership_lost_between_two_steps(dictionary: Dictionary, when: str) -> None:
    dictionary.follow(0, 2)
    dictionary.lead(0, 3)
    shard = dictionary.shards[-1]

    def steps() -> Iterator[None]:
        asyncio.get_running_loop().call_soon(dictionary.follow, 0, 4)
        yield
        yield
        shard.events.append("too late")

    setattr(shard, when, steps())
    await dictionary.clock.settle()
    assert shard.events == ["loaded", "unloaded: NotCoordinator"][when == "steps_to_prepare" :]


# Loading that fails


@pytest.mark.parametrize("bad", [POISON, BUG])
async def test_a_partition_that_cannot_be_replayed_is_not_served(dictionary: Dictionary, bad: bytes) -> None:
    dictionary.follow(0, 2)
    dictionary.log.batches[0] = [batch_of(b"a", bad)]
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    assert state_of(dictionary.runtime) is CoordinatorState.FAILED
    with pytest.raises(NotCoordinator):
        dictionary.get("a")
    dictionary.runtime.check_all_loaded()
    dictionary.runtime.for_each_shard(lambda shard: shard.events.append("work"))
    dictionary.follow(0, 4)
    assert dictionary.shards[-1].events == []  # neither loaded nor unloaded


@pytest.mark.parametrize("error", [KafkaStorageError("a bad disk"), OSError("a bad disk")])
async def test_the_next_election_loads_again(dictionary: Dictionary, error: Exception) -> None:
    await dictionary.put("a", "1")
    dictionary.follow(0, 2)
    dictionary.log.fail_with = error
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    assert state_of(dictionary.runtime) is CoordinatorState.FAILED
    dictionary.log.fail_with = None
    dictionary.lead(0, 4)
    await dictionary.runtime.wait_loaded()
    assert dictionary.get("a") == "1"


async def test_a_shard_that_cannot_start_is_unloaded(dictionary: Dictionary) -> None:
    await dictionary.put("cannot start", "1")
    dictionary.follow(0, 2)
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    assert state_of(dictionary.runtime) is CoordinatorState.FAILED
    assert dictionary.shards[-1].events == ["loaded", "unloaded: StrandlineError"]
    results: list[StrandlineError | None] = []
    dictionary.shards[-1].put({b"a": b"1"}, lambda result: results.append(result.error))
    assert len(results) == 1
    assert results[0] is not None


async def test_a_failed_partition_does_not_touch_the_others(clock: VirtualClock) -> None:
    log = MemoryCoordinatorLog(2)
    log.batches[0] = [batch_of(BUG)]
    dictionary = Dictionary(log, clock)
    async with dictionary.runtime.running():
        dictionary.lead(0, 1)
        dictionary.lead(1, 1)
        await dictionary.runtime.wait_loaded()
        key = next(key for key in map(str, range(100)) if dictionary.runtime.partition_for(key) == 1)
        await dictionary.put(key, "1")
        assert dictionary.get(key) == "1"


# Leadership


async def test_waiting_writes_fail_when_leadership_is_lost(dictionary: Dictionary) -> None:
    dictionary.log.hold()
    under_way = await dictionary.start_put("a", "1")
    queued = await dictionary.start_put("b", "2")
    dictionary.follow(0, 2)
    await dictionary.clock.settle()
    for write in (under_way, queued):
        with pytest.raises(NotCoordinator):
            await write
    assert dictionary.shards[0].events == ["loaded", "unloaded: NotCoordinator"]
    with pytest.raises(NotCoordinator):
        dictionary.get("a")


async def test_a_late_end_of_an_append_changes_nothing_in_the_next_shard(dictionary: Dictionary) -> None:
    dictionary.log.hold()
    write = await dictionary.start_put("a", "1")
    dictionary.follow(0, 2)
    dictionary.lead(0, 3)
    await dictionary.clock.settle()  # its load reads the log as it is before the append ends
    dictionary.log.release()
    await dictionary.runtime.wait_loaded()
    await dictionary.clock.settle()
    with pytest.raises(NotCoordinator):
        await write
    assert dictionary.get("a") is None
    assert dictionary.shards[0].values == {}


async def test_leadership_lost_while_loading(dictionary: Dictionary) -> None:
    await dictionary.put("a", "1")
    dictionary.follow(0, 2)
    dictionary.log.hold()
    dictionary.lead(0, 3)
    await dictionary.clock.settle()
    dictionary.follow(0, 4)
    dictionary.log.release()
    await dictionary.clock.settle()
    with pytest.raises(NotCoordinator):
        dictionary.get("a")
    assert dictionary.shards[-1].events == []
    assert len(dictionary.runtime.timers) == 0


async def test_leadership_lost_and_regained_while_loading(dictionary: Dictionary) -> None:
    await dictionary.put("a", "1")
    dictionary.follow(0, 2)
    dictionary.log.hold()
    dictionary.lead(0, 3)
    await dictionary.clock.settle()
    dictionary.follow(0, 4)
    dictionary.log.batches[0].append(batch_of(b"written by the other leader"))
    dictionary.lead(0, 5)
    dictionary.log.release()
    await dictionary.runtime.wait_loaded()
    first, second, third = dictionary.shards
    assert first.events == ["loaded", "unloaded: NotCoordinator"]
    assert second.events == []
    assert third.events == ["loaded"]
    assert dictionary.get("written by the other leader") == "v"
    assert await dictionary.put("a", "2") == 2


async def test_a_newer_epoch_of_the_same_leader_keeps_the_shard(dictionary: Dictionary) -> None:
    await dictionary.put("a", "1")
    dictionary.lead(0, 2)
    assert dictionary.get("a") == "1"
    await dictionary.put("a", "2")  # written in the new epoch, otherwise the log would refuse it
    assert len(dictionary.shards) == 1
    assert dictionary.shards[0].writer.leader_epoch == 2


async def test_a_newer_epoch_of_the_same_leader_while_loading(dictionary: Dictionary) -> None:
    await dictionary.put("a", "1")
    dictionary.follow(0, 2)
    dictionary.log.hold()
    dictionary.lead(0, 3)
    await dictionary.clock.settle()
    dictionary.lead(0, 4)
    dictionary.log.release()
    await dictionary.runtime.wait_loaded()
    await dictionary.put("a", "2")
    assert dictionary.get("a") == "2"
    assert len(dictionary.shards) == 2


# Fencing


async def test_elections_and_resignations_of_older_epochs_are_ignored(dictionary: Dictionary) -> None:
    dictionary.lead(0, 5)
    dictionary.runtime.elected(0, 4)
    dictionary.runtime.resigned(0, 4)
    await dictionary.put("a", "1")
    assert dictionary.shards[0].writer.leader_epoch == 5
    dictionary.runtime.resigned(0, 5)  # the topic is deleted, or its directory has failed: the epoch stays
    with pytest.raises(NotCoordinator):
        dictionary.get("a")
    dictionary.runtime.resigned(0, 6)  # once more: harmless


async def test_an_older_election_does_not_revive_a_failed_partition(dictionary: Dictionary) -> None:
    dictionary.follow(0, 2)
    dictionary.log.fail_with = KafkaStorageError("a bad disk")
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    dictionary.log.fail_with = None
    dictionary.runtime.elected(0, 2)
    await dictionary.runtime.wait_loaded()
    assert state_of(dictionary.runtime) is CoordinatorState.FAILED


async def test_a_load_in_an_epoch_that_is_over_fails(dictionary: Dictionary) -> None:
    dictionary.follow(0, 2)
    dictionary.runtime.elected(0, 1)  # late news: the log is in epoch 2
    await dictionary.runtime.wait_loaded()
    assert state_of(dictionary.runtime) is CoordinatorState.FAILED


async def test_a_write_in_an_epoch_that_is_over_is_refused(dictionary: Dictionary) -> None:
    dictionary.log.leader_epochs[0] = 2  # another broker leads, and this one has not heard of it
    with pytest.raises(NotCoordinator):
        await dictionary.put("a", "1")
    assert dictionary.get("a") is None
    assert dictionary.log.batches[0] == []


# The runtime


async def test_keys_belong_to_partitions_as_in_kafka(clock: VirtualClock) -> None:
    dictionary = Dictionary(MemoryCoordinatorLog(50), clock)
    assert [dictionary.runtime.partition_for(key) for key in ("a", "b", "my-group")] == [
        coordinator_partition(key, 50) for key in ("a", "b", "my-group")
    ]


async def test_a_runtime_that_stopped_refuses_and_answers_those_who_wait(clock: VirtualClock) -> None:
    dictionary = Dictionary(MemoryCoordinatorLog(), clock)
    with pytest.raises(CoordinatorNotAvailable):
        dictionary.get("a")
    with pytest.raises(RuntimeError, match="key coordinator is not running"):
        dictionary.lead(0, 1)
    async with dictionary.runtime.running():
        dictionary.lead(0, 1)
        await dictionary.runtime.wait_loaded()
        dictionary.log.hold()
        write = await dictionary.start_put("a", "1")
    with pytest.raises(NotCoordinator):
        await write
    with pytest.raises(CoordinatorNotAvailable):
        dictionary.get("a")
    with pytest.raises(CoordinatorNotAvailable):
        dictionary.runtime.check_all_loaded()
    assert len(dictionary.runtime.contexts) == 0


async def test_it_listens_to_leadership_changes(dictionary: Dictionary) -> None:
    dictionary.runtime.leadership_lost(TopicPartition("__dictionary", 0), 2)
    with pytest.raises(NotCoordinator):
        dictionary.get("a")


async def test_sweeps_visit_every_active_shard_while_there_is_one(clock: VirtualClock) -> None:
    log = MemoryCoordinatorLog(3)
    log.batches[2] = [batch_of(BUG)]
    dictionary = Dictionary(log, clock)
    dictionary.runtime.sweep_every(1000, DictionaryShard.sweep)
    async with dictionary.runtime.running():
        assert len(dictionary.runtime.timers) == 0
        for partition in range(3):
            dictionary.lead(partition, 1)
        await dictionary.runtime.wait_loaded()
        for _ in range(3):
            await clock.advance(1)
        assert [shard.sweeps for shard in dictionary.shards] == [3, 3, 0]
        for partition in range(3):
            dictionary.follow(partition, 2)
        assert len(dictionary.runtime.timers) == 0


async def test_others_have_a_turn_between_the_steps_of_a_sweep() -> None:
    events: list[str] = []
    is_over = asyncio.Event()

    def count(shard: DictionaryShard) -> Iterator[None]:
        for step in range(4):
            events.append(f"step {step}")
            asyncio.get_running_loop().call_soon(events.append, "another")
            if step == 2:
                runtime.resigned(0, 2)
                is_over.set()
            yield

    runtime = CoordinatorRuntime("key", MemoryCoordinatorLog(1), DictionaryShard, clock=SystemClock())
    runtime.sweep_every(1, count)
    async with runtime.running():
        runtime.elected(0, 1)
        await is_over.wait()
    assert events[:5] == ["step 0", "another", "step 1", "another", "step 2"]
    assert "step 3" not in events, "the shard was unloaded"


async def test_a_sweep_that_fails_comes_again(dictionary: Dictionary) -> None:
    swept = []

    def fail(shard: DictionaryShard) -> Iterator[None]:
        swept.append(shard)
        yield
        raise ZeroDivisionError

    dictionary.runtime.sweep_every(1000, fail)
    dictionary.follow(0, 2)
    dictionary.lead(0, 3)
    await dictionary.runtime.wait_loaded()
    for _ in range(3):
        await dictionary.clock.advance(1)
    assert len(swept) == 3
