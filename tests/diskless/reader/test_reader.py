"""The reader: what it answers, what it asks, and what it does when something is broken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from strandline.controlplane import FindBatches
from strandline.diskless.reader import DisklessReaderLimits
from strandline.diskless.values import DisklessRead
from strandline.errors import (
    CorruptMessage,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    StrandlineError,
)
from strandline.reads import ReadResult
from strandline.records import TimestampType, iter_headers
from strandline.testing.objects import ALWAYS
from tests.diskless.batches import NOON_MS, TOPIC_B
from tests.diskless.reader.lake import (
    LONG_AGO,
    P0,
    P1,
    P2,
    PARTITIONS,
    Lake,
    Write,
    data_of,
    open_lake,
    read_one,
    read_to_end,
)
from tests.partitions import id_partition
from tests.reads import found

MIB = 1 << 20


@pytest_asyncio.fixture
async def lake() -> AsyncIterator[Lake]:
    async with open_lake() as opened:
        yield opened


# Near the end


async def test_a_consumer_at_the_end_costs_no_query_and_no_request(lake: Lake) -> None:
    reader = lake.reader()
    for _ in range(20):
        await lake.write(Write(P0, records=2), Write(P1), reader=reader)
    for offset in range(40):
        result = reader.read_now(DisklessRead(P0, offset, MIB), min_one_message=True)
        assert data_of(result) == lake.expected(P0, offset)
        assert result is not None
        assert (result.high_watermark, result.log_start_offset) == (40, 0)
    nothing = found(reader.read_now(DisklessRead(P0, 40, MIB), min_one_message=True))
    assert nothing.records is None
    assert (nothing.high_watermark, nothing.log_start_offset) == (40, 0)
    assert reader.known_offsets(P0) == (40, 0)
    status = reader.status()
    assert (status.queries, status.requests) == (0, 0)


async def test_limits_are_kept_and_batches_are_whole(lake: Lake) -> None:
    reader = lake.reader()
    for _ in range(4):
        await lake.write(Write(size=100), Write(size=300), Write(size=50), reader=reader)
    for max_bytes in range(0, 3000, 37):
        for offset in (0, 1, 2, 5, 11):
            for min_one in (True, False):
                result = reader.read_now(DisklessRead(P0, offset, max_bytes), min_one_message=min_one)
                assert data_of(result) == lake.expected(P0, offset, max_bytes, min_one=min_one)


async def test_what_is_not_in_memory_is_not_answered_at_once(lake: Lake) -> None:
    await lake.write(Write(), Write())
    reader = lake.reader()
    assert reader.known_offsets(P0) is None
    assert reader.read_now(DisklessRead(P0, 0, MIB), min_one_message=True) is None
    await lake.write(Write(), reader=reader)
    assert reader.read_now(DisklessRead(P0, 0, MIB), min_one_message=True) is None
    assert data_of(reader.read_now(DisklessRead(P0, 2, MIB), min_one_message=True)) == lake.expected(P0, 2)
    beyond = reader.read_now(DisklessRead(P0, 4, MIB), min_one_message=True)
    assert beyond is None, "another broker may have committed; only the control plane knows"


async def test_a_read_stops_where_others_have_written_and_goes_on_there(lake: Lake) -> None:
    reader = lake.reader()
    await lake.write(Write(), reader=reader)
    await lake.write(Write(), Write())
    await lake.write(Write(), reader=reader)
    assert data_of(reader.read_now(DisklessRead(P0, 0, MIB), min_one_message=True)) == lake.model[P0][0].data
    assert data_of(await read_one(reader, P0, 1)) == lake.expected(P0, 1), "the last of them was in memory"
    assert reader.status().requests == 1
    assert data_of(reader.read_now(DisklessRead(P0, 0, MIB), min_one_message=True)) == lake.expected(P0, 0)


# From objects


@pytest.mark.parametrize("timestamp_type", list(TimestampType))
async def test_offsets_epoch_and_append_time_are_injected(lake: Lake, timestamp_type: TimestampType) -> None:
    await lake.write(Write(P1, records=4), leader_epoch=1)
    await lake.write(Write(P1, records=2, timestamp_type=timestamp_type), Write(P1), leader_epoch=7)
    reader = lake.reader()
    data = data_of(await read_one(reader, P1, 0))
    assert data == lake.expected(P1, 0)
    assert [(h.base_offset, h.leader_epoch) for _, h in iter_headers(data)] == [(0, 1), (4, 7), (6, 7)]


async def test_out_of_range_and_unknown_logs_are_errors_of_their_partition_alone(lake: Lake) -> None:
    await lake.write(Write(), Write())
    reader = lake.reader()
    unknown = id_partition(TOPIC_B, 0)
    requests = [DisklessRead(P0, 3, MIB), DisklessRead(unknown, 0, MIB), DisklessRead(P0, 1, MIB)]
    beyond, gone, good = await reader.read(requests, max_bytes=MIB)
    assert isinstance(beyond, OffsetOutOfRange)
    assert isinstance(gone, NotLeaderOrFollower)
    assert data_of(good) == lake.expected(P0, 1)


async def test_at_the_high_watermark_a_read_finds_nothing_and_no_error(lake: Lake) -> None:
    await lake.write(Write(), Write())
    reader = lake.reader()
    (result,) = await reader.read([DisklessRead(P0, 2, MIB)], max_bytes=MIB)
    assert data_of(result) == b""
    assert (found(result).high_watermark, found(result).log_start_offset) == (2, 0)


async def test_the_cost_of_a_read_does_not_grow_with_depth(lake: Lake) -> None:
    for _ in range(300):
        await lake.write(Write(P0), Write(P1))
    for offset in (0, 150, 290):
        reader = lake.reader(DisklessReaderLimits(cache_max_bytes=0))
        before = lake.gets
        first_size = len(lake.expected(P0, offset, 1))
        result = await read_one(reader, P0, offset, first_size)
        assert data_of(result) == lake.expected(P0, offset, 1)
        assert reader.status().queries == 1
        assert lake.gets == before + 1
        assert reader.status().bytes_read == first_size


async def test_partitions_that_lie_side_by_side_cost_one_request(lake: Lake) -> None:
    key = await lake.write(*(Write(partition, size=1000) for partition in PARTITIONS))
    reader = lake.reader()
    results = await reader.read([DisklessRead(partition, 0, MIB) for partition in PARTITIONS], max_bytes=MIB)
    for partition, result in zip(PARTITIONS, results, strict=True):
        assert data_of(result) == lake.expected(partition, 0)
    assert [call.keys for call in lake.objects.calls if call.operation == "get_range"] == [(key,)]
    assert reader.status().queries == 1


async def test_one_flight_for_each_row_however_many_want_it(lake: Lake) -> None:
    await lake.write(Write(), Write())
    gate = lake.objects.block("get_range")
    reader = lake.reader()
    reads = [asyncio.ensure_future(read_one(reader, P0, offset)) for offset in (0, 0, 1, 0)]
    await gate.wait_reached()
    await lake.clock.settle()
    gate.release()
    for offset, result in zip((0, 0, 1, 0), await asyncio.gather(*reads), strict=True):
        assert data_of(result) == lake.expected(P0, offset)
    assert lake.gets == 1


async def test_a_download_whose_reader_gave_up_goes_on_into_the_cache(lake: Lake) -> None:
    await lake.write(Write(), Write())
    gate = lake.objects.block("get_range")
    reader = lake.reader()
    read = asyncio.ensure_future(read_one(reader, P0, 0))
    await gate.wait_reached()
    read.cancel()
    with pytest.raises(asyncio.CancelledError):
        await read
    gate.release()
    await lake.settled(reader)
    assert data_of(reader.read_now(DisklessRead(P0, 0, MIB), min_one_message=True)) == lake.expected(P0, 0)
    assert lake.gets == 1


async def test_without_a_cache_everything_can_be_read_still(lake: Lake) -> None:
    reader = lake.reader(DisklessReaderLimits(cache_max_bytes=0))
    for _ in range(5):
        await lake.write(Write(), Write(), reader=reader)
    data, _ = await read_to_end(reader, P0, 0, 400)
    assert data == lake.expected(P0, 0)
    status = reader.status().cache
    assert (status.hot_bytes, status.cold_bytes) == (0, 0)
    (result,) = await reader.read([DisklessRead(P0, 0, MIB)], max_bytes=MIB)
    assert found(result).high_watermark == 10


# Trouble


async def test_a_missing_object_is_named_and_what_comes_before_it_is_read(lake: Lake) -> None:
    await lake.write(Write(), Write())
    lost = await lake.write(Write(), Write())
    await lake.write(Write())
    await lake.objects.delete([lost])
    reader = lake.reader()
    results = await reader.read(
        [DisklessRead(P0, 0, MIB), DisklessRead(P0, 3, MIB), DisklessRead(P0, 4, MIB)], max_bytes=MIB
    )
    assert data_of(results[0]) == b"".join(batch.data for batch in lake.model[P0][:2])
    assert isinstance(results[1], KafkaStorageError)
    assert lost in str(results[1])
    assert data_of(results[2]) == lake.model[P0][4].data


async def test_an_object_that_cannot_be_read_is_spoken_of_once_in_the_log(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    lost = await lake.write(Write(), Write())
    await lake.objects.delete([lost])
    reader = lake.reader()
    for _ in range(5):
        await reader.read([DisklessRead(P0, 0, MIB)], max_bytes=MIB)
    (line,) = [record.getMessage() for record in caplog.records if lost in record.getMessage()]
    assert "is not in the object store" in line
    assert "strandline fsck" in line


async def test_damaged_bytes_are_an_error_that_names_object_and_range(lake: Lake) -> None:
    key = await lake.write(Write(P0), Write(P1), Write(P2))
    damaged = bytearray(await lake.objects.get(key))
    middle = len(lake.model[P0][0].data) + 80
    damaged[middle] ^= 0xFF
    await lake.objects.put(key, [damaged])
    reader = lake.reader()
    first, second, third = await reader.read([DisklessRead(p, 0, MIB) for p in (P0, P1, P2)], max_bytes=MIB)
    assert lake.gets == 1
    assert data_of(first) == lake.expected(P0, 0)
    assert isinstance(second, CorruptMessage)
    assert key in str(second)
    assert data_of(third) == lake.expected(P2, 0)


async def test_an_object_that_was_cut_is_damaged(lake: Lake) -> None:
    key = await lake.write(Write(P0), Write(P1))
    whole = bytes(await lake.objects.get(key))
    await lake.objects.put(key, [whole[: len(lake.model[P0][0].data) + 10]])
    reader = lake.reader()
    first, second = await reader.read([DisklessRead(p, 0, MIB) for p in (P0, P1)], max_bytes=MIB)
    assert data_of(first) == lake.expected(P0, 0)
    assert isinstance(second, CorruptMessage)


async def test_a_store_that_is_down_is_an_error_until_it_is_back(lake: Lake) -> None:
    key = await lake.write(Write(), Write())
    reader = lake.reader()
    lake.objects.fail("get_range", times=ALWAYS)
    result = await read_one(reader, P0, 0)
    assert isinstance(result, KafkaStorageError)
    assert key in str(result)
    lake.objects.heal()
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)


async def test_without_the_database_memory_is_served_and_the_rest_is_an_error(lake: Lake) -> None:
    await lake.write(Write(P1), Write(P1))
    reader = lake.reader()
    await lake.write(Write(), Write(), reader=reader)
    await lake.store.close()
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)
    good, bad = await reader.read([DisklessRead(P0, 1, MIB), DisklessRead(P1, 0, MIB)], max_bytes=MIB)
    assert data_of(good) == lake.expected(P0, 1)
    assert isinstance(bad, KafkaStorageError)


# Sharing


async def test_no_partition_starves(lake: Lake) -> None:
    for _ in range(20):
        await lake.write(*(Write(partition, size=1000) for partition in PARTITIONS))
    reader = lake.reader()
    size = len(lake.model[P0][0].data)
    budget = 5 * size * len(PARTITIONS)
    results = await reader.read([DisklessRead(p, 0, MIB) for p in PARTITIONS], max_bytes=budget)
    for partition, result in zip(PARTITIONS, results, strict=True):
        assert data_of(result) == lake.expected(partition, 0, 5 * size)


async def test_what_one_does_not_want_goes_to_the_others(lake: Lake) -> None:
    for _ in range(20):
        await lake.write(Write(P0, size=1000), Write(P1, size=1000))
    await lake.write(Write(P2, size=1000))
    reader = lake.reader()
    size = len(lake.model[P0][0].data)
    requests = [DisklessRead(P0, 0, 3 * size), DisklessRead(P1, 0, MIB), DisklessRead(P2, 0, MIB)]
    results = await reader.read(requests, max_bytes=12 * size)
    assert [len(data_of(result)) // size for result in results] == [3, 8, 1]


async def test_shares_smaller_than_a_batch_still_fill_the_answer(lake: Lake) -> None:
    await lake.write(*(Write(partition, size=1000) for partition in PARTITIONS))
    reader = lake.reader()
    size = len(lake.model[P0][0].data)
    results = await reader.read([DisklessRead(p, 0, MIB) for p in PARTITIONS], max_bytes=4 * size)
    assert sum(len(data_of(result)) for result in results) == 4 * size


async def test_only_the_first_batch_may_exceed_the_limits(lake: Lake) -> None:
    await lake.write(Write(P1, size=5000), Write(P2, size=5000))
    reader = lake.reader()
    requests = [DisklessRead(P0, 0, MIB), DisklessRead(P1, 0, 100), DisklessRead(P2, 0, 100)]
    empty, first, second = await reader.read(requests, max_bytes=100)
    assert data_of(empty) == data_of(second) == b""
    assert data_of(first) == lake.expected(P1, 0)


async def test_a_read_loads_not_much_more_than_it_can_give(lake: Lake) -> None:
    await lake.write(*(Write(partition, size=50_000) for partition in PARTITIONS))
    reader = lake.reader()
    await reader.read([DisklessRead(p, 0, MIB) for p in PARTITIONS], max_bytes=100_000)
    assert reader.status().bytes_read <= 300_000


# Hot and cold


async def test_lagging_readers_do_not_evict_the_tail(lake: Lake) -> None:
    reader = lake.reader(DisklessReaderLimits(cache_max_bytes=400_000))
    for _ in range(40):
        await lake.write(Write(P1, size=20_000, timestamp=LONG_AGO))
    for _ in range(10):
        await lake.write(Write(P0, size=20_000), reader=reader)
    data, _ = await read_to_end(reader, P1, 0, 100_000)
    assert data == lake.expected(P1, 0)
    await lake.settled(reader)
    assert data_of(reader.read_now(DisklessRead(P0, 0, MIB), min_one_message=True)) == lake.expected(P0, 0)
    status = reader.status().cache
    assert status.hot_evicted == 0
    assert 0 < status.cold_bytes <= status.cold_limit == 100_000
    assert status.cold_evicted > 0


async def test_lagging_readers_do_not_take_the_turns_of_others(lake: Lake) -> None:
    reader = lake.reader(DisklessReaderLimits(parallel_reads=4, parallel_lagging_reads=2))
    for partition in PARTITIONS[1:8]:
        await lake.write(Write(partition, timestamp=LONG_AGO))
    await lake.write(Write(P0))
    gate = lake.objects.block("get_range", times=2)
    lagging = [asyncio.ensure_future(read_one(reader, partition, 0)) for partition in PARTITIONS[1:8]]
    await wait_for_gets(lake, 2)
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)
    assert lake.gets == 3, "five lagging reads wait for their turn, and the other one does not"
    gate.release()
    for partition, result in zip(PARTITIONS[1:8], await asyncio.gather(*lagging), strict=True):
        assert data_of(result) == lake.expected(partition, 0)


async def test_too_many_waiting_reads_are_refused(lake: Lake) -> None:
    reader = lake.reader(DisklessReaderLimits(parallel_reads=1, parallel_lagging_reads=0, cache_max_bytes=0))
    for _ in range(130):
        await lake.write(Write(size=10))
    gate = lake.objects.block("get_range")
    reads = [asyncio.ensure_future(read_one(reader, P0, offset, 1)) for offset in range(130)]
    async with asyncio.timeout(10):
        while (refused := sum(read.done() for read in reads)) < 130 - 101:
            await lake.clock.settle()
    assert refused == 130 - 101
    assert all(isinstance(read.result(), KafkaStorageError) for read in reads if read.done())
    gate.release()
    results = await asyncio.gather(*reads)
    assert sum(isinstance(result, StrandlineError) for result in results) == refused


async def test_one_reader_of_many_small_objects_leaves_room_for_others(lake: Lake) -> None:
    for _ in range(300):
        await lake.write(Write(P0, size=10))
    await lake.write(Write(P1))
    reader = lake.reader(DisklessReaderLimits(parallel_reads=1, parallel_lagging_reads=0))
    gate = lake.objects.block("get_range", times=1)
    large = asyncio.ensure_future(read_one(reader, P0, 0))
    await gate.wait_reached()
    small = asyncio.ensure_future(read_one(reader, P1, 0))
    await lake.clock.settle()
    gate.release()
    assert data_of(await small) == lake.expected(P1, 0)
    assert 40 <= len(data_of(await large)) // len(lake.model[P0][0].data) <= 60, "half of the room there was"
    data, _ = await read_to_end(reader, P0, 0)
    assert data == lake.expected(P0, 0)


# Reading ahead


@pytest.mark.parametrize("timestamp", [LONG_AGO, NOON_MS])
async def test_a_consumer_that_catches_up_finds_the_next_rows_in_memory(lake: Lake, timestamp: int) -> None:
    for _ in range(200):
        await lake.write(*(Write(partition, size=4000, timestamp=timestamp) for partition in PARTITIONS[:4]))
    reader = lake.reader()
    offset, waited, answered = 0, 0, 0
    while offset < 200:
        request = DisklessRead(P0, offset, 20_000)
        result: ReadResult | StrandlineError | None = reader.read_now(request, min_one_message=True)
        if result is None:
            waited += 1
            (result,) = await reader.read([request], max_bytes=20_000)
        answered += 1
        data = data_of(result)
        assert lake.expected(P0, offset, 20_000).startswith(data)
        offset += len(data) // len(lake.model[P0][0].data)
        await lake.settled(reader)
    assert answered <= 55
    assert waited <= 3
    assert reader.status().queries <= 6
    cache = reader.status().cache
    assert (cache.cold_bytes if timestamp == NOON_MS else cache.hot_bytes) == 0


async def test_partitions_read_together_are_read_ahead_together(lake: Lake) -> None:
    partitions = PARTITIONS[:8]
    for _ in range(60):
        await lake.write(*(Write(partition, size=4000, timestamp=LONG_AGO) for partition in partitions))
    reader = lake.reader()
    offsets = dict.fromkeys(partitions, 0)
    size = len(lake.model[P0][0].data)
    while min(offsets.values()) < 60:
        missing = []
        for partition in partitions:
            request = DisklessRead(partition, offsets[partition], 5 * size)
            now = reader.read_now(request, min_one_message=True)
            if now is None:
                missing.append(request)
            else:
                offsets[partition] += len(data_of(now)) // size
        for request, result in zip(missing, await reader.read(missing, max_bytes=MIB), strict=True):
            assert data_of(result)
            offsets[request.partition] += len(data_of(result)) // size
        await lake.settled(reader)
    assert set(offsets.values()) == {60}
    assert lake.gets <= 2 * 60, "about one request for each object, not one for each partition of it"


async def test_looking_twice_at_the_same_records_does_not_stop_reading_ahead(lake: Lake) -> None:
    for _ in range(100):
        await lake.write(Write(size=4000, timestamp=LONG_AGO))
    reader = lake.reader()
    size = len(lake.model[P0][0].data)
    waited = 0
    for offset in range(0, 100, 2):
        request = DisklessRead(P0, offset, 2 * size)
        if reader.read_now(request, min_one_message=True) is None:
            waited += 1
            await reader.read([request], max_bytes=2 * size)
        for _ in range(3):
            result = reader.read_now(request, min_one_message=True)
            assert data_of(result) == lake.expected(P0, offset, 2 * size)
        await lake.settled(reader)
    assert waited <= 3


async def test_streams_of_one_partition_are_told_apart(lake: Lake) -> None:
    for _ in range(100):
        await lake.write(Write(size=4000, timestamp=LONG_AGO))
    reader = lake.reader()
    size = len(lake.model[P0][0].data)
    waited = 0
    for step in range(0, 50, 2):
        for offset in (step, 50 + step):
            request = DisklessRead(P0, offset, 2 * size)
            if reader.read_now(request, min_one_message=True) is None:
                waited += 1
                await reader.read([request], max_bytes=2 * size)
            await lake.settled(reader)
    assert waited <= 6


async def test_nothing_is_read_ahead_for_readers_that_jump(lake: Lake) -> None:
    for _ in range(50):
        await lake.write(Write(size=4000, timestamp=LONG_AGO))
    reader = lake.reader()
    for offset in (40, 10, 30, 20):
        assert data_of(await read_one(reader, P0, offset, 4000)) == lake.expected(P0, offset, 4000)
        await lake.settled(reader)
    assert lake.gets == 4


# What changes under the reader


async def test_deleted_records_are_gone_from_memory_too(lake: Lake) -> None:
    reader = lake.reader()
    for _ in range(4):
        await lake.write(Write(records=5), reader=reader)
    reader.log_start_moved(P0, 12)
    with pytest.raises(OffsetOutOfRange):
        reader.read_now(DisklessRead(P0, 11, MIB), min_one_message=True)
    result = reader.read_now(DisklessRead(P0, 12, MIB), min_one_message=True)
    assert data_of(result) == lake.expected(P0, 12)
    assert result is not None
    assert result.log_start_offset == 12
    assert reader.status().cache.hot_blocks == 2
    reader.log_start_moved(P0, 3)
    assert reader.known_offsets(P0) == (20, 12)


async def test_a_deleted_topic_leaves_nothing_behind(lake: Lake) -> None:
    reader = lake.reader()
    await lake.write(Write(P0), Write(P1), reader=reader)
    reader.forget(P0)
    reader.forget(P0)
    assert reader.read_now(DisklessRead(P0, 0, MIB), min_one_message=True) is None
    status = reader.status()
    assert (status.partitions, status.cache.hot_blocks) == (1, 1)
    await lake.plane.lifecycle.delete_topics([P0.topic_id])
    result = await read_one(reader, P0, 0)
    assert isinstance(result, NotLeaderOrFollower)
    assert reader.status().partitions == 1


async def test_closing_ends_downloads_and_whoever_waits_for_them(lake: Lake) -> None:
    await lake.write(Write())
    gate = lake.objects.block("get_range")
    reader = lake.reader()
    async with reader.running():
        read = asyncio.ensure_future(read_one(reader, P0, 0))
        await gate.wait_reached()
    with pytest.raises(asyncio.CancelledError):
        await read
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "diskless-download"]


async def test_closing_ends_downloads_that_have_not_begun(lake: Lake) -> None:
    await lake.write(Write())
    (answer,) = await lake.plane.reads.find_batches([FindBatches(P0, 0, MIB)], max_rows=1)
    reader = lake.reader()
    async with reader.running():
        waiting = asyncio.ensure_future(reader.load(P0, answer.rows[0]))
        await lake.clock.sleep(0)  # one turn of the loop: the task of the download is there, and has not run yet
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def wait_for_gets(lake: Lake, count: int) -> None:
    """Until so many reads of objects have begun."""
    async with asyncio.timeout(10):
        while lake.gets < count:
            await lake.clock.settle()


def test_the_clock_of_these_tests_makes_fresh_what_is_written_now() -> None:
    assert DisklessReaderLimits().lagging_after_ms < NOON_MS - LONG_AGO
