"""Consumers that catch up while objects are missing, damaged or hang, and logs disappear."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace

import pytest
import pytest_asyncio

from strandline.clock import SystemChance
from strandline.controlplane import FindBatches, FoundBatches
from strandline.diskless.reader import DisklessReader, DisklessReaderLimits, loading
from strandline.diskless.values import WalObjectGone, WalObjectUnreadable
from strandline.errors import KafkaStorageError, StrandlineError
from strandline.model import TopicIdPartition
from strandline.objects import ObjectOptions, harden
from tests.diskless.reader.catching import MIB, Consumer, end_of, fetch, small_objects
from tests.diskless.reader.lake import LONG_AGO, P0, P1, PARTITIONS, Lake, Write, data_of, open_lake, read_one


@pytest_asyncio.fixture
async def lake() -> AsyncIterator[Lake]:
    async with open_lake() as opened:
        yield opened


async def test_a_missing_object_is_an_error_of_its_rows_only(lake: Lake) -> None:
    await small_objects(lake, 30, partitions=2)
    key = f"wal/2023111512/1-{17:06}"
    await lake.objects.delete([key])
    lake.objects.ranges_together = 64
    reader = lake.reader()
    data = data_of(await read_one(reader, P0, 0))
    assert data == b"".join(batch.data for batch in lake.model[P0][:17])
    assert isinstance(await read_one(reader, P0, 17), WalObjectGone)
    assert data_of(await read_one(reader, P0, 18)) == lake.expected(P0, 18)


async def test_a_damaged_batch_is_an_error_of_its_row_only(lake: Lake) -> None:
    await small_objects(lake, 30, partitions=2)
    key = f"wal/2023111512/1-{17:06}"
    damaged = bytearray(await lake.objects.get(key))
    damaged[80] ^= 1  # in the first batch, which is of P0
    await lake.objects.put(key, [damaged])
    lake.objects.ranges_together = 64
    reader = lake.reader()
    assert data_of(await read_one(reader, P0, 0)) == b"".join(batch.data for batch in lake.model[P0][:17])
    error = await read_one(reader, P0, 17)
    assert isinstance(error, StrandlineError)
    assert "checksum of the batch at position 0" in str(error)
    assert key in str(error)
    assert data_of(await read_one(reader, P0, 18)) == lake.expected(P0, 18)
    assert data_of(await read_one(reader, P1, 0)) == lake.expected(P1, 0)


async def test_reads_ahead_that_hang_hold_up_nobody_else(lake: Lake) -> None:
    """They have their own bounds: others read what they want, as long as the store answers them."""
    await small_objects(lake, 400, partitions=4)
    await lake.write(Write(PARTITIONS[9], size=5000, timestamp=LONG_AGO))
    reader = lake.reader(DisklessReaderLimits(parallel_reads=1, parallel_lagging_reads=1))
    size = len(lake.model[P0][0].data)
    async with reader.running():
        offset = 0
        for _ in range(2):
            offset = end_of(data_of(await read_one(reader, P0, offset, 5 * size)), offset)
        gate = lake.objects.block("get_range")
        async with asyncio.timeout(10):
            await gate.wait_reached()
            await lake.clock.settle()
            lake.objects.heal()  # those that have reached the gate go on waiting
            other = await read_one(reader, PARTITIONS[9], 0)
        assert data_of(other) == lake.expected(PARTITIONS[9], 0)
        gate.release()
        data = data_of(await read_one(reader, P0, offset))
        assert data
        assert lake.expected(P0, offset).startswith(data)


@pytest.mark.parametrize("together", [1, 64])
async def test_an_object_that_hangs_holds_up_only_its_own_rows(lake: Lake, together: int) -> None:
    """Also where it is read by the same call as others, and others want those."""
    for _ in range(24):
        await lake.write(Write(P0, size=200, timestamp=LONG_AGO))
        await lake.write(Write(P1, size=200, timestamp=LONG_AGO))
    lake.objects.ranges_together = together
    options = ObjectOptions()
    objects = harden(lake.objects, options, clock=lake.clock, chance=SystemChance(1))
    gate = lake.objects.block("get_range", key=f"wal/2023111512/1-{2 * 10:06}")  # of P0
    async with lake.reader(objects=objects).running() as reader:
        both = asyncio.ensure_future(fetch(reader, {P0: 0, P1: 0}, MIB))
        await gate.wait_reached()
        other = asyncio.ensure_future(read_one(reader, P1, 0))
        await lake.clock.advance(options.patience.list_deadline)
        await lake.clock.settle()
        assert other.done(), "the rows that it wants are there"
        data = data_of(other.result())
        assert data
        assert lake.expected(P1, 0).startswith(data)
        assert not both.done()
        gate.release()
        found = await both
    assert data_of(found[P0]) == lake.expected(P0, 0)
    assert data_of(found[P1]) == lake.expected(P1, 0)


async def test_who_joins_a_read_that_fails_gets_its_error(lake: Lake) -> None:
    """And does not wait as long again: clients would give up without having heard of it."""
    await small_objects(lake, 1)
    options = ObjectOptions()
    objects = harden(lake.objects, options, clock=lake.clock, chance=SystemChance(1))
    gate = lake.objects.block("get_range")
    async with lake.reader(objects=objects).running() as reader:
        first = asyncio.ensure_future(read_one(reader, P0, 0))
        await gate.wait_reached()
        await lake.clock.advance(options.patience.deadline - 1)
        second = asyncio.ensure_future(read_one(reader, P0, 0))
        await lake.clock.settle()
        lake.objects.heal()
        await lake.clock.advance(2)
        errors = [await first, await second]
        assert all(isinstance(error, WalObjectUnreadable) for error in errors)
        assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0), "the next one tries again"


async def test_ranges_of_a_list_that_fail_are_read_again_one_by_one(lake: Lake) -> None:
    await small_objects(lake, 20, partitions=2)
    lake.objects.ranges_together = 64
    objects = harden(lake.objects, ObjectOptions(), clock=lake.clock, chance=SystemChance(1))
    reader = lake.reader(objects=objects)
    lake.objects.fail("get_range", skip=3, times=2)
    lake.objects.shorten("get_range", 10, skip=7)
    before = lake.gets
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)
    assert lake.gets - before == 20 + 3


async def test_a_reader_that_stops_while_ranges_are_read_again_leaves_nothing_behind(lake: Lake) -> None:
    await small_objects(lake, 20, partitions=2)
    lake.objects.ranges_together = 64
    reader = lake.reader()
    lake.objects.fail("get_range", skip=3)
    gate = lake.objects.block("get_range", skip=20)
    async with reader.running():
        reading = asyncio.ensure_future(read_one(reader, P0, 0))
        await gate.wait_reached()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "diskless-download"]
    assert not reader._loader._downloads
    assert not reader._loader._under_way
    assert reader._loader._lagging_gate._inside == 0


async def test_bytes_that_are_committed_again_at_other_offsets_are_read_again(lake: Lake) -> None:
    """After the database has lost their commit: what is under way for the first offsets is not right for the others."""
    await lake.write(Write(P0, records=3))
    (found,) = await lake.plane.reads.find_batches([FindBatches(P0, 0, 1)], max_rows=1)
    (row,) = found.rows
    again = row._replace(base_offset=40, last_offset=42)
    gate = lake.objects.block("get_range")
    async with lake.reader().running() as reader:
        first = asyncio.ensure_future(reader.load(P0, row))
        await gate.wait_reached()
        reader._tails.start_again("a test says so")
        second = asyncio.ensure_future(reader.load(P0, again))
        await lake.clock.settle()
        gate.release()
        assert [(block.base_offset, block.last_offset) for block in (await first, await second)] == [(0, 2), (40, 42)]


async def test_rows_that_the_database_has_lost_do_not_come_with_those_that_are_left(lake: Lake) -> None:
    """A block of many rows is under way when the loss of the last one is noticed."""
    await small_objects(lake, 10, partitions=1)
    lake.objects.ranges_together = 64
    gate = lake.objects.block("get_range")
    async with lake.reader().running() as reader:
        before = asyncio.ensure_future(read_one(reader, P0, 0))
        await gate.wait_reached()
        reader._tails.start_again("a test says so")
        await lake.store.transact(lambda tx: tx.execute("DELETE FROM inkless_batch WHERE base_offset = 9"))
        after = asyncio.ensure_future(read_one(reader, P0, 0))
        await lake.clock.settle()
        gate.release()
        assert isinstance(await before, KafkaStorageError), "it is read again"
        assert data_of(await after) == b"".join(batch.data for batch in lake.model[P0][:9])


async def begin_streams(lake: Lake, reader: DisklessReader, *partitions: TopicIdPartition) -> int:
    """Read twice, five batches at a time, so that more is read ahead; the offset that comes next."""
    offset, size = 0, len(lake.model[P0][0].data)
    for _ in range(2):
        for partition in partitions:
            end = end_of(data_of(await read_one(reader, partition, offset, 5 * size)), offset)
        offset = end
    return offset


@pytest.mark.plain
async def test_a_reader_of_other_rows_does_not_wait_until_there_is_room_for_more_reads_ahead(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_WAITING_AHEAD", 0)
    for partition in (P0, P1):
        for _ in range(40):
            await lake.write(Write(partition, size=200, timestamp=LONG_AGO))
    gate = lake.objects.block("get_range", key=f"wal/2023111512/1-{12:06}")  # of P0
    async with asyncio.timeout(30), lake.reader().running() as reader:
        await begin_streams(lake, reader, P0)
        await gate.wait_reached()
        offset = await begin_streams(lake, reader, P1)
        assert data_of(await read_one(reader, P1, offset)) == lake.expected(P1, offset)


@pytest.mark.plain
@pytest.mark.parametrize("partitions", [PARTITIONS[:1], PARTITIONS[:8]], ids=len)
async def test_a_query_ahead_that_hangs_holds_up_a_reader_for_a_moment_only(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, partitions: Sequence[TopicIdPartition]
) -> None:
    await small_objects(lake, 40, partitions=len(partitions))
    async with lake.reader().running() as reader:
        is_asked = asyncio.Event()

        async def hang(requests: Sequence[FindBatches], *, max_rows: int) -> Sequence[FoundBatches]:
            never: asyncio.Future[Sequence[FoundBatches]] = asyncio.get_running_loop().create_future()
            is_asked.set()
            return await never

        monkeypatch.setattr(reader._ahead, "_batches", SimpleNamespace(find_batches=hang))
        offset = await begin_streams(lake, reader, *partitions)
        await is_asked.wait()
        reading = asyncio.ensure_future(fetch(reader, dict.fromkeys(partitions, offset), MIB))
        await lake.clock.advance(1)
        async with asyncio.timeout(10):
            for partition, answer in (await reading).items():
                assert data_of(answer) == lake.expected(partition, offset)


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_nothing_is_read_ahead_of_a_log_that_is_gone(lake: Lake, is_deleted: bool) -> None:
    """It was deleted, or what was known of it is dropped: what is loaded for it would be kept nowhere."""
    for partition in (P0, P1):
        for _ in range(100):
            await lake.write(Write(partition, size=200, timestamp=LONG_AGO))
    async with lake.reader().running() as reader:
        await begin_streams(lake, reader, P0)
        if is_deleted:
            lake.deleted.add(P0)
            reader.forget(P0)
        else:
            reader._tails.start_again("a test says so")
        lake.objects.calls.clear()
        await Consumer(lake, reader, [P1]).run(MIB)
    keys = {key for call in lake.objects.calls for key in call.keys}
    assert len(keys) == 100, "those of the other log"
