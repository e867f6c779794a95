"""Readers of committed records: what they wait for, what is asked of the database, and what many aborts cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from strandline.controlplane import AbortedRange, FoundAborted
from strandline.diskless.reader import DisklessReader, DisklessReaderLimits
from strandline.diskless.reader.aborts import MOST_RANGES, KnownAborts, overlapping
from strandline.diskless.values import BelowReadBoundary
from strandline.errors import KafkaStorageError
from strandline.model import TopicIdPartition
from strandline.reads import AbortedTransaction, FetchIsolation, ReadResult
from strandline.records import iter_headers
from strandline.records.control import ControlType
from strandline.sql import StoreUnavailable
from tests.diskless.reader.lake import P0, Lake, Write, data_of, open_lake, read_one
from tests.diskless.reader.test_tails import Poll
from tests.postgres import start_postgres
from tests.reads import found

COMMITTED = FetchIsolation.TXN_COMMITTED
FROM_OBJECTS = DisklessReaderLimits(cache_max_bytes=0)


@pytest_asyncio.fixture
async def lake() -> AsyncIterator[Lake]:
    async with open_lake() as opened:
        yield opened


def data(producer_id: int, sequence: int = 0, records: int = 1) -> Write:
    return Write(records=records, producer=(producer_id, 0, sequence), is_transactional=True)


def end(producer_id: int, kind: ControlType = ControlType.ABORT) -> Write:
    return Write(producer=(producer_id, 0, -1), ends=kind)


async def committed(reader: DisklessReader, offset: int = 0) -> ReadResult:
    return found(await read_one(reader, P0, offset, isolation=COMMITTED))


def offsets(result: ReadResult) -> list[int]:
    return [header.base_offset for _, header in iter_headers(data_of(result))]


async def aborts(lake: Lake, count: int, reader: DisklessReader | None = None) -> None:
    """Transactions of one record each: offsets 0 and 1, 2 and 3, and so on."""
    for first in range(0, count, 500):
        numbers = range(first, min(first + 500, count))
        await lake.write(*(write for number in numbers for write in (data(7, number), end(7))), reader=reader)


async def test_what_this_broker_has_committed_needs_no_query(lake: Lake) -> None:
    reader = lake.reader()
    await lake.write(Write(), data(7), end(7), reader=reader)
    before = reader.status().queries
    shown = await committed(reader)
    assert (offsets(shown), shown.aborted_transactions) == ([0, 1, 2], [AbortedTransaction(7, 1)])
    assert reader.status().queries == before


async def test_a_log_without_aborts_is_never_asked_for_them(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked(*_: object, **__: object) -> FoundAborted:
        raise AssertionError("nobody aborted anything")

    monkeypatch.setattr(lake.plane.reads, "aborted_transactions", asked)
    mine, theirs = lake.reader(), lake.reader()
    for number in range(3):
        await lake.write(data(7, number), reader=(mine, theirs, None)[number])
    await lake.write(end(7, ControlType.COMMIT), reader=mine)
    for reader in (mine, theirs, lake.reader(FROM_OBJECTS)):
        assert (await committed(reader)).aborted_transactions == []


@pytest.mark.parametrize("limits", [DisklessReaderLimits(), FROM_OBJECTS])
async def test_more_aborts_than_one_query_finds(lake: Lake, limits: DisklessReaderLimits) -> None:
    count = 1_700
    await aborts(lake, count)
    reader = lake.reader(limits)
    seen: list[int] = []
    named: set[AbortedTransaction] = set()
    while len(seen) < 2 * count:
        shown = await committed(reader, len(seen))
        seen += offsets(shown)
        named.update(shown.aborted_transactions or [])
    assert seen == list(range(2 * count))
    assert named == {AbortedTransaction(7, 2 * number) for number in range(count)}


async def test_without_the_database_nothing_is_sent_that_may_be_aborted(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lake.write(data(7), end(7))
    reader = lake.reader()
    assert offsets(found(await read_one(reader, P0, 0))) == [0, 1], "the records are in memory now"

    async def away(partition: TopicIdPartition, *, from_offset: int, limit: int) -> FoundAborted:
        raise StoreUnavailable("the database is away")

    monkeypatch.setattr(lake.plane.reads, "aborted_transactions", away)
    assert isinstance(await read_one(reader, P0, 0, isolation=COMMITTED), KafkaStorageError)
    monkeypatch.undo()
    assert (await committed(reader)).aborted_transactions == [AbortedTransaction(7, 0)]


@pytest.mark.parametrize("column", ["diskless_start_offset", "log_start_offset"])
async def test_what_has_left_the_rows_is_not_sent_from_memory_without_its_aborts(lake: Lake, column: str) -> None:
    await lake.write(data(7), end(7))
    reader = lake.reader()
    assert offsets(found(await read_one(reader, P0, 0))) == [0, 1], "the records are in memory now"
    async with lake.store.transaction() as tx:  # as a conversion by another broker does, or a deletion
        await tx.execute(f"UPDATE inkless_log SET {column} = 2")
        await tx.execute("DELETE FROM inkless_aborted_txn")
        await tx.execute("DELETE FROM inkless_batch")
    assert isinstance(await read_one(reader, P0, 0, isolation=COMMITTED), BelowReadBoundary)
    assert isinstance(await read_one(reader, P0, 0, isolation=COMMITTED), BelowReadBoundary), "nothing is kept of it"


async def test_a_marker_of_another_broker_wakes_who_waits() -> None:
    async with open_lake(start_postgres().new_database()) as lake, lake.reader().running() as reader:
        await lake.write(data(7, records=3))
        waiting = await committed(reader)
        assert (waiting.records, waiting.high_watermark, waiting.last_stable_offset) == (None, 3, 0)
        poll = Poll()
        reader.watch(P0, poll)
        await lake.write(end(7, ControlType.COMMIT))
        async with asyncio.timeout(30):
            while not poll.times:
                await lake.clock.advance(0.1)
                await asyncio.to_thread(lambda: None)
        shown = await committed(reader)
        assert (offsets(shown), shown.last_stable_offset) == ([0, 3], 4)


# What is known


def one(last: int, first: int | None = None, stable: int | None = None) -> AbortedRange:
    return AbortedRange(7, last - 1 if first is None else first, last, last + 1 if stable is None else stable)


def test_records_of_others_without_aborts_leave_nothing_unknown() -> None:
    known = KnownAborts()
    known.log_ends_at(10, -1)
    assert known.covers(0)
    known.committed(10, 12, (one(11),), 11)
    known.log_ends_at(20, 11)
    known.committed(30, 33, (), 11)
    assert known.covers(0)
    assert known.ending_from(0) == [one(11)]


def test_aborts_of_others_are_unknown_until_they_are_loaded() -> None:
    known = KnownAborts()
    known.log_ends_at(10, -1)
    known.committed(10, 12, (one(11),), 11)
    known.log_ends_at(20, 15)
    assert not known.covers(15)
    assert known.covers(16)
    known.committed(30, 33, (one(32),), 32)
    assert not known.covers(29), "there may be some from 20 to 29"
    assert known.covers(30)
    known.loaded(3, [one(11), one(15), one(25), one(32), one(40)], 33)
    assert known.ending_from(12) == [one(15), one(25), one(32)], "that at 40 is found when the log is known there"
    known.committed(50, 53, (), 45)
    assert not known.covers(45)
    assert known.covers(46)


def test_what_became_known_during_a_query_stays() -> None:
    known = KnownAborts()
    known.log_ends_at(20, 15)
    asked_at = known.end
    known.committed(20, 22, (one(21),), 21)
    known.loaded(0, [one(5), one(15)], asked_at)
    assert known.ending_from(0) == [one(5), one(15), one(21)]


def test_a_query_that_others_have_overtaken_is_of_no_use() -> None:
    known = KnownAborts()
    known.log_ends_at(20, 15)
    asked_at = known.end
    known.log_ends_at(40, 30)
    known.loaded(0, [one(5), one(15)], asked_at)
    assert not known.covers(30), "there may be more aborts from 20 to 30"
    assert known.covers(31)


def test_few_of_many_aborts_are_kept() -> None:
    known = KnownAborts()
    known.log_ends_at(0, -1)
    for number in range(MOST_RANGES + 1):
        known.committed(2 * number, 2 * number + 2, (one(2 * number + 1),), 2 * number + 1)
    kept = known.ending_from(0)
    assert len(kept) == MOST_RANGES // 2
    assert known.covers(kept[0].last_offset)
    assert not known.covers(kept[0].last_offset - 2)


def test_the_search_ends_where_later_transactions_cannot_overlap() -> None:
    def ranges() -> list[AbortedRange]:
        return [one(5, 0, 3), one(8, 3, 9), one(20, 2, 21)]

    assert overlapping(ranges(), 0, 3) == [AbortedTransaction(7, 0)]
    assert overlapping(ranges(), 0, 4) == [AbortedTransaction(7, 0), AbortedTransaction(7, 3)]
    assert overlapping(ranges(), 6, 10) == [AbortedTransaction(7, 3), AbortedTransaction(7, 2)]
