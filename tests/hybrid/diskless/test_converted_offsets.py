"""ListOffsets over a diskless log of which a part is converted: the answers are those of the whole log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.diskless.reader import DisklessReaderLimits
from strandline.errors import KafkaStorageError
from strandline.reads import EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED, MAX_TIMESTAMP, NOTHING, FoundOffset
from tests.controlplane.switching import P, switched
from tests.diskless.batches import NOON_MS
from tests.diskless.reader.lake import P0, Write
from tests.hybrid.diskless.converting import ConvertingWorld, open_converting

T = NOON_MS
NO_CACHE = DisklessReaderLimits(cache_max_bytes=0)


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[ConvertingWorld]:
    """Offsets 0 to 5 have the times T, T+1, ... of epochs 3 and 4, then 6 to 8 those of T+90 and later, of epoch 5."""
    async with open_converting(tmp_path) as world:
        await world.lake.write(Write(P0, records=3, timestamp=T, step_ms=1), leader_epoch=3)
        await world.lake.write(Write(P0, records=3, timestamp=T + 3, step_ms=1), leader_epoch=4)
        await world.lake.write(Write(P0, records=3, timestamp=T + 90, step_ms=1), leader_epoch=5)
        yield world


async def test_the_ends_of_the_log_and_of_its_parts(world: ConvertingWorld) -> None:
    before = await world.broker()
    assert await before.list_offset(P0, EARLIEST) == FoundOffset(-1, 0, 3)
    assert await before.list_offset(P0, EARLIEST_LOCAL) == FoundOffset(-1, 0, 3)
    assert await before.list_offset(P0, LATEST_TIERED) == NOTHING
    await world.convert(P0, 6)
    for broker in (before, await world.broker()):
        assert await broker.list_offset(P0, EARLIEST) == FoundOffset(-1, 0, 3)
        assert await broker.list_offset(P0, EARLIEST_LOCAL) == FoundOffset(-1, 6, 5)
        assert await broker.list_offset(P0, LATEST_TIERED) == FoundOffset(-1, 5, 4)
        assert await broker.list_offset(P0, LATEST) == FoundOffset(-1, 9, 5)
    await world.plane.trimming.delete_records({P0: 4})
    assert await before.list_offset(P0, EARLIEST) == FoundOffset(-1, 4, 4)
    await world.plane.trimming.delete_records({P0: 8})
    assert await before.list_offset(P0, EARLIEST) == FoundOffset(-1, 8, 5)
    assert await before.list_offset(P0, LATEST_TIERED) == NOTHING


async def test_records_by_time_are_found_in_either_part(world: ConvertingWorld) -> None:
    await world.convert(P0, 6)
    broker, fresh = await world.broker(), await world.broker()
    for timestamp, expected in {
        0: FoundOffset(T, 0, 3),
        T + 2: FoundOffset(T + 2, 2, 3),
        T + 3: FoundOffset(T + 3, 3, 4),
        T + 6: FoundOffset(T + 90, 6, 5),
        T + 91: FoundOffset(T + 91, 7, 5),
        T + 93: NOTHING,
    }.items():
        assert await broker.list_offset(P0, timestamp) == expected
        assert await (await world.broker()).list_offset(P0, timestamp) == expected
    assert await fresh.list_offset(P0, MAX_TIMESTAMP) == FoundOffset(T + 92, 8, 5)
    await world.plane.trimming.delete_records({P0: 4})
    assert await broker.list_offset(P0, 0) == FoundOffset(T + 4, 4, 4)
    assert await broker.list_offset(P0, T + 6) == FoundOffset(T + 90, 6, 5)
    await world.plane.trimming.delete_records({P0: 7})
    assert await broker.list_offset(P0, 0) == FoundOffset(T + 91, 7, 5)


async def test_the_newest_record_may_be_a_converted_one(world: ConvertingWorld) -> None:
    await world.lake.write(Write(P0, records=2, timestamp=T + 50))
    await world.convert(P0, 9)
    broker = await world.broker()
    assert await broker.list_offset(P0, MAX_TIMESTAMP) == FoundOffset(T + 92, 8, 5)
    await world.lake.write(Write(P0, records=2, timestamp=T + 92))
    assert await broker.list_offset(P0, MAX_TIMESTAMP) == FoundOffset(T + 92, 8, 5)
    await world.lake.write(Write(P0, records=2, timestamp=T + 93))
    assert await broker.list_offset(P0, MAX_TIMESTAMP) == FoundOffset(T + 93, 13, 5)
    await world.convert(P0, 15)
    assert await broker.list_offset(P0, MAX_TIMESTAMP) == FoundOffset(T + 93, 13, 5)
    assert await broker.list_offset(P0, T + 93) == FoundOffset(T + 93, 13, 5)
    assert (await broker.list_offset(P0, EARLIEST_LOCAL)).offset == 15


@pytest.mark.parametrize(("timestamp", "expected"), [(T + 4, FoundOffset(T + 4, 4, 4)), (T + 80, (T + 90, 6, 5))])
async def test_records_that_are_converted_during_a_search_are_found(
    world: ConvertingWorld, timestamp: int, expected: tuple[int, int, int]
) -> None:
    """The search has found a row, and its object is gone before it is loaded."""
    broker = await world.broker(NO_CACHE)
    gate = world.lake.objects.block("get_range", times=1)
    searching = asyncio.create_task(broker.list_offset(P0, timestamp))
    await gate.wait_reached()
    await world.convert(P0, 9)
    gate.release()
    assert await searching == expected


async def test_a_search_for_the_newest_survives_the_conversion_of_its_row(world: ConvertingWorld) -> None:
    broker = await world.broker(NO_CACHE)
    gate = world.lake.objects.block("get_range", times=1)
    searching = asyncio.create_task(broker.list_offset(P0, MAX_TIMESTAMP))
    await gate.wait_reached()
    await world.convert(P0, 9)
    gate.release()
    assert await searching == FoundOffset(T + 92, 8, 5)


async def test_an_object_that_is_lost_is_an_error_and_not_an_endless_search(world: ConvertingWorld) -> None:
    broker = await world.broker(NO_CACHE)
    await world.lake.objects.delete([one.key async for one in world.lake.objects.list("wal/")])
    with pytest.raises(KafkaStorageError, match="is not in the object store"):
        await broker.list_offset(P0, 0)
    with pytest.raises(KafkaStorageError, match="is not in the object store"):
        await broker.list_offset(P0, MAX_TIMESTAMP)


async def test_a_broker_without_remote_storage_refuses_rather_than_skip_records(world: ConvertingWorld) -> None:
    await world.convert(P0, 6)
    broker = await world.broker(has_remote=False)
    for timestamp in (EARLIEST, 0, T + 91, MAX_TIMESTAMP):
        with pytest.raises(KafkaStorageError, match=r"remote\.log\.storage\.system\.enable has to be true"):
            await broker.list_offset(P0, timestamp)
    assert await broker.list_offset(P0, LATEST_TIERED) == FoundOffset(-1, 5, -1)
    assert await broker.list_offset(P0, EARLIEST_LOCAL) == FoundOffset(-1, 6, 5)
    assert await broker.list_offset(P0, LATEST) == FoundOffset(-1, 9, 5)


async def test_the_suffix_of_a_switched_log_answers_from_its_boundary_on(tmp_path: Path) -> None:
    async with open_converting(tmp_path, create=False) as world:
        await switched(world.plane, 100, log_start=20)
        world.boundaries[P] = 100
        await world.lake.write(Write(P, records=3, timestamp=T, step_ms=1), leader_epoch=7)
        await world.lake.write(Write(P, records=3, timestamp=T + 3, step_ms=1), leader_epoch=8)
        await world.convert(P, 103)
        broker = await world.broker()
        assert await broker.list_offset(P, EARLIEST) == FoundOffset(-1, 100, 7)
        assert await broker.list_offset(P, EARLIEST_LOCAL) == FoundOffset(-1, 103, 8)
        assert await broker.list_offset(P, LATEST_TIERED) == FoundOffset(-1, 102, 7)
        assert await broker.list_offset(P, 0) == FoundOffset(T, 100, 7)
        assert await broker.list_offset(P, T + 2) == FoundOffset(T + 2, 102, 7)
        assert await broker.list_offset(P, T + 4) == FoundOffset(T + 4, 104, 8)
