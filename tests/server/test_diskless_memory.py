"""Memory of requests for diskless topics: counted while batches wait for their commit, then given back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.broker import Broker
from strandline.controlplane.commits import SqlBatchCommits
from strandline.hybrid.diskless.engine import is_open_engine
from strandline.wire.api import ApiKey
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.server.test_connection import turn
from tests.server.test_produce_memory import CREATE, LARGE, PRODUCE, Client, production, settings
from tests.waiting import until


class World:
    """A broker with one diskless topic, whose commits wait while `may_commit` is clear."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.may_commit = asyncio.Event()
        self._clients: list[Client] = []

    @property
    def held(self) -> int:
        return self.broker.network.memory.commits.held

    async def connect(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.broker.listeners[0].port))
        self._clients.append(client)
        return client

    async def close(self) -> None:
        self.may_commit.set()
        for client in self._clients:
            await client.close()


@pytest_asyncio.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    commit_files = SqlBatchCommits.commit_files
    async with Broker(settings(tmp_path)) as broker:
        opened = World(broker)

        async def gated(commits: SqlBatchCommits, *args: object, **how: object) -> object:
            await opened.may_commit.wait()
            return await commit_files(commits, *args, **how)  # type: ignore[arg-type]

        monkeypatch.setattr(SqlBatchCommits, "commit_files", gated)
        client = await opened.connect()
        config = CreatableTopicConfig(name="diskless.enable", value="true")
        topic = CreatableTopic(name="topic", num_partitions=1, replication_factor=1, configs=[config])
        response = await client.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=[topic]))
        assert [row.error_code for row in response.topics] == [0]
        try:
            yield opened
        finally:
            await opened.close()


@pytest.mark.parametrize("size", [100, LARGE], ids=["inside a shared buffer", "in a frame of its own"])
async def test_copies_are_counted_until_they_are_committed(world: World, size: int) -> None:
    client = await world.connect()
    for _ in range(3):
        client.send(ApiKey.PRODUCE, PRODUCE, production(b"x" * size))
    await until(lambda: 3 * size < world.held)
    assert world.held < 3 * (size + 200), "the copies and nothing besides: frames went back to the pool"
    world.may_commit.set()
    assert await client.all_produced(3) == [(0, 0), (0, 1), (0, 2)]
    assert world.held == 0


async def test_nothing_stays_counted_when_the_client_leaves(world: World) -> None:
    client = await world.connect()
    client.send(ApiKey.PRODUCE, PRODUCE, production(b"x" * LARGE))
    await until(lambda: world.held > LARGE)
    client.drop()
    world.may_commit.set()
    await until(lambda: world.held == 0)


async def test_a_refused_batch_is_not_counted(world: World) -> None:
    client = await world.connect()
    world.may_commit.set()
    client.send(ApiKey.PRODUCE, PRODUCE, production(b"x" * 2_000_000))
    assert (await client.produced())[0] == 10  # MESSAGE_TOO_LARGE
    assert world.held == 0


async def test_requests_wait_in_their_connections_before_batches_are_refused(world: World) -> None:
    """A slow store is not an error: what the broker has taken in is written, and more is read when there is room."""
    clients, each, size = 13, 12, 950_000
    opened = [await world.connect() for _ in range(clients)]
    for client in opened:
        for _ in range(each):
            client.send(ApiKey.PRODUCE, PRODUCE, production(b"x" * size))
    tier = world.broker.diskless.engine
    assert is_open_engine(tier)
    writer = tier.writer
    await until(lambda: world.broker.network.memory.commits.is_full)
    for _ in range(100):
        await turn()
    assert world.held < world.broker.settings.network.strandline_queued_max_diskless_bytes
    world.may_commit.set()
    for client in opened:
        assert [code for code, _ in await client.all_produced(each)] == [0] * each
    assert writer.status().totals.batches_over_limit == 0
