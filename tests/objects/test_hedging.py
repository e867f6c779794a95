"""Reads that are sent a second time."""

from __future__ import annotations

import asyncio

import pytest

from strandline.clock import SystemChance
from strandline.objects import ObjectNotFound, ObjectOptions, ObjectStoreUnavailable, Patience, RetryingStore, harden
from strandline.objects.memory import MemoryStore
from strandline.testing.clock import VirtualClock
from strandline.testing.objects import FaultyStore


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def faulty(clock: VirtualClock) -> FaultyStore:
    return FaultyStore(MemoryStore(clock), clock)


@pytest.fixture
async def store(faulty: FaultyStore, clock: VirtualClock) -> RetryingStore:
    options = ObjectOptions(patience=Patience(attempts=1, attempt_deadline=60, deadline=60), hedge_after=2.0)
    store = harden(faulty, options, clock=clock, chance=SystemChance())
    await store.put("key", [b"data"])
    return store


async def test_a_read_that_is_answered_in_time_is_sent_once(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    faulty.delay("get", 1.5)
    reading = asyncio.create_task(store.get("key"))
    await clock.advance(1.5)
    assert bytes(await reading) == b"data"
    assert (faulty.count("get"), store.status().hedges) == (1, 0)


@pytest.mark.parametrize("operation", ["get", "get_range"])
async def test_the_second_answer_wins_and_the_first_call_is_cancelled(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock, operation: str
) -> None:
    faulty.block(operation, times=1)
    reading = asyncio.create_task(store.get("key") if operation == "get" else store.get_range("key", 0, 4))
    await clock.advance(1.9)
    assert faulty.count(operation) == 1
    await clock.advance(0.1)
    assert bytes(await reading) == b"data"
    status = store.status()
    assert (status.hedges, status.hedges_won, status.operations[operation].pending) == (1, 1, 0)


async def test_the_first_answer_may_still_win(store: RetryingStore, faulty: FaultyStore, clock: VirtualClock) -> None:
    faulty.delay("get", 3.0)
    reading = asyncio.create_task(store.get("key"))
    await clock.advance(3.0)
    assert bytes(await reading) == b"data"
    status = store.status()
    assert (status.hedges, status.hedges_won, status.operations["get"].pending) == (1, 0, 0)


@pytest.mark.parametrize("failing", [0, 1], ids=["first", "second"])
async def test_an_error_of_one_call_waits_for_the_answer_of_the_other(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock, failing: int
) -> None:
    faulty.delay("get", 3.0, times=1, skip=failing)
    faulty.fail("get", skip=failing)
    faulty.delay("get", 5.0, times=1, skip=1 - failing)
    reading = asyncio.create_task(store.get("key"))
    await clock.advance(10)
    assert bytes(await reading) == b"data"
    assert (faulty.count("get"), store.status().operations["get"].errors) == (2, 1)


async def test_errors_of_both_calls_fail_the_read(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    faulty.delay("get", 3.0)
    faulty.fail("get", times=2)
    reading = asyncio.create_task(store.get("key"))
    await clock.advance(10)
    with pytest.raises(ObjectStoreUnavailable):
        await reading


async def test_a_missing_object_is_known_at_once(store: RetryingStore, faulty: FaultyStore) -> None:
    with pytest.raises(ObjectNotFound):
        await store.get("missing")
    assert faulty.count("get") == 1


async def test_a_cancelled_read_cancels_both_calls(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    faulty.block("get")
    reading = asyncio.create_task(store.get("key"))
    await clock.advance(3)
    assert store.status().operations["get"].pending == 2
    reading.cancel()
    await clock.settle()
    assert reading.cancelled()
    assert store.status().operations["get"].pending == 0


async def test_a_store_that_is_slow_for_all_reads_does_not_get_twice_the_work(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    gate = faulty.block("get")
    reading = [asyncio.create_task(store.get("key")) for _ in range(40)]
    await clock.advance(3)
    assert faulty.count("get") == 56
    gate.release()
    assert {bytes(data) for data in await asyncio.gather(*reading)} == {b"data"}
