"""Records in memory are served only while the database still has them: not if it has lost commits, nor if they were
deleted by another broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping

import pytest
import pytest_asyncio

from strandline.controlplane import TRIM_CHANNEL, BatchRow, DisklessLog
from strandline.controlplane.database import Database
from strandline.controlplane.reads import SqlBatchReads
from strandline.diskless.reader import DisklessReader
from strandline.diskless.reader.history import REMEMBERED_SECONDS, CommittedObjects
from strandline.diskless.reader.tails import CONFIRM_SECONDS, POLL_SECONDS
from strandline.diskless.values import CommittedBlock, DisklessRead
from strandline.errors import KafkaStorageError, OffsetOutOfRange, StrandlineError
from strandline.model import TopicIdPartition
from strandline.reads import ReadResult
from strandline.records import TimestampType
from strandline.sql import StoreUnavailable
from tests.diskless.batches import NOON_MS
from tests.diskless.reader.lake import P0, P1, Lake, Write, data_of, open_lake, read_one
from tests.diskless.reader.test_tails import Poll, SharedDatabase, told

MIB = 1 << 20
OLD = 2 * POLL_SECONDS + 0.1
LOST = "the database has lost commits"
POLLS = 4


class UnreliableReads(SqlBatchReads):
    """Of a control plane whose database is away, or does not answer, at times."""

    is_away = False
    hangs: asyncio.Event | None = None

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        if self.is_away:
            raise StoreUnavailable("the database is away")
        if self.hangs is not None:
            await self.hangs.wait()
        return await super().logs(partitions)


@pytest_asyncio.fixture
async def lake() -> AsyncIterator[Lake]:
    async with open_lake() as opened:
        opened.plane.reads = UnreliableReads(Database(opened.store, clock=opened.clock, time=opened.clock))
        yield opened


@pytest.fixture
def reads(lake: Lake) -> UnreliableReads:
    assert isinstance(lake.plane.reads, UnreliableReads)
    return lake.plane.reads


@pytest.fixture
def shared(lake: Lake) -> SharedDatabase:
    return SharedDatabase(lake.store)


@pytest_asyncio.fixture
async def reader(lake: Lake, shared: SharedDatabase) -> AsyncIterator[DisklessReader]:
    async with lake.reader(announcements=shared).running() as running:
        yield running


async def lose_commits(lake: Lake, partition: TopicIdPartition, end: int) -> None:
    """The database is as it was when the log ended here. The model as well."""
    async with lake.store.transaction() as tx:
        where = "log_id = (SELECT log_id FROM inkless_log WHERE partition = $1) AND base_offset >= $2"
        await tx.execute(
            f"DELETE FROM inkless_file WHERE file_id IN (SELECT file_id FROM inkless_batch WHERE {where})",
            partition.partition,
            end,
        )
        await tx.execute(f"DELETE FROM inkless_batch WHERE {where}", partition.partition, end)
        await tx.execute("UPDATE inkless_log SET high_watermark = $2 WHERE partition = $1", partition.partition, end)
    lake.model[partition] = [batch for batch in lake.model[partition] if batch.last_offset < end]


def now(reader: DisklessReader, offset: int = 0) -> ReadResult | None:
    return reader.read_now(DisklessRead(P0, offset, MIB), min_one_message=True)


async def again(reader: DisklessReader, offset: int = 0) -> ReadResult | StrandlineError:
    """Read until it is not refused because of a change."""
    async with asyncio.timeout(20):
        while True:
            answer = await read_one(reader, P0, offset)
            if not isinstance(answer, KafkaStorageError):
                return answer


# The read boundary


async def move_boundary(lake: Lake, offset: int) -> None:
    async with lake.store.transaction() as tx:
        await tx.execute("UPDATE inkless_log SET diskless_start_offset = $1 WHERE partition = $2", offset, P0.partition)


async def test_the_read_boundary_is_heard_of_in_the_background(
    lake: Lake, reader: DisklessReader, shared: SharedDatabase
) -> None:
    """Whoever reads from memory, or waits, finds out that older records were converted."""
    shared.is_silent = True
    await lake.write(Write(records=2), Write(records=2), reader=reader)
    assert data_of(now(reader)) == lake.expected(P0, 0)
    assert not reader.is_converted(P0, 1)
    await move_boundary(lake, 2)
    await lake.clock.advance(POLL_SECONDS + 0.1)
    assert data_of(now(reader)) == lake.expected(P0, 0), "it is served on, and asked for"
    async with asyncio.timeout(20):
        while not reader.is_converted(P0, 1):
            await lake.clock.advance(0.1)
            await asyncio.to_thread(lambda: None)
    assert not reader.is_converted(P0, 2)
    assert data_of(now(reader)) == lake.expected(P0, 0), "the bytes in memory are those of the segment"


async def test_a_read_boundary_that_goes_back_is_that_of_a_database_that_has_lost_commits(
    lake: Lake, reader: DisklessReader, caplog: pytest.LogCaptureFixture
) -> None:
    await lake.write(Write(records=2), Write(records=2), reader=reader)
    await move_boundary(lake, 2)
    await reader.refresh([P0])
    assert reader.read_boundary(P0) == 2
    await move_boundary(lake, 0)
    await reader.refresh([P0])
    assert LOST in caplog.text
    assert reader.read_boundary(P0) == 0
    assert data_of(await again(reader)) == lake.expected(P0, 0)


# Deleted records


async def test_what_another_broker_deleted_is_not_served_from_memory_for_long_even_if_announcements_are_lost(
    lake: Lake, reader: DisklessReader, shared: SharedDatabase
) -> None:
    shared.is_silent = True
    await lake.write(Write(records=2), Write(records=2), reader=reader)
    await lake.plane.trimming.delete_records({P0: 2})
    assert data_of(now(reader)) == lake.expected(P0, 0), "nobody told this broker yet"
    await lake.clock.advance(OLD)
    assert now(reader) is None
    assert isinstance(await read_one(reader, P0, 0), OffsetOutOfRange)
    assert data_of(now(reader, 2)) == lake.expected(P0, 2)


async def test_an_announcement_makes_the_next_read_ask(lake: Lake, reader: DisklessReader) -> None:
    heard = asyncio.Event()
    lake.store.listen(TRIM_CHANNEL, heard.set)
    await lake.write(Write(records=2), Write(records=2), reader=reader)
    await lake.plane.trimming.delete_records({P0: 2})
    async with asyncio.timeout(20):
        await heard.wait()
    await lake.clock.advance(POLL_SECONDS / 2)
    assert isinstance(await read_one(reader, P0, 0), OffsetOutOfRange)


async def test_what_is_read_all_the_time_is_confirmed_without_delay(lake: Lake, reader: DisklessReader) -> None:
    await lake.write(Write(), reader=reader)
    before = reader.status().queries
    for _ in range(40):
        await lake.clock.advance(POLL_SECONDS / 4)
        await lake.plane.reads.logs((P0,))  # the answer needs real time
        await lake.clock.settle()
        assert data_of(now(reader)) == lake.expected(P0, 0)
    assert 8 <= reader.status().queries - before <= 22, "one for offsets and one for objects, each second"


async def test_without_the_database_memory_is_served_at_once_and_confirmed_when_it_is_back(
    lake: Lake, reader: DisklessReader, reads: UnreliableReads
) -> None:
    await lake.write(Write(records=2), reader=reader)
    reads.is_away = True
    await lake.clock.advance(OLD)
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)
    for _ in range(8):
        assert data_of(now(reader)) == lake.expected(P0, 0), "it is known that the database is away"
        await lake.clock.advance(POLL_SECONDS / 2)
    reads.is_away = False
    await lake.plane.trimming.delete_records({P0: 1})
    async with asyncio.timeout(20):
        while not isinstance(await read_one(reader, P0, 0), OffsetOutOfRange):
            await lake.clock.advance(POLL_SECONDS)


async def test_a_database_that_hangs_delays_records_in_memory_by_a_second_and_then_no_more(
    lake: Lake, reader: DisklessReader, reads: UnreliableReads
) -> None:
    await lake.write(Write(), reader=reader)
    reads.hangs = asyncio.Event()
    await lake.clock.advance(OLD)
    read = asyncio.ensure_future(read_one(reader, P0, 0))
    await lake.clock.advance(CONFIRM_SECONDS / 2)
    assert not read.done()
    await lake.clock.advance(CONFIRM_SECONDS / 2)
    assert data_of(await read) == lake.expected(P0, 0)
    await lake.clock.advance(60)
    assert data_of(now(reader)) == lake.expected(P0, 0)
    reads.hangs.set()


# Lost commits


async def test_an_end_that_goes_back_drops_what_is_in_memory(
    lake: Lake, reader: DisklessReader, caplog: pytest.LogCaptureFixture
) -> None:
    poll = Poll()
    await lake.write(Write(records=2), Write(P1), reader=reader)
    await lake.write(Write(records=3), reader=reader)
    await lose_commits(lake, P0, 2)
    reader.watch(P0, poll)
    await told(lake, poll, step=POLL_SECONDS)
    assert reader.known_offsets(P0) == (2, 0)
    assert reader.known_offsets(P1) is None, "other partitions have lost theirs, too, most likely"
    assert reader.status().cache.hot_blocks == 0
    assert data_of(await again(reader)) == lake.expected(P0, 0)
    assert isinstance(await again(reader, 3), OffsetOutOfRange)
    reader.unwatch(P0, poll)
    assert caplog.text.count(LOST) == 1
    assert "went back from 5 to 2" in caplog.text


async def test_offsets_that_another_broker_was_given_are_noticed_by_their_objects(
    lake: Lake, reader: DisklessReader, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of the log is not lower than before."""
    await lake.write(Write(records=2), reader=reader)
    await lake.write(Write(records=3, size=30), reader=reader)
    await lose_commits(lake, P0, 2)
    await lake.write(Write(records=4, size=40))
    await lake.clock.advance(OLD)
    assert isinstance(await read_one(reader, P0, 0), KafkaStorageError), "half of it may be of the past"
    assert data_of(await again(reader)) == lake.expected(P0, 0)
    assert caplog.text.count(LOST) == 1
    assert "it does not know the object" in caplog.text


