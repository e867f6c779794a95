"""Many consumers at the tail: one append wakes all of them and is read once, and sessions look only at what has news.

Whatever is shared or left out, every consumer gets every record once and in order.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from strandline.broker import Broker
from strandline.clock import SystemChance, SystemClock
from strandline.config import Settings
from strandline.hybrid.parts.replica import ReplicaPart
from strandline.log.reader import LogReader
from strandline.records import Record, build_batch, iter_headers, read_records
from strandline.tasks import next_turn
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker import free_port
from tests.server.test_produce_memory import CREATE, DELETE, PRODUCE, Client

LONG_MS = 60_000
PATIENCE = 20.0  # far less than a client waits, far more than an answer takes
PARTITIONS = 40
SMALL = 3
BY_NAME = 12

Place = tuple[str, int]


class World:
    """A broker with two topics of three partitions, one classic and one diskless, and a wide classic one."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.written: dict[Place, list[bytes]] = {}
        self._clients: list[Client] = []
        self._producer: Client | None = None

    async def connect(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.broker.listeners[0].port))
        self._clients.append(client)
        return client

    async def close(self) -> None:
        for client in self._clients:
            await client.close()

    async def write(self, topic: str, partition: int, value: bytes) -> None:
        if self._producer is None:
            self._producer = await self.connect()
        records = bytes(build_batch([Record(0, SystemClock().now_ms(), None, value)]))
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=records)])
        self._producer.send(ApiKey.PRODUCE, PRODUCE, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data]))
        assert (await self._producer.produced())[0] == 0
        self.written.setdefault((topic, partition), []).append(value)

    async def all_wait(self, consumers: int) -> None:
        """Until as many Fetch requests wait for their answers."""
        async with asyncio.timeout(PATIENCE):
            while sum(c.waiting == [ApiKey.FETCH] for c in self.broker.network.connections) < consumers:
                await next_turn()

    def classic(self, topic: str, partition: int) -> ReplicaPart:
        found = self.broker.partitions.find(topic, partition).newest
        assert isinstance(found, ReplicaPart)
        return found


class Consumer:
    """Follows some partitions, as a client does: with an incremental session, or without one."""

    def __init__(self, world: World, client: Client, places: Collection[Place], *, version: int = BY_NAME) -> None:
        self.world, self.client, self.version = world, client, version
        self.offsets: dict[Place, int] = dict.fromkeys(places, 0)
        self.has_sessions = version >= 7
        self.session_id, self.epoch = 0, 0
        self.is_asking = False
        self._unsaid: set[Place] = set(places)
        self._forgotten: list[Place] = []

    @property
    def has_unread(self) -> bool:
        return any(at < len(self.world.written.get(place, ())) for place, at in self.offsets.items())

    def forget(self, place: Place) -> None:
        self._forgotten.append(place)
        self._unsaid.discard(place)

    def ask(self, *, wait_ms: int = LONG_MS, min_bytes: int = 1) -> None:
        named = self._unsaid if self.has_sessions and self.epoch else self.offsets.keys() - self._forgotten
        topics: dict[str, list[FetchPartition]] = {}
        for place in sorted(named):
            wanted = FetchPartition(partition=place[1], fetch_offset=self.offsets[place], partition_max_bytes=1 << 20)
            topics.setdefault(place[0], []).append(wanted)
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=1 << 26,
            session_id=self.session_id,
            session_epoch=self.epoch if self.has_sessions else -1,
            topics=[FetchTopic(topic=topic, partitions=rows) for topic, rows in topics.items()],
            forgotten_topics_data=[ForgottenTopic(topic=t, partitions=[p]) for t, p in self._forgotten],
        )
        for place in self._forgotten:
            del self.offsets[place]
        self._unsaid, self._forgotten = set(), []
        self.client.send(ApiKey.FETCH, self.version, request)
        self.is_asking = True

    async def take(self) -> FetchResponse:
        """The answer; every record in it has to be the next one of its partition."""
        async with asyncio.timeout(PATIENCE):
            response: FetchResponse = await self.client.receive(ApiKey.FETCH, self.version)
        self.is_asking = False
        assert response.error_code == 0
        if self.has_sessions:
            self.session_id, self.epoch = response.session_id, self.epoch + 1
        for topic in response.responses:
            for row in topic.partitions:
                self._take((topic.topic, row.partition_index), row.error_code, row.records or b"")
        return response

    def _take(self, place: Place, error_code: int, records: bytes) -> None:
        assert ErrorCode(error_code) is ErrorCode.NONE
        for position, header in iter_headers(records):
            assert header.base_offset == self.offsets[place]
            [record] = read_records(records[position : position + header.size])
            assert record.value == self.world.written[place][header.base_offset]
            self.offsets[place] += 1
            self._unsaid.add(place)

    def seek(self, place: Place, offset: int) -> None:
        """Read from here on, with the next request."""
        self.offsets[place] = offset
        self._unsaid.add(place)

    async def end_session(self) -> None:
        """Begin anew with the next request."""
        other = await self.world.connect()
        closing = FetchRequest(max_wait_ms=0, min_bytes=1, session_id=self.session_id, session_epoch=-1)
        await other.call(ApiKey.FETCH, self.version, closing)
        self.session_id = self.epoch = 0


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    properties = {
        "strandline.data.dir": str(tmp_path / "data"),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        opened = World(broker)
        client = await opened.connect()
        diskless = CreatableTopicConfig(name="diskless.enable", value="true")
        topics = [
            CreatableTopic(name="classic", num_partitions=SMALL, replication_factor=1),
            CreatableTopic(name="diskless", num_partitions=SMALL, replication_factor=1, configs=[diskless]),
            CreatableTopic(name="wide", num_partitions=PARTITIONS, replication_factor=1),
        ]
        response = await client.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=topics))
        assert [row.error_code for row in response.topics] == [0, 0, 0]
        try:
            yield opened
        finally:
            await opened.close()


