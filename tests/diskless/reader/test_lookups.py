"""ListOffsets over diskless logs: ends, times, and what is read for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.diskless.reader import OffsetLookups
from strandline.errors import CorruptMessage, KafkaStorageError, RequestTimedOut, UnknownTopicOrPartition
from strandline.reads import NOTHING, FoundOffset
from strandline.records import Codec, TimestampType, read_records
from tests.diskless.batches import NOON_MS, TOPIC_B
from tests.diskless.reader.lake import P0, P1, Lake, Write, open_lake
from tests.partitions import id_partition


@pytest_asyncio.fixture
async def lake() -> AsyncIterator[Lake]:
    async with open_lake() as opened:
        yield opened


def lookups_of(lake: Lake) -> OffsetLookups:
    return OffsetLookups(lake.plane.reads, lake.reader())


def by_model(lake: Lake, timestamp: int, start: int = 0) -> FoundOffset:
    """The first record that is not older, by reading them all."""
    for batch in lake.model[P0]:
        for record in read_records(batch.data):
            if record.timestamp >= timestamp and record.offset >= start:
                return FoundOffset(record.timestamp, record.offset, 3)
    return NOTHING


def largest(lake: Lake, start: int) -> int:
    """The largest timestamp from an offset on, by reading them all."""
    records = [record for batch in lake.model[P0] for record in read_records(batch.data)]
    return max((record.timestamp for record in records if record.offset >= start), default=0)


async def test_the_ends_of_a_log(lake: Lake) -> None:
    lookups = lookups_of(lake)
    assert await lookups.earliest(P0) == FoundOffset(-1, 0, -1)
    assert await lookups.latest(P0) == FoundOffset(-1, 0, -1)
    await lake.write(Write(records=3), leader_epoch=4)
    await lake.write(Write(records=3), leader_epoch=6)
    assert await lookups.earliest(P0) == FoundOffset(-1, 0, 4)
    assert await lookups.earliest_local(P0) == FoundOffset(-1, 0, 4)
    assert await lookups.latest(P0) == FoundOffset(-1, 6, 6)
    assert await lookups.latest_tiered(P0) == NOTHING
    await lake.plane.trimming.delete_records({P0: 4})
    assert await lookups.earliest(P0) == FoundOffset(-1, 4, 6)
    assert lake.gets == 0


async def test_a_log_that_does_not_exist_is_unknown(lake: Lake) -> None:
    lookups = lookups_of(lake)
    unknown = id_partition(TOPIC_B, 0)
    for call in (lookups.earliest, lookups.latest, lookups.earliest_local, lookups.of_max_timestamp):
        with pytest.raises(UnknownTopicOrPartition):
            await call(unknown)
    with pytest.raises(UnknownTopicOrPartition):
        await lookups.by_timestamp(unknown, 0)


async def test_a_time_is_found_to_the_record(lake: Lake) -> None:
    """Not to the row, nor to the batch: a consumer that seeks by time sees nothing older."""
    await lake.write(
        Write(P1), Write(P0, records=10, step_ms=10), Write(P0, records=10, timestamp=NOON_MS + 100, step_ms=10)
    )
    lookups = lookups_of(lake)
    for delta in range(-5, 200, 3):
        assert await lookups.by_timestamp(P0, NOON_MS + delta) == by_model(lake, NOON_MS + delta)
    assert await lookups.by_timestamp(P0, NOON_MS + 191) == NOTHING
    assert lake.gets == 1, "the cache serves all but the first"


@pytest.mark.parametrize("codec", list(Codec))
async def test_compressed_batches_are_looked_into(lake: Lake, codec: Codec) -> None:
    await lake.write(Write(P0, records=10, step_ms=10, codec=codec))
    assert await lookups_of(lake).by_timestamp(P0, NOON_MS + 35) == FoundOffset(NOON_MS + 40, 4, 3)


async def test_log_append_time_belongs_to_the_first_record_of_the_batch(lake: Lake) -> None:
    append = TimestampType.LOG_APPEND_TIME
    await lake.write(Write(P0, records=5, timestamp_type=append), Write(P0, records=5, timestamp_type=append))
    await lake.clock.advance(1)
    await lake.write(Write(P0, records=5, timestamp_type=append))
    lookups = lookups_of(lake)
    assert await lookups.by_timestamp(P0, NOON_MS) == FoundOffset(NOON_MS, 0, 3)
    assert await lookups.by_timestamp(P0, NOON_MS + 1) == FoundOffset(NOON_MS + 1000, 10, 3)
    assert await lookups.by_timestamp(P0, NOON_MS + 1001) == NOTHING
    assert await lookups.of_max_timestamp(P0) == FoundOffset(NOON_MS + 1000, 10, 3)


async def test_records_below_the_log_start_are_not_found(lake: Lake) -> None:
    await lake.write(Write(P0, records=4, timestamp=NOON_MS + 500))
    await lake.write(Write(P0, records=4, timestamp=NOON_MS))
    await lake.write(Write(P0, records=4, timestamp=NOON_MS + 300))
    lookups = lookups_of(lake)
    assert await lookups.by_timestamp(P0, NOON_MS + 200) == FoundOffset(NOON_MS + 500, 0, 3)
    await lake.plane.trimming.delete_records({P0: 2})
    assert await lookups.by_timestamp(P0, NOON_MS + 200) == FoundOffset(NOON_MS + 500, 2, 3)
    await lake.plane.trimming.delete_records({P0: 5})
    assert await lookups.by_timestamp(P0, NOON_MS + 200) == FoundOffset(NOON_MS + 300, 8, 3)
    assert await lookups.by_timestamp(P0, NOON_MS) == FoundOffset(NOON_MS, 5, 3)
    assert await lookups.of_max_timestamp(P0) == FoundOffset(NOON_MS + 300, 8, 3)


async def test_a_row_whose_late_records_are_deleted_leads_to_the_next(lake: Lake) -> None:
    await lake.write(Write(P0, records=1, timestamp=NOON_MS + 500), Write(P0, records=4, timestamp=NOON_MS))
    await lake.write(Write(P0, records=4, timestamp=NOON_MS + 300))
    await lake.plane.trimming.delete_records({P0: 2})
    assert await lookups_of(lake).by_timestamp(P0, NOON_MS + 200) == FoundOffset(NOON_MS + 300, 5, 3)
    assert await lookups_of(lake).of_max_timestamp(P0) == FoundOffset(NOON_MS + 300, 5, 3)


async def test_the_largest_timestamp_is_found_if_a_larger_one_of_its_batch_is_deleted(lake: Lake) -> None:
    await lake.write(Write(P0, records=4, timestamp=NOON_MS + 500, step_ms=-10))
    await lake.plane.trimming.delete_records({P0: 2})
    assert await lookups_of(lake).of_max_timestamp(P0) == FoundOffset(NOON_MS + 480, 2, 3)


async def test_the_largest_timestamp_is_that_of_the_first_record_that_has_it(lake: Lake) -> None:
    lookups = lookups_of(lake)
    assert await lookups.of_max_timestamp(P0) == NOTHING
    await lake.write(Write(P0, records=5, step_ms=10), Write(P0, records=5, step_ms=20), Write(P0, records=3))
    assert await lookups.of_max_timestamp(P0) == FoundOffset(NOON_MS + 80, 9, 3)
    await lake.write(Write(P0, timestamp=NOON_MS + 80))
    assert await lookups.of_max_timestamp(P0) == FoundOffset(NOON_MS + 80, 9, 3)


async def test_trouble_is_an_error_a_client_can_retry(lake: Lake) -> None:
    key = await lake.write(Write(P0, size=1000))
    damaged = bytearray(await lake.objects.get(key))
    damaged[100] ^= 1
    await lake.objects.put(key, [damaged])
    with pytest.raises(CorruptMessage, match=key):
        await lookups_of(lake).by_timestamp(P0, 0)
    await lake.objects.delete([key])
    with pytest.raises(KafkaStorageError, match=key):
        await lookups_of(lake).by_timestamp(P0, 0)
    await lake.store.close()
    for call in (lookups_of(lake).earliest, lookups_of(lake).of_max_timestamp):
        with pytest.raises(RequestTimedOut, match="control plane"):
            await call(P0)


@settings(max_examples=25, deadline=None)
@given(
    files=st.lists(
        st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50), st.integers(-5, 5)), min_size=1, max_size=3),
        min_size=1,
        max_size=6,
    ),
    start=st.floats(0, 1),
)
def test_any_log_answers_every_time_as_the_model_does(files: list[list[tuple[int, int, int]]], start: float) -> None:
    async def run() -> None:
        async with open_lake() as lake:
            for batches in files:
                await lake.write(*(Write(P0, n, 10, NOON_MS + at, step_ms=step) for n, at, step in batches))
            offset = round(lake.high_watermark(P0) * start)
            await lake.plane.trimming.delete_records({P0: offset})
            lookups = lookups_of(lake)
            for delta in range(-12, 65, 4):
                assert await lookups.by_timestamp(P0, NOON_MS + delta) == by_model(lake, NOON_MS + delta, offset)
            assert await lookups.of_max_timestamp(P0) == by_model(lake, largest(lake, offset), offset)

    asyncio.run(run())