async def test_objects_of_other_brokers_are_looked_for_as_well(
    lake: Lake, reader: DisklessReader, caplog: pytest.LogCaptureFixture
) -> None:
    await lake.write(Write(records=2))
    await lake.write(Write(records=3, size=30))
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)
    await lose_commits(lake, P0, 2)
    await lake.write(Write(records=4, size=40))
    await lake.clock.advance(OLD)
    assert data_of(await again(reader)) == lake.expected(P0, 0)
    assert caplog.text.count(LOST) == 1


async def test_an_own_commit_at_an_offset_that_other_records_have_is_noticed_at_once(
    lake: Lake, reader: DisklessReader, caplog: pytest.LogCaptureFixture
) -> None:
    await lake.write(Write(records=2), reader=reader)
    await lake.write(Write(records=3, size=30), reader=reader)
    await lose_commits(lake, P0, 2)
    await lake.write(Write(records=3, size=40), reader=reader)
    assert data_of(now(reader, 2)) == lake.expected(P0, 2)
    assert "other records were written to" in caplog.text
    assert data_of(await again(reader)) == lake.expected(P0, 0)


async def test_an_own_commit_that_was_read_before_its_answer_came_is_no_loss(
    lake: Lake, reader: DisklessReader, caplog: pytest.LogCaptureFixture
) -> None:
    await lake.write(Write(records=2, timestamp_type=TimestampType.LOG_APPEND_TIME))
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)
    (committed,) = lake.model[P0]
    block = CommittedBlock(P0, committed.base_offset, committed.last_offset, (bytearray(committed.data),), NOON_MS)
    reader.committed([block], log_start_offsets=[0], object_key="wal/2023111512/1-000000")
    assert data_of(now(reader)) == lake.expected(P0, 0)
    await lake.clock.advance(OLD)
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)
    assert LOST not in caplog.text