def counting(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> Counter[str]:
    """Counts the calls of a method from now on."""
    calls: Counter[str] = Counter()
    original: Callable[..., Any] = getattr(owner, name)

    def counted(*values: Any, **named: Any) -> Any:
        calls[name] += 1
        return original(*values, **named)

    monkeypatch.setattr(owner, name, counted)
    return calls


@pytest.mark.plain
async def test_one_append_is_read_once_for_all_who_wait_for_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    consumers = [Consumer(world, await world.connect(), [("classic", 0)]) for _ in range(10)]
    for consumer in consumers:
        consumer.ask()
    await world.all_wait(10)
    reads = counting(monkeypatch, LogReader, "read")
    for number in range(3):
        before = reads["read"]
        await world.write("classic", 0, b"news %d" % number)
        for consumer in consumers:
            await consumer.take()
        assert reads["read"] == before + 1
        for consumer in consumers:
            consumer.ask()
        await world.all_wait(10)
    assert {consumer.offsets["classic", 0] for consumer in consumers} == {3}


async def test_every_version_and_every_wish_gets_its_own_answer(world: World) -> None:
    """Who wants something else than the first is not answered with what that one got."""
    versions = [4, 5, 7, 9, 11, 12]
    consumers = [Consumer(world, await world.connect(), [("classic", 1)], version=one) for one in versions * 2]
    late = Consumer(world, await world.connect(), [("classic", 1)])
    for consumer in consumers:
        consumer.ask()
    late.ask(min_bytes=150)
    await world.all_wait(len(consumers) + 1)
    await world.write("classic", 1, b"a" * 20)
    sessions = {(await consumer.take()).session_id for consumer in consumers if consumer.has_sessions}
    assert len(sessions) == sum(one >= 7 for one in versions) * 2
    assert late.offsets["classic", 1] == 0
    await world.write("classic", 1, b"b" * 20)
    await late.take()
    assert late.offsets["classic", 1] == 2


@pytest.mark.plain
async def test_a_session_looks_only_at_partitions_with_news(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Consumer(world, await world.connect(), [("wide", number) for number in range(PARTITIONS)])
    consumer.ask(wait_ms=0)
    await consumer.take()
    consumer.ask()
    await world.all_wait(1)
    looks = counting(monkeypatch, ReplicaPart, "stands_at")
    fewest = PARTITIONS
    for number in range(5):  # all are looked at now and then
        before = looks["stands_at"]
        await world.write("wide", number, b"news")
        await consumer.take()
        consumer.ask()
        await world.all_wait(1)
        fewest = min(fewest, looks["stands_at"] - before)
    assert fewest <= 3
    assert [consumer.offsets["wide", number] for number in range(6)] == [1, 1, 1, 1, 1, 0]


async def test_a_change_that_notifies_nobody_is_found_when_the_wait_is_over(world: World) -> None:
    consumer = Consumer(world, await world.connect(), [("wide", number) for number in range(PARTITIONS)])
    consumer.ask(wait_ms=0)
    await consumer.take()
    consumer.ask()
    await world.all_wait(1)
    for number in range(3):
        await world.write("wide", 7, b"%d" % number)
        await consumer.take()
        consumer.ask()
        await world.all_wait(1)
    world.classic("wide", 7).replica.log.delete_records(2)  # as retention does
    await world.write("wide", 8, b"wakes")
    await consumer.take()
    consumer.ask(wait_ms=50)
    [topic] = (await consumer.take()).responses
    assert [(row.partition_index, row.log_start_offset) for row in topic.partitions] == [(7, 2)]


async def test_sessions_that_end_leave_no_watchers_behind(world: World) -> None:
    places = [("classic", number) for number in range(SMALL)]
    consumers = [Consumer(world, await world.connect(), places) for _ in range(3)]
    for consumer in consumers:
        consumer.ask(wait_ms=0)
        await consumer.take()
    for _, number in places:
        assert world.classic("classic", number).replica.is_watched
    consumers[0].forget(("classic", 2))
    consumers[0].ask(wait_ms=0)
    await consumers[0].take()
    for consumer in consumers:
        await consumer.end_session()
    for _, number in places:
        assert not world.classic("classic", number).replica.is_watched


async def test_a_client_that_goes_back_gets_old_records_at_once(world: World) -> None:
    consumer = Consumer(world, await world.connect(), [("classic", 0), ("classic", 1)])
    await world.write("classic", 0, b"old")
    for _ in range(3):  # the last request finds it idle
        consumer.ask(wait_ms=1)
        await consumer.take()
    consumer.seek(("classic", 0), 0)
    consumer.ask()
    await consumer.take()
    assert consumer.offsets["classic", 0] == 1


async def test_a_request_whose_session_ends_is_answered(world: World) -> None:
    consumer = Consumer(world, await world.connect(), [("classic", 0), ("classic", 1)])
    consumer.ask(wait_ms=0)
    await consumer.take()
    consumer.ask()
    await world.all_wait(1)
    await consumer.end_session()
    await consumer.take()
    assert not world.classic("classic", 0).replica.is_watched


async def test_a_client_that_leaves_while_it_waits_is_not_woken(world: World) -> None:
    consumer = Consumer(world, await world.connect(), [("classic", 0), ("classic", 1)])
    consumer.ask(wait_ms=0)
    await consumer.take()
    consumer.ask()
    await world.all_wait(1)
    consumer.client.drop()
    async with asyncio.timeout(PATIENCE):
        while any(c.waiting for c in world.broker.network.connections):
            await next_turn()
    await world.write("classic", 0, b"for the session")
    consumer.client = await world.connect()  # the session goes on elsewhere
    consumer.epoch += 1
    consumer.ask()
    await consumer.take()
    assert consumer.offsets["classic", 0] == 1


async def test_a_deleted_topic_wakes_those_who_wait_for_it(world: World) -> None:
    consumer = Consumer(world, await world.connect(), [("classic", 0), ("wide", 3)])
    consumer.ask(wait_ms=0)
    await consumer.take()
    consumer.ask()
    await world.all_wait(1)
    other = await world.connect()
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="wide")], timeout_ms=5000)
    await other.call(ApiKey.DELETE_TOPICS, DELETE + 1, gone)
    async with asyncio.timeout(PATIENCE):
        response = await consumer.client.receive(ApiKey.FETCH, BY_NAME)
    [topic] = response.responses
    assert (topic.topic, topic.partitions[0].error_code) == ("wide", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def act(consumer: Consumer, chance: SystemChance) -> None:
    """Something that a client may do while none of its requests waits."""
    step = chance.below(8)
    has_session = consumer.has_sessions and consumer.epoch > 0
    if step == 0 and has_session:
        await consumer.end_session()
    elif step == 1:
        consumer.client = await consumer.world.connect()
    elif step == 2:
        consumer.ask(wait_ms=20, min_bytes=100 + chance.below(200))
        await consumer.take()
    elif step == 3 and has_session and len(consumer.offsets) > 1:
        consumer.forget([*consumer.offsets][chance.below(len(consumer.offsets))])
        consumer.ask(wait_ms=0)
        await consumer.take()
    elif step == 4:
        place = [*consumer.offsets][chance.below(len(consumer.offsets))]
        consumer.seek(place, chance.below(consumer.offsets[place] + 1))
        consumer.ask()
    else:
        consumer.ask()


@pytest.mark.parametrize("seed", range(6))
async def test_no_record_is_lost_doubled_or_late_whatever_consumers_do(world: World, seed: int) -> None:
    """Consumers ask, leave partitions, end sessions and change connections in any order, beside a producer.

    One that waits must be woken by any record that it has not read.
    """
    chance = SystemChance(seed)
    places = [(topic, number) for topic in ("classic", "diskless") for number in range(SMALL)]
    consumers = [
        Consumer(world, await world.connect(), wanted, version=version)
        for version in (12, 12, 11, 6)
        for wanted in (places, places[:1], places[1:4])
    ]
    for _ in range(120):
        consumer = consumers[chance.below(len(consumers))]
        if chance.below(10) < 4:
            await world.write(*places[chance.below(len(places))], b"%d" % chance.below(1000))
        elif not consumer.is_asking:
            await act(consumer, chance)
        elif consumer.has_unread:
            await consumer.take()
    for consumer in consumers:
        while consumer.has_unread:
            if not consumer.is_asking:
                consumer.ask()
            await consumer.take()
