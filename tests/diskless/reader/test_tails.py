"""Long polls: who is woken by whose commits, and what that costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping

import pytest
import pytest_asyncio

from strandline.controlplane import COMMIT_CHANNEL, DisklessLog, SqlControlPlane
from strandline.controlplane.database import Database
from strandline.controlplane.reads import SqlBatchReads
from strandline.diskless.reader import DisklessReader
from strandline.diskless.reader.tails import EXCLUSIVE_POLL_SECONDS, POLL_SECONDS, QUERY_GAP_SECONDS
from strandline.diskless.values import DisklessRead
from strandline.errors import NotLeaderOrFollower
from strandline.model import TopicIdPartition
from strandline.sql import SqlError, SqlStore, StoreUnavailable
from tests.diskless.reader.lake import P0, P1, PARTITIONS, Lake, Write, data_of, open_lake, read_one
from tests.postgres import start_postgres

MIB = 1 << 20


class Poll:
    """A watcher that counts."""

    def __init__(self) -> None:
        self.times = 0

    def notify(self) -> None:
        self.times += 1


class SharedDatabase:
    """A database that others write to as well, and whose announcements can get lost."""

    is_exclusive = False

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self.is_silent = False

    def listen(self, channel: str, wake: Callable[[], None]) -> Callable[[], None]:
        return self._store.listen(channel, lambda: None if self.is_silent else wake())


@pytest_asyncio.fixture
async def lake() -> AsyncIterator[Lake]:
    async with open_lake() as opened:
        yield opened


@pytest.fixture
def shared(lake: Lake) -> SharedDatabase:
    return SharedDatabase(lake.store)


@pytest_asyncio.fixture
async def reader(lake: Lake, shared: SharedDatabase) -> AsyncIterator[DisklessReader]:
    """A reader beside other brokers: what is written without telling it is theirs."""
    async with lake.reader(announcements=shared).running() as running:
        yield running


async def told(lake: Lake, poll: Poll, *, step: float, times: int = 1) -> None:
    """Let time pass until the watcher has been told. Answers of the database need real time, too."""
    async with asyncio.timeout(20):
        while poll.times < times:
            await lake.clock.advance(step)
            await asyncio.to_thread(lambda: None)


async def test_own_commits_wake_watchers_at_once(lake: Lake) -> None:
    reader, poll, other = lake.reader(), Poll(), Poll()
    async with reader.running():
        reader.watch(P0, poll)
        reader.watch(P1, other)
        await lake.write(Write(P0), reader=reader)
        assert (poll.times, other.times) == (1, 0)
        reader.unwatch(P0, poll)
        reader.unwatch(P0, poll)
        await lake.write(Write(P0), reader=reader)
        assert poll.times == 1
        assert reader.status().watched == 1
        await lake.clock.advance(EXCLUSIVE_POLL_SECONDS - 1)
    assert reader.status().queries == 0, "no other process can write to this database"


async def test_an_own_commit_whose_answer_never_came_is_seen_at_last(lake: Lake) -> None:
    """The writer gave up, and the commit happened all the same: no other commit need follow to make it known."""
    reader, poll = lake.reader(), Poll()
    async with reader.running():
        assert data_of(await read_one(reader, P0, 0)) == b""
        await lake.write(Write(P0))
        reader.watch(P0, poll)
        await told(lake, poll, step=EXCLUSIVE_POLL_SECONDS)
        assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)
        await lake.write(Write(P1))
        before = reader.status().queries
        reader.unwatch(P0, poll)
        await lake.clock.advance(3600)
        assert reader.status().queries == before, "without watchers there are no queries"


async def test_deleted_records_and_topics_wake_watchers(lake: Lake) -> None:
    reader, poll = lake.reader(), Poll()
    await lake.write(Write(P0, records=5), reader=reader)
    reader.watch(P0, poll)
    reader.log_start_moved(P0, 3)
    assert poll.times == 1
    reader.forget(P0)
    assert poll.times == 2
    reader.unwatch(P0, poll)
    assert reader.status().watched == 0


async def test_commits_of_another_broker_wake_watchers(lake: Lake, reader: DisklessReader) -> None:
    poll = Poll()
    assert data_of(await read_one(reader, P0, 0)) == b""
    reader.watch(P0, poll)
    await lake.clock.settle()
    await lake.write(Write(P0, records=3))
    await told(lake, poll, step=QUERY_GAP_SECONDS)
    assert lake.clock.monotonic() < POLL_SECONDS, "the notification told, not the poll"
    assert reader.known_offsets(P0) == (3, 0)
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)


async def test_a_commit_between_two_polls_is_not_missed(lake: Lake, reader: DisklessReader) -> None:
    """An announcement that arrives without watchers makes the next watcher query."""
    poll, heard = Poll(), asyncio.Event()
    assert data_of(await read_one(reader, P0, 0)) == b""
    lake.store.listen(COMMIT_CHANNEL, heard.set)
    await lake.write(Write(P0))
    async with asyncio.timeout(20):
        await heard.wait()
    queries = reader.status().queries
    assert data_of(reader.read_now(DisklessRead(P0, 0, MIB), min_one_message=True)) == b""
    reader.watch(P0, poll)
    await told(lake, poll, step=QUERY_GAP_SECONDS)
    assert lake.clock.monotonic() < POLL_SECONDS
    assert reader.status().queries == queries + 1


async def test_lost_notifications_are_made_up_for_by_polling(
    lake: Lake, reader: DisklessReader, shared: SharedDatabase
) -> None:
    poll = Poll()
    shared.is_silent = True
    assert data_of(await read_one(reader, P0, 0)) == b""
    reader.watch(P0, poll)
    await lake.write(Write(P0))
    await lake.clock.advance(POLL_SECONDS / 2)
    assert poll.times == 0
    await told(lake, poll, step=POLL_SECONDS)


async def test_queries_for_many_commits_are_merged(lake: Lake, reader: DisklessReader) -> None:
    polls = {partition: Poll() for partition in PARTITIONS}
    await reader.read([DisklessRead(partition, 0, MIB) for partition in PARTITIONS], max_bytes=MIB)
    for partition, poll in polls.items():
        reader.watch(partition, poll)
    await lake.clock.settle()
    before = reader.status().queries
    for _ in range(20):
        await lake.write(*(Write(partition) for partition in PARTITIONS))
        await lake.clock.advance(QUERY_GAP_SECONDS / 10)
    async with asyncio.timeout(20):
        while any(reader.known_offsets(partition) != (20, 0) for partition in PARTITIONS):
            await lake.clock.advance(QUERY_GAP_SECONDS)
            await asyncio.to_thread(lambda: None)
    assert reader.status().queries - before <= 5
    assert all(1 <= poll.times <= 5 for poll in polls.values())


async def test_idle_nothing_is_asked_while_nobody_watches(lake: Lake, reader: DisklessReader) -> None:
    await read_one(reader, P0, 0)
    poll = Poll()
    reader.watch(P0, poll)
    await lake.clock.advance(0.1)
    reader.unwatch(P0, poll)
    before = reader.status().queries
    for _ in range(5):
        await lake.write(Write(P0))
        await lake.clock.advance(60)
    assert reader.status().queries == before
    assert lake.gets == 0


async def test_idle_watchers_cost_one_query_a_second(lake: Lake, reader: DisklessReader) -> None:
    await reader.read([DisklessRead(partition, 0, MIB) for partition in PARTITIONS], max_bytes=MIB)
    before = reader.status().queries
    polls = [Poll() for _ in PARTITIONS]
    for _ in range(20):
        # Consumers with the default fetch.max.wait.ms come and go all the time.
        for partition, poll in zip(PARTITIONS, polls, strict=True):
            reader.watch(partition, poll)
        await lake.clock.advance(POLL_SECONDS / 2)
        await lake.plane.reads.logs(PARTITIONS)
        await lake.clock.settle()
        for partition, poll in zip(PARTITIONS, polls, strict=True):
            reader.unwatch(partition, poll)
    assert 5 <= reader.status().queries - before <= 11
    assert not any(poll.times for poll in polls)
    assert lake.gets == 0


async def test_what_nobody_watched_for_long_is_asked_for_again(lake: Lake, reader: DisklessReader) -> None:
    """A consumer that never waits must not be told for ever that there is nothing."""
    request = DisklessRead(P0, 0, MIB)
    assert data_of(await read_one(reader, P0, 0)) == b""
    await lake.write(Write(P0))
    assert data_of(reader.read_now(request, min_one_message=True)) == b""
    await lake.clock.advance(2 * POLL_SECONDS + 0.1)
    assert reader.read_now(request, min_one_message=True) is None
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)


async def test_watchers_of_a_log_that_another_broker_deleted_are_told(lake: Lake, reader: DisklessReader) -> None:
    poll = Poll()
    await read_one(reader, P0, 0)
    reader.watch(P0, poll)
    await lake.plane.lifecycle.delete_topics([P0.topic_id])
    await told(lake, poll, step=POLL_SECONDS)
    reader.unwatch(P0, poll)
    assert isinstance(await read_one(reader, P0, 0), NotLeaderOrFollower)
    assert reader.status().watched == 0


class InterruptedReads(SqlBatchReads):
    """Of a control plane whose database is away at times."""

    trouble: type[SqlError] = StoreUnavailable
    is_away = False

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        if self.is_away:
            raise self.trouble("the database is away")
        return await super().logs(partitions)


async def test_a_commit_after_the_metadata_has_lost_the_topic_leaves_nothing_in_memory(
    lake: Lake, reader: DisklessReader
) -> None:
    """The controller removes the log from the control plane later: until then it takes commits."""
    await lake.write(Write(P0), Write(P1), reader=reader)
    lake.deleted.add(P0)
    reader.forget(P0)
    await lake.write(Write(P0), Write(P1), reader=reader)
    assert reader.status().partitions == 1
    assert reader.status().cache.hot_blocks == 2
    assert reader.known_offsets(P0) is None
    # A read that was under way is answered, and keeps nothing either.
    assert data_of(await read_one(reader, P0, 0)) == lake.expected(P0, 0)
    poll = Poll()
    reader.watch(P0, poll)
    assert poll.times == 1, "it reads again, and finds no such topic"
    reader.unwatch(P0, poll)
    status = reader.status()
    assert (status.partitions, status.watched, status.cache.hot_blocks, status.cache.cold_blocks) == (1, 0, 2, 0)


@pytest.mark.parametrize("trouble", [SqlError, *SqlError.__subclasses__()])
async def test_a_database_in_any_trouble_is_asked_again(
    lake: Lake, shared: SharedDatabase, caplog: pytest.LogCaptureFixture, trouble: type[SqlError]
) -> None:
    lake.plane = SqlControlPlane(lake.store)
    lake.plane.reads = reads = InterruptedReads(Database(lake.store))
    reads.trouble = trouble
    poll = Poll()
    async with lake.reader(announcements=shared).running() as reader:
        await read_one(reader, P0, 0)
        reader.watch(P0, poll)
        reads.is_away = True
        await lake.write(Write(P0))
        await lake.clock.advance(3 * POLL_SECONDS)
        assert caplog.text.count("trying again: the database is away") == 1
        assert poll.times == 0
        reads.is_away = False
        await told(lake, poll, step=POLL_SECONDS)


async def test_brokers_on_one_postgresql_see_each_others_commits() -> None:
    url = start_postgres().new_database()
    async with open_lake(url) as here, open_lake(url, create=False) as there:
        poll = Poll()
        async with here.reader().running() as reader:
            assert data_of(await read_one(reader, P0, 0)) == b""
            reader.watch(P0, poll)
            await here.clock.settle()
            await there.write(Write(P0, records=3))
            await told(here, poll, step=QUERY_GAP_SECONDS)
            assert reader.known_offsets(P0) == (3, 0)
