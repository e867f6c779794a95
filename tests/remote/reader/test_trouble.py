"""Missing, cut and damaged objects, and stores that are away: an error for that partition, and one line for people."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
import pytest_asyncio

from strandline.errors import KafkaStorageError, NotLeaderOrFollower, OffsetOutOfRange
from strandline.model import uuid_to_text
from strandline.reads import ReadResult
from strandline.records import iter_headers
from strandline.remote.topic_based.records import serialize
from strandline.remote.values import RemoteLogSegmentMetadataUpdate, RemoteLogSegmentState
from strandline.testing.objects import ALWAYS
from tests.log.harness import NOW
from tests.reads import found
from tests.remote.reader.consuming import UNCOMMITTED, Consumer, bytes_of, id_of, request
from tests.remote.reader.world import PER_SEGMENT, World, open_world

FILES_AND_CHUNKS = pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as world:
        yield world


def next_offset(result: ReadResult) -> int:
    return [header.next_offset for _, header in iter_headers(bytes_of(result.records))][-1]


@FILES_AND_CHUNKS
async def test_a_missing_object_is_an_error_for_its_partition_only(
    world: World, caplog: pytest.LogCaptureFixture, *, has_files: bool
) -> None:
    broken, fine = await world.add_log(), await world.add_log()
    first = world.segments(broken)[0]
    world.object_of(first).unlink()
    reader = await world.reader(has_files=has_files)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            results = await reader.read([request(broken, 0), request(fine, 0)], max_bytes=1 << 20)
            assert isinstance(results[0], KafkaStorageError)
            assert found(results[1]).records is not None
    (line,) = [record.getMessage() for record in caplog.records if "remote records" in record.getMessage()]
    for word in (uuid_to_text(first.segment_id.id), "orders-0", "0 to 19", world.storage.url):
        assert word in line
    # The next segment is there.
    (result,) = await reader.read([request(broken, PER_SEGMENT)], max_bytes=1 << 20)
    found(result)
    assert reader.status().topics["orders"].errors == 5


@FILES_AND_CHUNKS
async def test_an_object_that_was_cut_is_an_error(world: World, *, has_files: bool) -> None:
    log = await world.add_log()
    path = world.object_of(world.segments(log)[0])
    path.write_bytes(path.read_bytes()[:5000])
    reader = await world.reader(has_files=has_files)
    (result,) = await reader.read([request(log, 0)], max_bytes=1 << 20)
    assert isinstance(result, KafkaStorageError)
    assert "5000" in str(result)


@FILES_AND_CHUNKS
async def test_bytes_that_are_no_batches_are_an_error(world: World, *, has_files: bool) -> None:
    log = await world.add_log()
    path = world.object_of(world.segments(log)[0])
    path.write_bytes(b"\xff" * path.stat().st_size)
    reader = await world.reader(has_files=has_files)
    for _ in range(2):
        assert reader.read_now(request(log, 0), min_one_message=True) is None
        (result,) = await reader.read([request(log, 0)], max_bytes=1 << 20)
        assert isinstance(result, KafkaStorageError)
        assert "damaged" in str(result)
    with pytest.raises(KafkaStorageError):
        await reader.offset_by_timestamp(id_of(log), log, 1)


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
async def test_a_truncated_index_is_an_error_for_its_segment(world: World, suffix: str) -> None:
    log = await world.add_log(value_bytes=5000)
    path = world.object_of(world.segments(log)[0], suffix)
    path.write_bytes(path.read_bytes()[:-3])
    reader = await world.reader()
    (result,) = await reader.read([request(log, 0)], max_bytes=1 << 20)
    assert isinstance(result, KafkaStorageError)
    assert suffix in str(result)
    (result,) = await reader.read([request(log, PER_SEGMENT)], max_bytes=1 << 20)
    found(result)


async def test_when_the_store_is_back_reading_goes_on(world: World) -> None:
    log = await world.add_log()
    reader = await world.reader()
    world.store.fail("any", times=ALWAYS)
    for offset in (0, PER_SEGMENT):
        (result,) = await reader.read([request(log, offset)], max_bytes=1 << 20)
        assert isinstance(result, KafkaStorageError)
    world.store.heal()
    consumer = Consumer(reader, log, UNCOMMITTED, 5000)
    assert await consumer.visible(0) == list(range(3 * PER_SEGMENT + 1))


async def test_failures_of_read_ahead_are_not_reported(world: World) -> None:
    log = await world.add_log(per_segment=400)
    reader = await world.reader()
    (first,) = await reader.read([request(log, 0, 200_000)], max_bytes=1 << 20)
    following = next_offset(found(first))
    world.store.fail("get_range", times=10, skip=1)
    (answer,) = await reader.read([request(log, following, 200_000)], max_bytes=1 << 20)
    second = found(answer)
    assert second.records is not None
    async with asyncio.timeout(20):
        while reader.status().running or reader.status().waiting:
            await asyncio.to_thread(lambda: None)
    world.store.heal()
    consumer = Consumer(reader, log, UNCOMMITTED, 100_000)
    assert await consumer.visible(next_offset(second)) == list(range(next_offset(second), 1201))


async def test_a_segment_that_expires_while_it_is_read_is_out_of_range(world: World) -> None:
    log = await world.add_log()
    reader = await world.reader()
    gate = world.store.block("get_range")
    reading = asyncio.create_task(reader.read([request(log, 0)], max_bytes=1 << 20))
    await gate.wait_reached()
    log.start.increment(PER_SEGMENT)
    world.object_of(world.segments(log)[0]).unlink()
    gate.release()
    ((result,),) = (await reading,)
    assert isinstance(result, OffsetOutOfRange)
    assert f"is below the log start offset {PER_SEGMENT}" in str(result)


async def test_a_log_start_that_moves_before_the_segment_is_found_is_out_of_range_without_a_line(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    log = await world.add_log()
    reader = await world.reader()
    assert reader.read_now(request(log, 0), min_one_message=True) is None  # the request is let in, the log starts at 0
    log.start.increment(PER_SEGMENT)
    (result,) = await reader.read([request(log, 0)], max_bytes=1 << 20)
    assert isinstance(result, OffsetOutOfRange)
    assert f"Offset 0 of orders-0 is below the log start offset {PER_SEGMENT}" in str(result)
    assert not caplog.records


async def test_an_offset_of_the_log_that_no_segment_has_is_logged_with_all_that_explains_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    log = await world.add_log()
    first, lost, last = world.segments(log)
    world.topic.values[0] += [
        serialize(
            RemoteLogSegmentMetadataUpdate(segment_id=lost.segment_id, event_timestamp_ms=NOW, state=state, broker_id=1)
        )
        for state in (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)
    ]
    world.topic.wake()
    async with asyncio.timeout(20):
        while len(world.segments(log)) > 2:
            await asyncio.to_thread(lambda: None)
    reader = await world.reader()
    for _ in range(3):
        (result,) = await reader.read([request(log, PER_SEGMENT)], max_bytes=1 << 20)
        assert isinstance(result, NotLeaderOrFollower)  # out of range, consumers would jump over records
    (line,) = [record.getMessage() for record in caplog.records]
    for part in (
        f"offset {PER_SEGMENT} of orders-0 is in the log, but no remote segment has it",
        "its leader epoch is 0",
        "the log start offset is 0",
        f"the local log start offset {3 * PER_SEGMENT}",
        "the leader epochs from there on are [(0, 0)]",
        f"the segment before it is {uuid_to_text(first.segment_id.id)} (offsets 0 to 19",
        f"the segment after it is {uuid_to_text(last.segment_id.id)} (offsets 40 to 59",
    ):
        assert part in line


async def test_partitions_whose_metadata_has_not_been_read_are_retriable(world: World) -> None:
    log = await world.add_log()
    reader = await world.reader()
    other = request(log, 0)._replace(partition=id_of(log)._replace(topic_id=UUID(int=7)))
    (result,) = await reader.read([other], max_bytes=1 << 20)
    assert isinstance(result, KafkaStorageError | NotLeaderOrFollower)