async def test_nothing_is_lost_while_retention_and_the_cleaner_do_their_work(
    lake: Lake, reader: DisklessReader, caplog: pytest.LogCaptureFixture
) -> None:
    await lake.write(Write(), reader=reader)
    await lake.write(Write(P1), reader=reader)
    for _ in range(3):
        await lake.plane.trimming.delete_records({P0: -1, P1: -1})
        files = await lake.plane.files.files_to_delete(marked_for_ms=0, limit=10)
        await lake.plane.files.forget_files([file.file_id for file in files])
        await lake.clock.advance(OLD)
        await read_one(reader, P0, 0)
        await lake.clock.advance(24 * 3600)
        await lake.write(Write(), reader=reader)
        assert data_of(await again(reader, lake.high_watermark(P0) - 1))
    assert LOST not in caplog.text


def row(file_id: int) -> BatchRow:
    return BatchRow(file_id, file_id, file_id, f"object {file_id}", 0, 1, TimestampType.CREATE_TIME, 0, 0, 0)


def test_the_newest_objects_are_looked_for_again_and_those_since() -> None:
    objects = CommittedObjects()
    objects.found([row(2), row(5), row(4)])
    objects.found([row(3)])
    objects.found([])
    assert objects.to_look_for(0) == ("object 5",), "older ones are as safe as this one"
    for number in range(20):
        objects.committed(f"own {number}")
    keys = objects.to_look_for(0)
    objects.committed("later")
    assert objects.looked_for(keys, dict.fromkeys(keys, True), 0) is None
    assert objects.to_look_for(0) == (*(f"own {number}" for number in range(12, 20)), "later", "object 5")
    known = dict.fromkeys(objects.to_look_for(0), True) | {"own 19": False}
    assert objects.looked_for(objects.to_look_for(0), known, 1) is None
    assert "own 19" in objects.to_look_for(REMEMBERED_SECONDS), "the database remembers it"
    assert "own 19" not in objects.to_look_for(REMEMBERED_SECONDS + 1), "not for ever"
    del known["later"]
    assert objects.looked_for(objects.to_look_for(0), known, 0) == "later"
    assert not objects.has_many
    for number in range(300):
        objects.committed(f"many {number}")
    assert objects.has_many
    objects.clear()
    assert objects.is_empty


