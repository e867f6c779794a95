"""The reader on real logs and a real store: whole batches, several partitions at once, memory, and reading ahead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.errors import KafkaStorageError, OffsetOutOfRange
from strandline.log import FileSlice
from strandline.reads import ReadResult
from strandline.records import iter_headers
from strandline.remote.indexes import RemoteIndexes
from strandline.remote.indexes import segment as segment_indexes
from strandline.remote.quota import RateQuota
from strandline.remote.reader import RemoteReaderLimits
from strandline.testing.clock import VirtualClock
from tests.reads import found
from tests.remote.reader.consuming import UNCOMMITTED, Consumer, bytes_of, request
from tests.remote.reader.world import BATCH, PER_SEGMENT, World, open_world


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as world:
        yield world


def offsets(data: bytes) -> list[int]:
    return [header.base_offset for _, header in iter_headers(data)]


def log_reads(world: World) -> int:
    return sum(call.operation == "get_range" for call in world.store.calls)


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
async def test_a_consumer_reads_through_all_remote_segments_into_the_local_one(
    world: World, *, has_files: bool
) -> None:
    log = await world.add_log(segments=4)
    reader = await world.reader(has_files=has_files)
    consumer = Consumer(reader, log, UNCOMMITTED, 5 * BATCH)
    assert await consumer.visible(0) == list(range(4 * PER_SEGMENT + 1))


async def test_large_indexes_that_are_read_in_turn_get_coarser_and_are_not_brought_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_indexes, "THIN_POSITIONS", 2)
    log = await world.add_log(segments=8, value_bytes=5000, per_segment=60)
    memory = world.indexes._positions
    memory.max_bytes = 10_500  # eight whole ones would take 13,600
    reader = await world.reader(has_files=True)
    for _ in range(2):
        assert await Consumer(reader, log, UNCOMMITTED, 20_000).visible(0) == list(range(8 * 60 + 1))
        held = [segment.indexes for segment in reader._segments._open.values()]
        assert all(memory.get(segment.id) is segment.indexes for segment in reader._segments._open.values())
        assert memory.bytes <= memory.max_bytes
    status = world.indexes.status()
    assert (len(held), status.fetches, status.disk_hits) == (8, 8, 0)
    assert not all(isinstance(each, RemoteIndexes) and each.is_dense for each in held)


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
async def test_answers_end_with_a_whole_batch(world: World, *, has_files: bool) -> None:
    log = await world.add_log(value_bytes=5000)  # every batch is in the index
    reader = await world.reader(has_files=has_files)
    (answer,) = await reader.read([request(log, 3, max_bytes=17_000)], max_bytes=1 << 20)
    result = found(answer)
    data = bytes_of(result.records)
    assert offsets(data) == [3, 4, 5]
    assert sum(header.size for _, header in iter_headers(data)) == len(data)
    assert (result.high_watermark, result.log_start_offset) == (log.high_watermark, 0)


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
async def test_one_batch_of_a_request_may_be_larger_than_the_limits(world: World, *, has_files: bool) -> None:
    logs = [await world.add_log(value_bytes=5000) for _ in range(3)]
    reader = await world.reader(has_files=has_files)
    requests = [request(log, 0, max_bytes=100) for log in logs]
    for results in (
        await reader.read(requests, max_bytes=1 << 20),
        await reader.read(requests, max_bytes=1 << 20),  # now everything is at hand
    ):
        assert [offsets(bytes_of(found(result).records)) for result in results] == [[0], [], []]
    results = await reader.read(requests, max_bytes=1 << 20, min_one_message=False)
    assert [found(result).records for result in results] == [None] * 3


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
async def test_what_comes_too_late_for_its_client_is_kept_and_counted_when_it_is_given(
    world: World, *, has_files: bool
) -> None:
    log = await world.add_log()
    quota = RateQuota(1 << 30, windows=11, window_seconds=1, clock=world.clock)
    reader = await world.reader(has_files=has_files, quota=quota)
    (late,) = await reader.read([request(log, 0)], max_bytes=1 << 20, is_wanted=lambda: False)
    assert (found(late).records, found(late).high_watermark) == (None, log.high_watermark)
    assert reader.status().topics == {}
    again = found(reader.read_now(request(log, 0), min_one_message=True))
    counted = reader.status().topics["orders"]
    assert (counted.requests, counted.bytes, counted.errors) == (1, len(bytes_of(again.records)), 0)


async def test_the_right_to_a_large_batch_goes_to_the_first_that_has_one(world: World) -> None:
    broken, fine = [await world.add_log(value_bytes=5000) for _ in range(2)]
    for segment in world.segments(broken):
        world.object_of(segment).unlink()
    reader = await world.reader()
    results = await reader.read([request(broken, 0, 100), request(fine, 0, 100)], max_bytes=1 << 20)
    assert isinstance(results[0], KafkaStorageError)
    assert offsets(bytes_of(found(results[1]).records)) == [0]


async def test_partitions_share_the_limit_of_a_request(world: World) -> None:
    logs = [await world.add_log(value_bytes=5000) for _ in range(3)]
    reader = await world.reader()
    results = await reader.read([request(log, 0) for log in logs], max_bytes=36_000)
    assert [offsets(bytes_of(found(result).records)) for result in results] == [[0, 1]] * 3


async def test_all_partitions_of_a_request_are_read_at_the_same_time(world: World) -> None:
    logs = [await world.add_log() for _ in range(4)]
    reader = await world.reader()
    gate = world.store.block("get_range")
    reading = asyncio.create_task(reader.read([request(log, 0) for log in logs], max_bytes=1 << 20))
    async with asyncio.timeout(20):
        while log_reads(world) < 4:
            await asyncio.to_thread(lambda: None)
    gate.release()
    assert all(found(result).records is not None for result in await reading)


async def test_a_read_that_is_given_up_goes_on_into_the_cache(world: World) -> None:
    log = await world.add_log()
    reader = await world.reader()
    gate = world.store.block("get_range")
    reading = asyncio.create_task(reader.read([request(log, 0)], max_bytes=1 << 20))
    await gate.wait_reached()
    reading.cancel()
    await asyncio.wait((reading,))
    gate.release()
    async with asyncio.timeout(20):
        while (result := reader.read_now(request(log, 0), min_one_message=True)) is None:
            await asyncio.to_thread(lambda: None)
    assert offsets(bytes_of(found(result).records)) == list(range(PER_SEGMENT))
    assert log_reads(world) == 1


async def test_readers_of_the_same_records_share_one_read_of_the_store(world: World) -> None:
    log = await world.add_log()
    reader = await world.reader()
    gate = world.store.block("get_range")
    readings = [asyncio.create_task(reader.read([request(log, at)], max_bytes=1 << 20)) for at in (0, 0, 0)]
    await gate.wait_reached()
    assert reader.status().running == 1
    gate.release()
    answers = [bytes_of(found((await reading)[0]).records) for reading in readings]
    assert answers == [answers[0]] * 3
    assert log_reads(world) == 1


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
async def test_a_consumer_that_catches_up_finds_its_records_at_hand(world: World, *, has_files: bool) -> None:
    log = await world.add_log(segments=6, per_segment=100)
    reader = await world.reader(has_files=has_files)
    consumer = Consumer(reader, log, UNCOMMITTED, 10 * BATCH)
    assert await consumer.visible(0) == list(range(601))
    assert consumer.remote_answers >= 60
    assert consumer.immediate_answers > 0.7 * consumer.remote_answers
    if not has_files:  # every byte came once, in reads that are larger than the answers
        status = reader.status()
        assert status.storage_bytes == sum(segment.segment_size_in_bytes for segment in world.segments(log))
        assert status.storage_requests < consumer.remote_answers


async def test_only_the_range_that_is_needed_is_read_from_the_store(world: World) -> None:
    log = await world.add_log(segments=1, per_segment=1000)
    reader = await world.reader()
    await reader.read([request(log, 500, max_bytes=200_000)], max_bytes=1 << 20)
    assert 190_000 < reader.status().storage_bytes <= 210_000


async def test_memory_stays_within_its_limit(world: World) -> None:
    log = await world.add_log(segments=4, per_segment=600)
    limit = 1 << 20
    reader = await world.reader(RemoteReaderLimits(cache_max_bytes=limit))
    held = []
    for offset in range(0, 2400, 150):
        (result,) = await reader.read([request(log, offset, max_bytes=150_000)], max_bytes=1 << 20)
        held.append((offset, found(result).records))
        assert reader.status().cache_bytes <= limit
    for offset, records in held:  # what is being sent stays, whatever the cache has dropped
        assert offsets(bytes_of(records))[0] == offset


async def test_a_large_request_gets_a_part_if_memory_is_small(world: World) -> None:
    logs = [await world.add_log(segments=1, per_segment=1200) for _ in range(3)]
    reader = await world.reader(RemoteReaderLimits(cache_max_bytes=1 << 20))
    results = await reader.read([request(log, 0, max_bytes=1 << 20) for log in logs], max_bytes=50 << 20)
    sizes = [len(bytes_of(found(result).records)) for result in results]
    assert all(300_000 < size <= 350_000 for size in sizes)


async def test_too_many_reads_that_wait_are_refused(world: World) -> None:
    logs = [await world.add_log(segments=1) for _ in range(4)]
    reader = await world.reader(RemoteReaderLimits(parallel_reads=1, max_pending=1))
    gate = world.store.block("get_range")
    readings = [asyncio.create_task(reader.read([request(log, 0)], max_bytes=1 << 20)) for log in logs]
    await gate.wait_reached()
    async with asyncio.timeout(20):
        while sum(reading.done() for reading in readings) < 2:
            await asyncio.to_thread(lambda: None)
    refused = [reading.result()[0] for reading in readings if reading.done()]
    assert all(isinstance(error, KafkaStorageError) for error in refused)
    assert "remote.log.reader.max.pending.tasks" in str(refused[0])
    gate.release()
    answers = await asyncio.gather(*readings)
    assert sum(isinstance(result, ReadResult) for (result,) in answers) == 2


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
async def test_without_quota_left_there_is_nothing_and_no_error(world: World, *, has_files: bool) -> None:
    log = await world.add_log()
    clock = VirtualClock()
    quota = RateQuota(1000, windows=11, window_seconds=1, clock=clock)
    reader = await world.reader(has_files=has_files, quota=quota)
    first = request(log, 0, max_bytes=20_000)
    assert found((await reader.read([first], max_bytes=1 << 20))[0]).records is not None
    (result,) = await reader.read([request(log, PER_SEGMENT)], max_bytes=1 << 20)
    assert (found(result).records, found(result).high_watermark) == (None, log.high_watermark)
    assert reader.status().throttled == 1
    clock.move(60)
    (result,) = await reader.read([request(log, PER_SEGMENT)], max_bytes=1 << 20)
    assert found(result).records is not None


async def test_a_file_that_is_deleted_while_it_is_sent_is_sent_to_its_end(world: World) -> None:
    log = await world.add_log()
    reader = await world.reader(has_files=True)
    (answer,) = await reader.read([request(log, 0)], max_bytes=1 << 20)
    result = found(answer)
    assert isinstance(result.records, FileSlice)
    segment = world.segments(log)[0]
    world.object_of(segment).unlink()
    reader.forget([segment.segment_id])
    assert offsets(bytes_of(result.records)) == list(range(PER_SEGMENT))
    assert reader.status().open_segments == 0


async def test_an_offset_that_neither_tier_has_is_out_of_range(world: World) -> None:
    log = await world.add_log()
    reader = await world.reader()
    (result,) = await reader.read([request(log, 10_000)], max_bytes=1 << 20)
    assert isinstance(result, OffsetOutOfRange)
    now = reader.read_now(request(log, 10_000), min_one_message=True)
    assert isinstance(now, OffsetOutOfRange)


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
async def test_where_a_segment_has_no_batch_any_more_the_next_one_goes_on(world: World, *, has_files: bool) -> None:
    log = await world.add_log(missing_bytes=2 * BATCH)
    reader = await world.reader(has_files=has_files)
    missing = {18, 19, 38, 39, 58, 59}
    for start in (0, 18, 19, 39, 58):  # behind the last one comes the local log
        consumer = Consumer(reader, log, UNCOMMITTED, 5 * BATCH)
        assert await consumer.visible(start) == [offset for offset in range(start, 61) if offset not in missing]
