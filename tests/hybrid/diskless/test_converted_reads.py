"""Reads of diskless logs whose older records were converted into remote segments, by brokers that know it or do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.diskless.reader import DisklessReaderLimits
from strandline.diskless.values import BelowReadBoundary
from strandline.errors import KafkaStorageError, OffsetOutOfRange
from strandline.hybrid.diskless.converted import READY_SECONDS
from strandline.reads import FetchIsolation
from strandline.testing.clock import VirtualClock
from tests.controlplane.switching import P, switched
from tests.diskless.reader.lake import P0, P1, Write, data_of
from tests.hybrid.diskless.converting import MANY, ConvertingWorld, ReadingBroker, open_converting
from tests.reads import found
from tests.waiting import until

NO_CACHE = DisklessReaderLimits(cache_max_bytes=0)


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[ConvertingWorld]:
    async with open_converting(tmp_path) as world:
        yield world


async def write_rows(world: ConvertingWorld, rows: int, *, epoch: int = 3, broker: ReadingBroker | None = None) -> None:
    """Rows of three records in two batches, each in an object of its own."""
    reader = None if broker is None else broker.reader
    for _ in range(rows):
        await world.lake.write(Write(P0, records=2), Write(P0, records=1), leader_epoch=epoch, reader=reader)


async def test_converted_records_come_from_segments_and_the_others_from_rows(world: ConvertingWorld) -> None:
    await write_rows(world, 2, epoch=3)
    await write_rows(world, 3, epoch=5)
    await world.convert(P0, 9)
    broker = await world.broker()
    for offset in range(15):
        assert await broker.read_all(P0, offset) == world.lake.expected(P0, offset)


@pytest.mark.parametrize("isolation", [FetchIsolation.HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED])
async def test_one_answer_ends_at_the_read_boundary_and_has_the_offsets_of_the_whole_log(
    world: ConvertingWorld, isolation: FetchIsolation
) -> None:
    await write_rows(world, 4)
    await world.convert(P0, 6)
    await world.plane.trimming.delete_records({P0: 1})
    broker = await world.broker()
    for _ in range(2):  # the first read hears of the boundary from the control plane, the second knows it
        result = found(await broker.answer(P0, 1, isolation=isolation))
        assert data_of(result) == world.lake.expected(P0, 0)[: len(data_of(result))]
        assert (result.high_watermark, result.last_stable_offset, result.log_start_offset) == (12, 12, 1)
        assert result.aborted_transactions == ([] if isolation is FetchIsolation.TXN_COMMITTED else None)
        assert len(data_of(result)) == len(world.lake.expected(P0, 0)) // 2


async def test_a_broker_that_knows_the_boundary_asks_the_control_plane_no_more(world: ConvertingWorld) -> None:
    await write_rows(world, 4)
    await world.convert(P0, 6)
    broker = await world.broker()
    await broker.answer(P0, 0)
    queries = broker.reader.status().queries
    for offset in range(6):
        assert data_of(await broker.answer(P0, offset))
    assert broker.reader.status().queries == queries


async def test_what_is_in_memory_is_served_from_there(world: ConvertingWorld) -> None:
    broker = await world.broker()
    await write_rows(world, 4, broker=broker)
    await world.convert(P0, 6)
    requests = world.remote_objects.count()
    assert await broker.read_all(P0, 0) == world.lake.expected(P0, 0)
    assert world.remote_objects.count() == requests
    assert broker.reader.status().requests == 0


async def test_a_broker_with_old_rows_goes_on_in_segments(world: ConvertingWorld) -> None:
    """It has found rows, and their objects are gone when it loads them."""
    await write_rows(world, 4)
    broker = await world.broker(NO_CACHE)
    gate = world.lake.objects.block("get_range", times=1)
    reading = asyncio.create_task(broker.answer(P0, 3))
    await gate.wait_reached()
    await world.convert(P0, 6)
    gate.release()
    assert data_of(await reading) == world.lake.expected(P0, 3, len(world.lake.expected(P0, 3)) // 3)
    assert await broker.read_all(P0, 0) == world.lake.expected(P0, 0)


async def test_an_object_that_is_lost_stays_an_error(world: ConvertingWorld) -> None:
    await write_rows(world, 2)
    broker = await world.broker(NO_CACHE)
    await world.lake.objects.delete([one.key async for one in world.lake.objects.list("wal/")])
    error = await broker.answer(P0, 0)
    assert isinstance(error, KafkaStorageError)
    assert "is not in the object store" in str(error)


async def test_a_log_that_is_converted_to_its_end_is_read_and_waited_for(world: ConvertingWorld) -> None:
    await write_rows(world, 2)
    await world.convert(P0, 6)
    broker = await world.broker()
    assert await broker.read_all(P0, 0) == world.lake.expected(P0, 0)
    await write_rows(world, 1)
    other = await world.broker()
    assert await other.read_all(P0, 2) == world.lake.expected(P0, 2)


async def test_reads_wait_for_remote_log_metadata_that_is_behind(world: ConvertingWorld) -> None:
    """The control plane tells the boundary before this broker has read the end of the metadata."""
    await write_rows(world, 4)
    await world.convert(P0, 6)
    broker = await world.broker()
    await broker.answer(P0, 0)
    hidden, world.topic.values[0] = world.topic.values[0], world.topic.values[0].copy()
    other = await world.broker()
    for value in hidden[-2:]:
        world.topic.values[0].remove(value)
    reading = asyncio.create_task(other.answer(P0, 0))
    await until(lambda: other.reader.read_boundary(P0) == 6)
    assert not reading.done()
    world.topic.values[0] += hidden[-2:]
    world.topic.wake()
    assert data_of(await reading) == data_of(await broker.answer(P0, 0))


async def test_metadata_that_does_not_come_is_an_error_upon_which_clients_ask_again(world: ConvertingWorld) -> None:
    await write_rows(world, 4)
    await world.move_boundary(P0, 6)  # no segment has these offsets
    clock = VirtualClock()
    broker = await world.broker(clock=clock)
    await write_rows(world, 1)
    reading = asyncio.create_task(broker.answer(P0, 0))
    while not reading.done():
        await clock.advance(0.1)
        await asyncio.to_thread(lambda: None)
    assert clock.monotonic() >= READY_SECONDS
    error = await reading
    assert type(error) is KafkaStorageError
    assert "Offset 0 of" in str(error)
    assert "is in a remote segment" in str(error)


async def test_a_broker_without_remote_storage_names_the_setting(world: ConvertingWorld) -> None:
    await write_rows(world, 4)
    await world.convert(P0, 6)
    broker = await world.broker(has_remote=False)
    for _ in range(2):
        error = await broker.answer(P0, 0)
        assert type(error) is KafkaStorageError
        assert "remote.log.storage.system.enable has to be true" in str(error)
    assert await broker.read_all(P0, 6) == world.lake.expected(P0, 6)


async def test_deleted_records_are_out_of_range_and_never_records_that_exist(world: ConvertingWorld) -> None:
    """Also if this broker hears of the deletion only when a segment is gone."""
    await write_rows(world, 4)
    first = await world.convert(P0, 6)
    await world.convert(P0, 9)
    broker = await world.broker()
    assert await broker.read_all(P0, 0) == world.lake.expected(P0, 0)
    await world.plane.trimming.delete_records({P0: 7})
    await world.delete_segment(first)
    await until(lambda: len(broker.metadata.list_remote_log_segments(P0)) == 1)
    for offset in (0, 5, 6):
        assert type(await broker.answer(P0, offset)) is OffsetOutOfRange
    result = found(await broker.answer(P0, 7))
    assert result.log_start_offset == 7
    assert await broker.read_all(P0, 7) == world.lake.expected(P0, 7)


async def test_a_segment_that_is_lost_is_an_error_and_not_out_of_range(world: ConvertingWorld) -> None:
    await write_rows(world, 4)
    first = await world.convert(P0, 6)
    await world.convert(P0, 9)
    broker = await world.broker()
    await broker.answer(P0, 6)
    await world.delete_segment(first)  # although the log begins at 0
    await until(lambda: len(broker.metadata.list_remote_log_segments(P0)) == 1)
    assert type(await broker.answer(P0, 0)) is KafkaStorageError
    assert await broker.read_all(P0, 6) == world.lake.expected(P0, 6)


async def test_partitions_of_both_kinds_share_a_request(world: ConvertingWorld) -> None:
    for _ in range(3):
        await world.lake.write(Write(P0, records=2), Write(P1, records=2))
    await world.convert(P0, 4)
    broker = await world.broker(NO_CACHE)
    await broker.answer(P0, 0)
    size = len(world.lake.model[P0][0].data)
    for limit in (MANY, 3 * size, 2 * size, 1):
        answers = await broker.answers([(P0, 0, MANY), (P1, 0, MANY), (P0, 5, MANY)], limit)
        parts = [data_of(answer) for answer in answers]
        assert all(
            world.lake.expected(partition, offset).startswith(part)
            for (partition, offset), part in zip([(P0, 0), (P1, 0), (P0, 5)], parts, strict=True)
        )
        assert sum(map(len, parts)) <= max(limit, size) + size  # rows always give a batch
        assert any(parts)
    stale = await world.broker(NO_CACHE)
    parts = [data_of(answer) for answer in await stale.answers([(P0, 0, MANY), (P1, 0, MANY)])]
    assert parts == [world.lake.expected(P0, 0, 2 * size), world.lake.expected(P1, 0)]


async def test_reading_ahead_stops_at_the_boundary_and_begins_again_behind_it(world: ConvertingWorld) -> None:
    await write_rows(world, 30)
    broker = await world.broker()
    await broker.answer(P0, 0, 1)
    await world.convert(P0, 60)
    queries = broker.reader.status().queries
    size = len(world.lake.expected(P0, 0)) // 30
    assert await broker.read_all(P0, 0, 2 * size) == world.lake.expected(P0, 0)
    assert broker.reader.status().queries - queries < 15


async def test_records_below_the_first_boundary_are_the_leaders(tmp_path: Path) -> None:
    """A topic that was classic: what lies below B0 is not read as converted, whatever the read boundary is."""
    async with open_converting(tmp_path, create=False) as world:
        await switched(world.plane, 100, log_start=20)
        world.boundaries[P] = 100
        world.lake.model[P] = []
        await world.lake.write(Write(P, records=3))
        await world.lake.write(Write(P, records=3))
        await world.convert(P, 103)
        broker = await world.broker()
        for _ in range(2):
            assert isinstance(await broker.answer(P, 99), BelowReadBoundary)
            assert data_of(await broker.answer(P, 100)) == world.lake.expected(P, 100, 1)
        assert await broker.read_all(P, 100) == world.lake.expected(P, 100)
        log = broker.log(P)
        assert (log.log_start_offset, log.local_log_start_offset, log.high_watermark) == (100, 103, 106)
        assert log.whole().log_start_offset == 20
