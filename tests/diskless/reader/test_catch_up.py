"""Consumers that catch up over many small objects: one call reads many, one block holds many rows, and all is right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.controlplane import BatchRow, FoundBatches
from strandline.diskless.reader import DisklessReaderLimits
from strandline.diskless.reader.readahead import ROW_COST, until_one_file
from strandline.diskless.values import DisklessRead
from strandline.records import TimestampType
from tests.diskless.batches import TOPIC_A
from tests.diskless.reader.catching import MIB, Consumer, fetch, small_objects
from tests.diskless.reader.lake import LONG_AGO, P0, PARTITIONS, Lake, Write, data_of, open_lake, read_one
from tests.partitions import id_partition


@pytest_asyncio.fixture
async def lake() -> AsyncIterator[Lake]:
    async with open_lake() as opened:
        yield opened


class Trouble(NamedTuple):
    """What goes wrong with reads of objects."""

    kind: str
    skip: int
    times: int


troubles = st.builds(Trouble, st.sampled_from(["fail", "delay", "lose"]), st.integers(0, 30), st.integers(1, 5))
objects = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 300)), min_size=1, max_size=6),
    min_size=1,
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(
    written=objects,
    together=st.sampled_from([1, 3, 64]),
    cache=st.sampled_from([0, 20_000, 400_000, 1 << 26]),
    max_bytes=st.sampled_from([300, 2000, MIB]),
    trouble=st.lists(troubles, max_size=4),
    trims=st.lists(st.tuples(st.integers(0, 3), st.floats(0, 0.9), st.booleans()), max_size=3),
    kind=st.sampled_from(TimestampType),
)
def test_every_consumer_sees_exactly_the_committed_records(
    written: list[list[tuple[int, int, int]]],
    together: int,
    cache: int,
    max_bytes: int,
    trouble: list[Trouble],
    trims: list[tuple[int, float, bool]],
    kind: TimestampType,
) -> None:
    async def example() -> None:
        async with open_lake() as lake:
            lake.objects.ranges_together = together
            for batches in written:
                await lake.write(
                    *(
                        Write(PARTITIONS[number], records, size, LONG_AGO, timestamp_type=kind)
                        for number, records, size in batches
                    )
                )
            limits = DisklessReaderLimits(cache_max_bytes=cache, parallel_reads=2, parallel_lagging_reads=1)
            reader = lake.reader(limits)
            for one in trouble:
                _cause(lake, one)
            consumers = [Consumer(lake, reader, chosen) for chosen in (PARTITIONS[:4], PARTITIONS[:4], PARTITIONS[1:3])]
            async with reader.running():
                runs = [asyncio.ensure_future(consumer.run(max_bytes)) for consumer in consumers]
                for number, part, is_told in trims:
                    await lake.clock.advance(0.01)
                    offset = round(lake.high_watermark(PARTITIONS[number]) * part)
                    await lake.plane.trimming.delete_records({PARTITIONS[number]: offset})
                    if is_told:
                        reader.log_start_moved(PARTITIONS[number], offset)
                while not all(run.done() for run in runs):
                    await lake.clock.advance(0.01)
                await asyncio.gather(*runs)
            for consumer in consumers:
                assert all(at == lake.high_watermark(one) for one, at in consumer.offsets.items())

    with asyncio.Runner() as runner:
        runner.run(asyncio.wait_for(example(), 60))


def _cause(lake: Lake, trouble: Trouble) -> None:
    kind, skip, times = trouble
    if kind == "fail":
        lake.objects.fail("get_range", skip=skip, times=times)
    elif kind == "delay":
        lake.objects.delay("get_range", 0.03, skip=skip, times=times)
    else:
        lake.objects.lose_answer("get_range", skip=skip, times=times)


# What it costs


@pytest.mark.parametrize("together", [1, 64])
async def test_each_object_is_read_once_for_all_partitions(lake: Lake, together: int) -> None:
    await small_objects(lake, 1200)
    lake.objects.ranges_together = together
    reader = lake.reader()
    consumer = Consumer(lake, reader, PARTITIONS[:8])
    await consumer.run(MIB)
    assert lake.gets <= 1200 + 20, "one for each object, and few for those where reads and reading ahead met"
    assert reader.status().queries <= 1200 * 8 // 400, "one query finds the rows of hundreds of objects"


async def test_more_than_a_thousand_partitions_that_are_read_in_turn_share_their_objects(lake: Lake) -> None:
    partitions = [id_partition(TOPIC_A, number) for number in range(1100)]
    await lake.create(partitions)
    for _ in range(12):
        await lake.write(*(Write(partition, size=60, timestamp=LONG_AGO) for partition in partitions))
    lake.objects.ranges_together = 64
    reader = lake.reader()
    at_once, size = 110, len(lake.model[P0][0].data)
    for offset in range(12):
        for first in range(0, len(partitions), at_once):
            requests = [DisklessRead(one, offset, size) for one in partitions[first : first + at_once]]
            missing = [request for request in requests if reader.read_now(request, min_one_message=True) is None]
            if missing:
                await reader.read(missing, max_bytes=MIB)
    by_itself = 12 * len(partitions) // at_once
    assert reader.status().queries <= by_itself // 2
    assert lake.gets <= by_itself * 3 // 4


async def test_rows_that_would_evict_those_ahead_of_others_are_not_read_ahead(lake: Lake) -> None:
    """The share of each stream in the memory is smaller than a row."""
    for _ in range(8):
        await lake.write(*(Write(partition, size=20_000, timestamp=LONG_AGO) for partition in PARTITIONS))
    reader = lake.reader(DisklessReaderLimits(cache_max_bytes=1_000_000))
    async with reader.running():
        for offset in range(8):
            for partition in PARTITIONS:
                await read_one(reader, partition, offset, 1)
                await lake.settled(reader)
    size = sum(len(batch.data) for one in PARTITIONS for batch in lake.model[one])
    assert reader.status().bytes_read < 1.1 * size, "hardly any is read twice"


async def test_small_rows_become_few_blocks(lake: Lake) -> None:
    await small_objects(lake, 640)
    lake.objects.ranges_together = 64
    reader = lake.reader()
    await Consumer(lake, reader, PARTITIONS[:8]).run(MIB)
    assert reader.status().cache.cold_blocks <= 640 * 8 // 20


async def test_what_is_read_ahead_stays_within_its_part_of_the_cache(lake: Lake) -> None:
    """However far the consumer could go on: memory, and what is loading, are bounded."""
    await small_objects(lake, 600)
    reader = lake.reader(DisklessReaderLimits(cache_max_bytes=800_000))
    offsets = dict.fromkeys(PARTITIONS[:8], 0)
    size = len(lake.model[P0][0].data)
    for _ in range(3):
        for partition, answer in (await fetch(reader, offsets, 5 * size)).items():
            offsets[partition] += len(data_of(answer)) // size
        await lake.settled(reader)
    cold = reader.status().cache.cold_limit
    read = (reader.status().bytes_read // size) * (size + ROW_COST)
    consumed = sum(offsets.values()) * (size + ROW_COST)
    assert read - consumed <= cold, "half of the region ahead, one query beyond, and not the 600 objects that are there"
    assert reader.status().cache.cold_evicted == 0, "nothing is evicted before it was read"


# Which rows


def _row(file_id: int, offset: int) -> BatchRow:
    return BatchRow(offset, offset, file_id, f"file-{file_id}", 0, 10, TimestampType.CREATE_TIME, -1, 0, 0)


def _found(files: Sequence[int], high_watermark: int) -> FoundBatches:
    return FoundBatches(None, 0, high_watermark, tuple(_row(file, number) for number, file in enumerate(files)))


def test_rows_end_in_the_same_file_so_that_the_next_query_shares_objects() -> None:
    first, second = _found([1, 2, 3, 4], 100), _found([1, 3, 5, 6], 100)
    kept = until_one_file([(first, True), (second, True)])
    assert [[row.file_id for row in rows] for rows in kept] == [[1, 2, 3, 4], [1, 3]]


def test_a_stream_at_another_time_is_not_held_up_if_it_is_in_a_hurry() -> None:
    early, late = _found([1, 2, 3], 100), _found([50, 51, 52], 100)
    assert [len(rows) for rows in until_one_file([(early, True), (late, True)])] == [3, 3]
    assert [len(rows) for rows in until_one_file([(early, True), (late, False)])] == [3, 0]


def test_the_end_of_a_log_is_no_reason_to_cut_others_short() -> None:
    short, long = _found([1, 2], 2), _found([1, 2, 3, 4], 100)
    assert [len(rows) for rows in until_one_file([(short, True), (long, True)])] == [2, 4]
    assert until_one_file([(FoundBatches(None), True)]) == [()]
