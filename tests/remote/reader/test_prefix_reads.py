"""Remote segments of a log that is only the older part of another: its offsets, its errors, its newest record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.config.topic import TopicConfig
from strandline.errors import KafkaStorageError, NotLeaderOrFollower, OffsetOutOfRange
from strandline.model import TopicPartition
from strandline.reads import AnsweredOffsets, FetchIsolation, FoundOffset, ReadResult
from strandline.records.builder import build_batch
from strandline.records.record import Record
from strandline.remote.reader import RemoteRead
from strandline.remote.topic_based.records import serialize
from strandline.remote.values import RemoteLogSegmentMetadataUpdate, RemoteLogSegmentState
from tests.log.harness import NOW, LogHarness
from tests.remote.reader.consuming import id_of, request
from tests.remote.reader.world import PER_SEGMENT, World, open_world

WHOLE = AnsweredOffsets(high_watermark=5000, last_stable_offset=4000, log_start_offset=0)


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as world:
        yield world


async def lose_second_segment(world: World) -> None:
    (harness,) = world.logs
    lost = world.segments(harness.log)[1]
    world.topic.values[0] += [
        serialize(
            RemoteLogSegmentMetadataUpdate(segment_id=lost.segment_id, event_timestamp_ms=NOW, state=state, broker_id=1)
        )
        for state in (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)
    ]
    world.topic.wake()
    async with asyncio.timeout(20):
        while len(world.segments(harness.log)) > 2:
            await asyncio.to_thread(lambda: None)


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
@pytest.mark.parametrize("isolation", [FetchIsolation.HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED])
async def test_answers_have_the_offsets_of_the_whole_log(
    world: World, isolation: FetchIsolation, *, has_files: bool
) -> None:
    log = await world.add_log()
    reader = await world.reader(has_files=has_files)

    async def both(whole: RemoteRead) -> list[object]:
        (read,) = await reader.read([whole], max_bytes=1 << 20)
        return [read, reader.read_now(whole, min_one_message=True)]

    for answer in await both(request(log, 0, isolation=isolation, whole=lambda: WHOLE)):
        assert isinstance(answer, ReadResult)
        assert answer.records is not None
        assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == WHOLE
    for answer in await both(request(log, 0, isolation=isolation)):
        assert isinstance(answer, ReadResult)
        assert answer.high_watermark == 3 * PER_SEGMENT + 1


async def test_an_answer_that_comes_too_late_has_them_too(world: World) -> None:
    log = await world.add_log()
    reader = await world.reader()
    asked = request(log, 0, whole=lambda: WHOLE)
    (answer,) = await reader.read([asked], max_bytes=1 << 20, is_wanted=lambda: False)
    assert isinstance(answer, ReadResult)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == WHOLE


async def test_an_offset_that_no_segment_has_is_to_be_asked_for_elsewhere(world: World) -> None:
    log = await world.add_log()
    await lose_second_segment(world)
    reader = await world.reader()
    asked = request(log, PER_SEGMENT, whole=lambda: WHOLE)
    (answer,) = await reader.read([asked], max_bytes=1 << 20)
    for error in (answer, reader.read_now(asked, min_one_message=True)):
        assert isinstance(error, NotLeaderOrFollower)
        assert f"Offset {PER_SEGMENT} of orders-0 is neither in remote storage nor local" in str(error)
    (answer,) = await reader.read([request(log, PER_SEGMENT)], max_bytes=1 << 20)
    assert isinstance(answer, NotLeaderOrFollower)


@pytest.mark.parametrize("is_moved_here", [True, False])
async def test_an_offset_below_the_log_start_stays_out_of_range(world: World, is_moved_here: bool) -> None:
    """Also while this replica has not heard yet that records of the whole log were deleted."""
    log = await world.add_log()
    await lose_second_segment(world)
    reader = await world.reader()
    start = 2 * PER_SEGMENT
    if is_moved_here:
        log.start.increment(start)
    asked = request(log, PER_SEGMENT, whole=lambda: WHOLE._replace(log_start_offset=start))
    (answer,) = await reader.read([asked], max_bytes=1 << 20)
    for error in (answer, reader.read_now(asked, min_one_message=True)):
        assert isinstance(error, OffsetOutOfRange)


async def test_other_errors_stay_what_they_are(world: World) -> None:
    log = await world.add_log()
    reader = await world.reader()
    world.object_of(world.segments(log)[0]).unlink()
    (answer,) = await reader.read([request(log, 0, whole=lambda: WHOLE)], max_bytes=1 << 20)
    assert isinstance(answer, KafkaStorageError)


async def tiered_with(world: World, batches: Sequence[Sequence[int]], *, per_segment: int) -> LogHarness:
    """A log with batches of records of these timestamps; so many batches in a segment, the last segment local."""
    partition = TopicPartition("times", len(world.logs))
    config = TopicConfig(
        remote_storage_enable=True,
        internal_segment_bytes=1 << 20,
        local_retention_bytes=0,
        retention_ms=-1,
        message_timestamp_after_max_ms=2**62,
    )
    harness = LogHarness(world.directory / "logs", config=config, partition=partition, remote_enabled=True)
    log = harness.create()
    log.assign_topic_id(UUID(int=0xFACE + len(world.logs)))
    world.logs.append(harness)
    for number, timestamps in enumerate(batches):
        if number and number % per_segment == 0:
            log.roll()
        records = [Record(at, timestamp, None, b"value") for at, timestamp in enumerate(timestamps)]
        harness.append(memoryview(build_batch(records)))
    log.roll()
    await world.tier(harness)
    return harness


async def test_the_newest_record_is_the_first_of_those_with_the_largest_timestamp(world: World) -> None:
    t = NOW
    harness = await tiered_with(
        world, [[t, t + 5], [t + 9, t + 1], [t + 3], [t + 9, t + 9], [t + 8], [t + 2]], per_segment=2
    )
    reader = await world.reader()
    log = harness.log

    async def newest() -> FoundOffset | None:
        return await reader.offset_of_max_timestamp(id_of(log), log)

    assert await newest() == FoundOffset(t + 9, 2, 0)
    log.start.increment(3)  # inside a batch, and its newest record is deleted
    assert await newest() == FoundOffset(t + 9, 5, 0)
    log.start.increment(6)
    assert await newest() == FoundOffset(t + 9, 6, 0)
    log.start.increment(7)
    assert await newest() == FoundOffset(t + 8, 7, 0)
    log.start.increment(log.log_end_offset)
    assert await newest() is None


async def test_records_without_timestamps_are_never_the_newest(world: World) -> None:
    harness = await tiered_with(world, [[-1], [-1, -1], [-1]], per_segment=2)
    reader = await world.reader()
    assert await reader.offset_of_max_timestamp(id_of(harness.log), harness.log) is None


async def test_a_segment_that_cannot_be_read_is_an_error(world: World) -> None:
    harness = await tiered_with(world, [[NOW], [NOW + 1]], per_segment=1)
    reader = await world.reader()
    world.object_of(world.segments(harness.log)[1]).unlink()
    with pytest.raises(KafkaStorageError):
        await reader.offset_of_max_timestamp(id_of(harness.log), harness.log)


@settings(max_examples=15)
@given(
    st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3), min_size=1, max_size=8),
    st.integers(1, 3),
    st.integers(0, 12),
)
def test_it_agrees_with_a_look_at_every_record(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], per_segment: int, start: int
) -> None:
    async def check() -> None:
        async with open_world(tmp_path_factory.mktemp("newest")) as world:
            stamped = [[NOW + timestamp for timestamp in one] for one in batches]
            harness = await tiered_with(world, stamped, per_segment=per_segment)
            log = harness.log
            log.start.increment(min(start, log.log_end_offset))
            assert log.local_log_start_offset == log.log_end_offset
            reader = await world.reader()
            found = await reader.offset_of_max_timestamp(id_of(log), log)
        times = [timestamp for one in stamped for timestamp in one]
        left = list(enumerate(times))[log.log_start_offset :]
        newest = max(left, key=lambda item: item[1], default=None)
        assert found == (None if newest is None else FoundOffset(newest[1], newest[0], 0))

    asyncio.run(check())
