"""Fetches that memory cannot answer: how long they wait, what they miss, and which requests are served meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from strandline.broker import Broker
from strandline.config import Settings
from strandline.errors import StrandlineError
from strandline.hybrid.diskless.engine import is_open_engine
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.reading import PendingRead
from strandline.reads import ReadResult
from strandline.records import iter_headers
from strandline.server.handlers.fetch import poll
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker import free_port
from tests.server.test_produce_memory import CREATE, FETCH, PRODUCE, Client, production

LONG_MS = 60_000
PATIENCE = 20.0  # far less than a client waits, far more than an answer takes


class Gate:
    """Stands behind every read of the database and the object store, open unless a test closes it."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.reached = asyncio.Event()

    def close(self) -> None:
        self.open.clear()
        self.reached.clear()


class World:
    """A broker that keeps nothing of diskless topics in memory, with a topic of either kind."""

    def __init__(self, broker: Broker, gate: Gate) -> None:
        self.broker = broker
        self.gate = gate
        self._clients: list[Client] = []

    async def connect(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.broker.listeners[0].port))
        self._clients.append(client)
        return client

    async def close(self) -> None:
        self.gate.open.set()
        for client in self._clients:
            await client.close()

    async def write(self, topic: str, value: bytes = b"x") -> None:
        client = await self.connect()
        records = production(value).topic_data[0].partition_data[0].records
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
        client.send(ApiKey.PRODUCE, PRODUCE, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data]))
        assert (await client.produced())[0] == 0

    def forget_ends(self) -> None:
        """As after a restart: where the diskless log ends has to be asked for."""
        tier = self.broker.diskless.engine
        assert is_open_engine(tier)
        for partition in self.broker.diskless.by_key.values():
            tier.reader.forget(partition.id)


def fetch(*wanted: tuple[str, int], wait_ms: int = LONG_MS, min_bytes: int = 1) -> FetchRequest:
    topics = [
        FetchTopic(topic=topic, partitions=[FetchPartition(partition=0, fetch_offset=at, partition_max_bytes=1 << 20)])
        for topic, at in wanted
    ]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=1 << 26, topics=topics)


async def fetched(client: Client) -> dict[str, PartitionData]:
    """The next Fetch response, by topic."""
    async with asyncio.timeout(PATIENCE):
        response = await client.receive(ApiKey.FETCH, FETCH)
    return {topic.topic: topic.partitions[0] for topic in response.responses}


def offsets(row: PartitionData) -> list[int]:
    return [header.base_offset for _, header in iter_headers(row.records or b"")]


@pytest_asyncio.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    gate, read = Gate(), Partitions.read

    async def gated(
        partitions: Partitions, requests: Sequence[PendingRead], **limits: Any
    ) -> Sequence[ReadResult | StrandlineError]:
        results = await read(partitions, requests, **limits)
        gate.reached.set()
        await gate.open.wait()
        return results

    monkeypatch.setattr(Partitions, "read", gated)
    properties = {
        "strandline.data.dir": str(tmp_path / "data"),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
        "inkless.consume.cache.max.bytes": "0",
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        opened = World(broker, gate)
        client = await opened.connect()
        topics = [
            CreatableTopic(name="classic", num_partitions=1, replication_factor=1),
            CreatableTopic(
                name="diskless",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="diskless.enable", value="true")],
            ),
        ]
        response = await client.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=topics))
        assert [row.error_code for row in response.topics] == [0, 0]
        try:
            yield opened
        finally:
            await opened.close()


async def test_a_read_that_outlasts_the_clients_wait_is_not_thrown_away(world: World) -> None:
    await world.write("diskless")
    world.gate.close()
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("diskless", 0), wait_ms=1))
    await world.gate.reached.wait()
    for _ in range(5):  # the wait is over, and the classic topic of another client is served meanwhile
        await world.write("classic")
    world.gate.open.set()
    assert offsets((await fetched(client))["diskless"]) == [0]


async def test_partitions_in_memory_do_not_wait_for_longer_than_the_client_wants(world: World) -> None:
    await world.write("diskless")
    await world.write("classic")
    world.gate.close()
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("diskless", 0), ("classic", 0), wait_ms=50))
    found = await fetched(client)
    assert offsets(found["classic"]) == [0]
    slow = found["diskless"]
    assert (offsets(slow), slow.error_code, slow.high_watermark, slow.log_start_offset) == ([], 0, 1, 0)
    world.gate.open.set()
    client.send(ApiKey.FETCH, FETCH, fetch(("diskless", 0), ("classic", 1)))
    assert offsets((await fetched(client))["diskless"]) == [0]


async def test_both_kinds_come_together_if_the_read_is_in_time(world: World) -> None:
    await world.write("diskless")
    await world.write("classic")
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("classic", 0), ("diskless", 0)))
    found = await fetched(client)
    assert [offsets(found["classic"]), offsets(found["diskless"])] == [[0], [0]]


@pytest.mark.parametrize("topic", ["classic", "diskless"])
async def test_a_commit_during_a_read_that_found_nothing_wakes_the_poll(world: World, topic: str) -> None:
    world.forget_ends()
    world.gate.close()
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("diskless", 0), ("classic", 0)))
    await world.gate.reached.wait()
    await world.write(topic)
    world.gate.open.set()
    assert offsets((await fetched(client))[topic]) == [0]


async def test_a_client_that_leaves_during_a_read_affects_no_other_client(world: World) -> None:
    await world.write("diskless")
    world.gate.close()
    gone, stays = await world.connect(), await world.connect()
    gone.send(ApiKey.FETCH, FETCH, fetch(("diskless", 0)))
    await world.gate.reached.wait()
    gone.drop()
    stays.send(ApiKey.FETCH, FETCH, fetch(("diskless", 0)))
    world.gate.open.set()
    assert offsets((await fetched(stays))["diskless"]) == [0]


async def test_a_read_that_never_ends_is_answered_all_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll, "SLOW_READ_SECONDS", 0.05)
    await world.write("diskless")
    world.gate.close()
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("diskless", 0), wait_ms=10))
    row = (await fetched(client))["diskless"]
    assert (offsets(row), row.error_code, row.high_watermark) == ([], ErrorCode.NONE, 1)


async def test_records_below_min_bytes_are_waited_for_and_then_given(world: World) -> None:
    await world.write("diskless", b"x" * 100)
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("diskless", 0), wait_ms=200, min_bytes=1_000_000))
    assert offsets((await fetched(client))["diskless"]) == [0]
