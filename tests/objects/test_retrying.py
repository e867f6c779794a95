"""Retries, deadlines and short reads, on a clock that the tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from strandline.clock import SystemChance, T
from strandline.objects import (
    ObjectExists,
    ObjectNotFound,
    ObjectOptions,
    ObjectStoreError,
    ObjectStoreMisconfigured,
    ObjectStoreUnavailable,
    Patience,
    RetryingStore,
    harden,
)
from strandline.objects.memory import MemoryStore
from strandline.objects.store import ObjectRange
from strandline.testing.clock import VirtualClock
from strandline.testing.objects import ANY, FaultyStore

PATIENCE = Patience(attempts=4, backoff=1.0, longest_backoff=3.0, attempt_deadline=10.0, deadline=30.0)


class Highest:
    """Randomness that always gives the highest number."""

    def __init__(self) -> None:
        self.limits: list[int] = []

    def below(self, limit: int) -> int:
        self.limits.append(limit)
        return max(limit - 1, 0)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return list(items)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def faulty(clock: VirtualClock) -> FaultyStore:
    return FaultyStore(MemoryStore(clock), clock)


@pytest.fixture
def chance() -> Highest:
    return Highest()


@pytest.fixture
def store(faulty: FaultyStore, clock: VirtualClock, chance: Highest) -> RetryingStore:
    return harden(faulty, ObjectOptions(patience=PATIENCE), clock=clock, chance=chance)


async def test_what_fails_now_and_then_succeeds(store: RetryingStore, faulty: FaultyStore, clock: VirtualClock) -> None:
    faulty.fail(ANY, times=2)
    writing = asyncio.create_task(store.put("key", [b"data"]))
    await clock.advance(10)
    await writing
    assert faulty.count("put") == 3
    assert bytes(await store.get("key")) == b"data"
    status = store.status()
    assert (status.retries, status.operations["put"].calls, status.operations["put"].errors) == (2, 3, 2)


async def test_waits_double_up_to_a_limit_and_are_random_below_it(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock, chance: Highest
) -> None:
    faulty.fail("get", times=10)
    reading = asyncio.create_task(store.get("key"))
    await clock.advance(0.5)
    assert faulty.count("get") == 1
    await clock.advance(0.5)
    assert faulty.count("get") == 2
    await clock.advance(20)
    with pytest.raises(ObjectStoreUnavailable):
        await reading
    assert chance.limits == [1_000_000, 2_000_000, 3_000_000, 3_000_000]
    assert faulty.count("get") == PATIENCE.attempts


async def test_the_last_error_names_the_key_the_store_and_the_reason(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    faulty.fail("put", times=4, error=ObjectStoreUnavailable("the dog ate it"))
    writing = asyncio.create_task(store.put("some/key", [b"data"]))
    await clock.advance(60)
    with pytest.raises(ObjectStoreUnavailable, match=r"some/key to memory:// failed 4 times.*the dog ate it"):
        await writing


@pytest.mark.parametrize("kind", [ObjectNotFound, ObjectStoreMisconfigured, ObjectStoreError])
async def test_what_cannot_succeed_is_tried_once(
    store: RetryingStore, faulty: FaultyStore, kind: type[ObjectStoreError]
) -> None:
    faulty.fail("get", error=kind("no"))
    with pytest.raises(kind, match=r"^no$"):
        await store.get("key")
    assert faulty.count() == 1


async def test_an_attempt_that_never_returns_is_given_up_and_tried_again(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    faulty.block("put", times=1)
    writing = asyncio.create_task(store.put("key", [b"data"]))
    await clock.advance(9)
    pending = store.status().operations["put"]
    assert (pending.pending, pending.oldest_pending_seconds) == (1, 9)
    await clock.advance(3)
    await writing
    assert faulty.count("put") == 2
    assert store.status().operations["put"].pending == 0


@pytest.mark.parametrize("operation", ["put", "put_new", "get", "get_range", "list", "delete"])
async def test_every_call_ends_within_the_deadline(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock, operation: str
) -> None:
    async def call() -> None:
        match operation:
            case "put":
                await store.put("key", [b"x"])
            case "put_new":
                await store.put_new("key", [b"x"])
            case "get":
                await store.get("key")
            case "get_range":
                await store.get_range("key", 0, 1)
            case "list":
                assert [info async for info in store.list("")] == []
            case "delete":
                await store.delete(["key"])

    faulty.block(operation)
    calling = asyncio.create_task(call())
    await clock.advance(29.5)
    assert not calling.done()
    await clock.advance(0.5)
    with pytest.raises(ObjectStoreUnavailable, match="did not answer in time"):
        await calling
    assert store.status().operations[operation].pending == 0


async def test_a_cancelled_call_is_cancelled_below_too(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    gate = faulty.block("put")
    writing = asyncio.create_task(store.put("key", [b"data"]))
    await gate.wait_reached()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    gate.release()
    await clock.settle()
    with pytest.raises(ObjectNotFound):
        await store.get("key")


async def test_a_cancelled_wait_between_attempts_ends_the_call(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    faulty.fail("put")
    writing = asyncio.create_task(store.put("key", [b"data"]))
    await clock.settle()
    writing.cancel()
    await clock.advance(10)
    assert writing.cancelled()
    assert faulty.count("put") == 1


async def test_a_new_object_whose_answer_was_lost_is_our_own(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    faulty.lose_answer("put_new")
    writing = asyncio.create_task(store.put_new("key", [b"da", b"ta"]))
    while not writing.done():
        await clock.advance(1)
    await writing
    assert bytes(await store.get("key")) == b"data"


async def test_a_new_object_of_another_is_not_taken_for_ours_after_a_failure(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    await store.put("key", [b"of another"])
    faulty.fail("put_new")
    writing = asyncio.create_task(store.put_new("key", [b"ours"]))
    while not writing.done():
        await clock.advance(1)
    with pytest.raises(ObjectExists):
        await writing


async def test_the_first_answer_that_an_object_exists_is_believed(store: RetryingStore, faulty: FaultyStore) -> None:
    await store.put("key", [b"same"])
    with pytest.raises(ObjectExists):
        await store.put_new("key", [b"same"])
    assert faulty.count("get") == 0


async def test_a_short_read_is_found_and_tried_again(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    await store.put("key", [b"0123456789"])
    faulty.shorten("get_range", keep_bytes=3)
    reading = asyncio.create_task(store.get_range("key", 2, 5))
    await clock.advance(5)
    assert bytes(await reading) == b"23456"
    assert store.status().retries == 1


async def test_reads_that_stay_short_fail(store: RetryingStore, faulty: FaultyStore, clock: VirtualClock) -> None:
    await store.put("key", [b"0123456789"])
    for skip in range(0, 8, 2):  # every second call asks for the byte behind the answer
        faulty.shorten("get_range", keep_bytes=0, skip=skip)
    reading = asyncio.create_task(store.get_range("key", 2, 5))
    await clock.advance(60)
    with pytest.raises(ObjectStoreUnavailable, match="answered 0 bytes of object key; 5 from 2 on were asked for"):
        await reading


async def test_a_read_inside_the_object_is_one_request(store: RetryingStore, faulty: FaultyStore) -> None:
    await store.put("key", [b"0123456789"])
    assert bytes(await store.get_range("key", 5, 5)) == b"56789"
    assert faulty.count("get_range") == 1
    assert bytes(await store.get_range("key", 5, 6)) == b"56789"
    assert faulty.count("get_range") == 3


async def test_a_listing_goes_on_where_it_failed(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    keys = [f"{number:05}" for number in range(2500)]
    for key in keys:
        await store.put(key, [b"x"])
    infos = store.list("")
    listed = [(await anext(infos)).key]
    faulty.fail("list", times=2)
    listed += [(await anext(infos)).key for _ in range(999)]
    await infos.aclose()
    faulty.heal()

    faulty.lose_answer("list", times=3)  # breaks off after one object
    infos = store.list("", after=listed[-1])
    collecting = asyncio.create_task(_keys(infos))
    await clock.advance(60)
    listed += await collecting
    assert listed == keys
    assert store.status().retries == 3


async def _keys(infos: object) -> list[str]:
    return [info.key async for info in infos]  # type: ignore[attr-defined]


async def test_deleting_never_starts_again_from_the_beginning(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    keys = [f"{number:05}" for number in range(2500)]
    for key in keys:
        await store.put(key, [b"x"])
    faulty.fail("delete", skip=1, times=2)
    deleting = asyncio.create_task(store.delete(keys))
    await clock.advance(60)
    await deleting
    pages = [call.keys[0] for call in faulty.calls if call.operation == "delete"]
    assert pages == ["00000", "01000", "01000", "01000", "02000"]
    assert await _keys(store.list("")) == []


async def test_real_chance_gives_waits_of_all_lengths(clock: VirtualClock, faulty: FaultyStore) -> None:
    faulty.fail("get", times=1000)
    waits = set()
    for seed in range(20):
        store = harden(faulty, ObjectOptions(patience=PATIENCE), clock=clock, chance=SystemChance(seed))
        start = clock.monotonic()
        reading = asyncio.create_task(store.get("key"))
        while not reading.done():
            await clock.advance(0.25)
        assert isinstance(reading.exception(), ObjectStoreUnavailable)
        waits.add(clock.monotonic() - start)
    assert len(waits) > 5
    assert max(waits) <= 1 + 2 + 3 + 0.25


# Lists of ranges


async def test_what_failed_in_a_list_is_to_be_read_again(store: RetryingStore, faulty: FaultyStore) -> None:
    for number in range(4):
        await store.put(f"key{number}", [bytes([number]) * 10])
    faulty.calls.clear()
    faulty.fail("get_range")
    faulty.shorten("get_range", 3, skip=1)
    wanted = [ObjectRange(f"key{number}", 2, 5) for number in range(4)] + [ObjectRange("missing", 0, 5)]
    answers = await store.get_ranges(wanted)
    found = [bytes(one) for one in answers if not isinstance(one, ObjectStoreError)]
    assert found == [bytes([1]) * 3, bytes([2]) * 5, bytes([3]) * 5]
    assert isinstance(answers[0], ObjectStoreUnavailable)
    assert isinstance(answers[4], ObjectNotFound)
    assert [call.keys[0] for call in faulty.calls] == [one.key for one in wanted]


async def test_a_list_is_not_waited_for_as_long_as_one_range(
    store: RetryingStore, faulty: FaultyStore, clock: VirtualClock
) -> None:
    await store.put("key", [b"0123456789"])
    faulty.block("get_range")
    reading = asyncio.ensure_future(store.get_ranges([ObjectRange("key", 0, 2), ObjectRange("key", 2, 2)]))
    single = asyncio.ensure_future(store.get_ranges([ObjectRange("key", 0, 2)]))
    await clock.advance(PATIENCE.list_deadline - 0.1)
    assert not reading.done()
    await clock.advance(0.2)
    assert all(isinstance(answer, ObjectStoreUnavailable) for answer in await reading)
    assert not single.done()
    await clock.advance(PATIENCE.deadline)
    assert isinstance((await single)[0], ObjectStoreUnavailable)


async def test_each_range_of_a_list_counts(store: RetryingStore, faulty: FaultyStore) -> None:
    await store.put("key", [b"0123456789"])
    await store.get_ranges([ObjectRange("key", 0, 2), ObjectRange("missing", 2, 2), ObjectRange("key", 2, 3)])
    counts = store.status().operations["get_range"]
    assert (counts.calls, counts.errors, counts.bytes) == (3, 1, 5)