async def test_own_commits_are_looked_for_also_while_somebody_catches_up_over_older_objects(
    lake: Lake, reader: DisklessReader
) -> None:
    """Each query finds objects that are newer than those found before, and older than the own ones."""
    for _ in range(40):
        await lake.write(Write(P1))
    await lake.write(Write(records=2), reader=reader)
    await lake.write(Write(records=3, size=30), reader=reader)
    size = len(lake.model[P1][0].data)
    for offset in range(0, 40, 4):
        assert data_of(await read_one(reader, P1, offset, size))
    await lake.clock.advance(OLD)
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0), "objects are looked for once"
    await lose_commits(lake, P0, 2)
    await lake.write(Write(records=4, size=40))
    await lake.clock.advance(OLD)
    assert data_of(await again(reader)) == lake.expected(P0, 0)


async def test_objects_stand_for_earlier_ones_also_when_they_are_not_in_use_any_more(
    lake: Lake, reader: DisklessReader
) -> None:
    await lake.write(Write(records=2), reader=reader)
    await lake.write(Write(records=3, size=30), reader=reader)
    for _ in range(9):
        await lake.write(Write(P1), reader=reader)
    await lake.plane.trimming.delete_records({P1: -1})
    await lake.clock.advance(OLD)
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0), "objects are looked for once"
    async with lake.store.transaction() as tx:
        await tx.execute("DELETE FROM inkless_file WHERE state <> 'uploaded'")
    await lose_commits(lake, P0, 2)
    await lake.write(Write(records=4, size=40))
    await lake.clock.advance(OLD)
    assert data_of(await again(reader)) == lake.expected(P0, 0)


@pytest.mark.parametrize("is_own", [True, False], ids=["own commits", "queries for rows"])
async def test_whatever_tells_of_offsets_objects_are_looked_for(
    lake: Lake, reader: DisklessReader, shared: SharedDatabase, is_own: bool
) -> None:
    """An end of the log that has grown is no proof that nothing was lost below it."""
    shared.is_silent = True
    await lake.write(Write(records=2), reader=reader)
    await lake.write(Write(records=3, size=30), reader=reader)
    await lose_commits(lake, P0, 2)
    await lake.write(Write(records=4, size=40))
    for _ in range(2 * POLLS):
        await lake.write(Write(), reader=reader if is_own else None)
        await read_one(reader, P0, lake.high_watermark(P0) - 1, 1)  # of others: from its object
        await read_one(reader, P0, 2)
        await lake.clock.advance(POLL_SECONDS / 2)
        await lake.plane.reads.logs((P0,))  # answers need real time
        await lake.clock.settle()
    assert data_of(await again(reader)) == lake.expected(P0, 0)
