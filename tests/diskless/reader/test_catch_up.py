"""Consumers that catch up over many small objects: one call reads many, one block holds many rows, and all is right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.clock import SystemChance
from strandline.controlplane import BatchRow, FindBatches, FoundBatches
from strandline.diskless.reader import DisklessReader, DisklessReaderLimits, loading
from strandline.diskless.reader.readahead import ROW_COST, until_one_file
from strandline.diskless.values import DisklessRead, WalObjectGone, WalObjectUnreadable
from strandline.errors import KafkaStorageError, OffsetOutOfRange, StrandlineError
from strandline.model import TopicIdPartition
from strandline.objects import ObjectOptions, harden
from strandline.reads import ReadResult
from strandline.records import TimestampType, read_header
from tests.diskless.reader.lake import LONG_AGO, P0, P1, PARTITIONS, Lake, Write, data_of, open_lake, read_one

MIB = 1 << 20


@pytest_asyncio.fixture
async def lake() -> AsyncIterator[Lake]:
    async with open_lake() as opened:
        yield opened


async def fetch(
    reader: DisklessReader, offsets: dict[TopicIdPartition, int], max_bytes: int
) -> dict[TopicIdPartition, ReadResult | StrandlineError]:
    """One Fetch of several partitions, as the handler does it: from memory what is there, the rest by one read."""
    found: dict[TopicIdPartition, ReadResult | StrandlineError] = {}
    missing: list[DisklessRead] = []
    for partition, offset in offsets.items():
        request = DisklessRead(partition, offset, max_bytes)
        try:
            now = reader.read_now(request, min_one_message=True)
        except OffsetOutOfRange as error:
            found[partition] = error
            continue
        if now is None:
            missing.append(request)
        else:
            found[partition] = now
    if missing:
        results = await reader.read(missing, max_bytes=4 * max_bytes)
        found.update((request.partition, result) for request, result in zip(missing, results, strict=True))
    return found


def end_of(data: bytes, offset: int) -> int:
    position = 0
    while position < len(data):
        header = read_header(data, position)
        assert header.base_offset <= offset or position, "no gap"
        offset, position = header.next_offset, position + header.size
    return offset


class Consumer:
    """Reads some partitions to the end, asks again after errors that pass, and begins at the log start if it must."""

    def __init__(self, lake: Lake, reader: DisklessReader, partitions: Sequence[TopicIdPartition]) -> None:
        self._lake, self._reader = lake, reader
        self.offsets = dict.fromkeys(partitions, 0)
        self.errors = 0

    async def run(self, max_bytes: int) -> None:
        while True:
            behind = {one: at for one, at in self.offsets.items() if at < self._lake.high_watermark(one)}
            if not behind:
                return
            for partition, answer in (await fetch(self._reader, behind, max_bytes)).items():
                self._take(partition, answer)
            await self._lake.clock.sleep(0)

    def _take(self, partition: TopicIdPartition, answer: ReadResult | StrandlineError) -> None:
        offset = self.offsets[partition]
        if isinstance(answer, OffsetOutOfRange):
            known = self._reader.known_offsets(partition)
            assert known is not None
            assert known[1] > offset, "only what was deleted is skipped"
            self.offsets[partition] = known[1]
        elif isinstance(answer, StrandlineError):
            assert isinstance(answer, KafkaStorageError), answer
            self.errors += 1
        else:
            data = data_of(answer)
            expected = b"".join(batch.data for batch in self._lake.batches_from(partition, offset))
            assert expected.startswith(data), "exactly the committed records, in order"
            self.offsets[partition] = end_of(data, offset)


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
                    await lake.plane.delete_records({PARTITIONS[number]: offset})
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


async def small_objects(lake: Lake, count: int, partitions: int = 8) -> None:
    for _ in range(count):
        await lake.write(*(Write(partition, size=200, timestamp=LONG_AGO) for partition in PARTITIONS[:partitions]))


@pytest.mark.parametrize("together", [1, 64])
async def test_each_object_is_read_once_for_all_partitions(lake: Lake, together: int) -> None:
    await small_objects(lake, 1200)
    lake.objects.ranges_together = together
    reader = lake.reader()
    consumer = Consumer(lake, reader, PARTITIONS[:8])
    await consumer.run(MIB)
    assert lake.gets <= 1200 + 20, "one for each object, and few for those where reads and reading ahead met"
    assert reader.status().queries <= 1200 * 8 // 400, "one query finds the rows of hundreds of objects"


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


# Trouble


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
    (found,) = await lake.plane.find_batches([FindBatches(P0, 0, 1)], max_rows=1)
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
