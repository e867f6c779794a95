"""Produce requests and the memory they lie in, from the socket to the writer thread, in a broker in this process."""

from __future__ import annotations

import asyncio
import os
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from strandline.broker import Broker
from strandline.clock import SystemClock
from strandline.config import Settings
from strandline.log import PendingAppend
from strandline.reads import FetchIsolation
from strandline.records.batch import iter_headers
from strandline.records.builder import build_batch
from strandline.records.record import Record, read_records
from strandline.replication import Partition
from strandline.wire.api import ApiKey
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.delete_topics import DeleteTopicsRequest
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.registry import decode_response, encode_request
from tests.broker import free_port
from tests.server.test_connection import turn
from tests.waiting import until

LARGE = 300_000
PATIENCE = 20.0
PRODUCE, FETCH, CREATE, DELETE = 12, 12, 7, 5


class ClosedGate(PendingAppend):
    """A write that takes as long as the test likes: everything behind it in the writer thread waits."""

    __slots__ = ("_gate",)

    def __init__(self, gate: threading.Event) -> None:
        self._gate = gate

    def write(self) -> None:
        self._gate.wait(20)


class Client:
    """One connection, several requests in flight."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, api_key: ApiKey, version: int, message: Any) -> None:
        frame = encode_request(api_key, version, 1, "test", message)
        self._writer.write(struct.pack(">i", len(frame)) + frame)

    async def receive(self, api_key: ApiKey, version: int) -> Any:
        size = struct.unpack(">i", await self._reader.readexactly(4))[0]
        return decode_response(api_key, version, memoryview(await self._reader.readexactly(size)))[1]

    async def call(self, api_key: ApiKey, version: int, message: Any) -> Any:
        self.send(api_key, version, message)
        return await self.receive(api_key, version)

    async def all_produced(self, count: int) -> list[tuple[int, int]]:
        return [await self.produced() for _ in range(count)]

    def drop(self) -> None:
        """Leave without a word."""
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)

    async def produced(self) -> tuple[int, int]:
        """Error code and offset in the next Produce response."""
        response = await self.receive(ApiKey.PRODUCE, PRODUCE)
        [answer] = response.responses[0].partition_responses
        return answer.error_code, answer.base_offset


def production(value: bytes, *, timeout_ms: int = 30_000, acks: int = -1) -> ProduceRequest:
    records = bytes(build_batch([Record(0, SystemClock().now_ms(), None, value)]))
    data = TopicProduceData(name="topic", partition_data=[PartitionProduceData(index=0, records=records)])
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])


class World:
    """A broker with one topic of one partition."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.gate = threading.Event()
        self._clients: list[Client] = []

    async def connect(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.broker.listeners[0].port))
        self._clients.append(client)
        return client

    async def close(self) -> None:
        self.gate.set()
        for client in self._clients:
            await client.close()

    async def create_topic(self, **configs: str) -> Client:
        client = await self.connect()
        entries = [CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
        topic = CreatableTopic(name="topic", num_partitions=1, replication_factor=1, configs=entries)
        response = await client.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=[topic]))
        assert [row.error_code for row in response.topics] == [0]
        await until(lambda: len(self.broker.replicas) == 1)
        return client

    @property
    def partition(self) -> Partition:
        return self.broker.replicas.find("topic", 0)

    def close_gate(self) -> None:
        """From now on nothing large is written until `gate` is set."""
        self.partition.writer.submit(ClosedGate(self.gate), lambda error: None)

    def values(self) -> list[bytes]:
        result = self.partition.read(0, 1 << 26, isolation=FetchIsolation.HIGH_WATERMARK, min_one_message=True)
        assert result.records is not None
        data = result.records.read()
        return [
            bytes(record.value or b"")
            for position, header in iter_headers(data)
            for record in read_records(data[position : position + header.size])
        ]


def settings(directory: Path) -> Settings:
    return Settings.from_properties(
        {
            "strandline.data.dir": str(directory),
            "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
            "strandline.http.listen": "",
        }
    )


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with Broker(settings(tmp_path)) as broker:
        made = World(broker)
        try:
            yield made
        finally:
            await made.close()


@pytest.mark.plain
async def test_a_timeout_does_not_take_the_records_from_under_the_writer(world: World) -> None:
    """A request that waits for the disk is not answered before it is written, however impatient its client: its
    frame would go back to the pool, and the next request would be written in its place."""
    first, second = await world.create_topic(), await world.connect()
    world.close_gate()
    first.send(ApiKey.PRODUCE, PRODUCE, production(b"a" * LARGE, timeout_ms=0))
    await until(lambda: world.partition.log.reserved_end == 1)
    for _ in range(50):
        await turn()
    second.send(ApiKey.PRODUCE, PRODUCE, production(b"b" * LARGE, timeout_ms=0))
    await until(lambda: world.partition.log.reserved_end == 2)
    world.gate.set()
    assert [await first.produced(), await second.produced()] == [(0, 0), (0, 1)]
    assert [(value[:1], len(value)) for value in world.values()] == [(b"a", LARGE), (b"b", LARGE)]


async def test_an_answered_request_is_forgotten_long_before_its_timeout(world: World) -> None:
    client = await world.create_topic(max_message_bytes="10000000")

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    for _ in range(3):
        client.send(ApiKey.PRODUCE, PRODUCE, production(b"x" * 6_000_000))
        assert (await client.produced())[0] == 0
    before = resident()
    for _ in range(20):
        client.send(ApiKey.PRODUCE, PRODUCE, production(b"x" * 6_000_000))
        assert (await client.produced())[0] == 0
    assert resident() - before < 60_000_000


@pytest.mark.plain
async def test_a_client_that_left_while_its_records_are_written_leaves_nothing_behind(world: World) -> None:
    client, other = await world.create_topic(), await world.connect()
    world.close_gate()
    for value in (b"a" * LARGE, b"b" * 100, b"c" * LARGE):
        client.send(ApiKey.PRODUCE, PRODUCE, production(value))
    await until(lambda: world.partition.log.reserved_end == 3)
    client.drop()
    await until(lambda: len(world.broker.network.connections) == 1)
    other.send(ApiKey.PRODUCE, PRODUCE, production(b"d" * LARGE))
    await until(lambda: world.partition.log.reserved_end == 4)
    world.gate.set()
    assert await other.produced() == (0, 3)
    assert [value[:1] for value in world.values()] == [b"a", b"b", b"c", b"d"]
    assert world.broker.network.memory.frames.held == 0


@pytest.mark.plain
async def test_a_topic_deleted_while_its_records_are_written_is_unknown(world: World) -> None:
    client, other = await world.create_topic(), await world.connect()
    world.close_gate()
    client.send(ApiKey.PRODUCE, PRODUCE, production(b"a" * LARGE))
    await until(lambda: world.partition.log.reserved_end == 1)
    response = await other.call(ApiKey.DELETE_TOPICS, DELETE, DeleteTopicsRequest(topic_names=["topic"]))
    assert [row.error_code for row in response.responses] == [0]
    await until(lambda: len(world.broker.replicas) == 0)
    world.gate.set()
    assert (await client.produced())[0] == 3


@pytest.mark.plain
async def test_a_broker_that_stops_answers_what_it_has_appended(tmp_path: Path) -> None:
    """Else idempotent producers would send it again, and a restarted broker recognises only their newest batch."""
    async with Broker(settings(tmp_path)) as broker:
        world = World(broker)
        client = await world.create_topic()
        world.close_gate()
        for value in (b"a" * LARGE, b"b", b"c" * LARGE, b"d"):
            client.send(ApiKey.PRODUCE, PRODUCE, production(value))
        await until(lambda: world.partition.log.reserved_end == 4)
        answers = asyncio.create_task(client.all_produced(4))
        # The client goes on sending while the broker stops. That is not taken, but must not cost it the answers.
        loop = asyncio.get_running_loop()
        loop.call_later(0.6, world.gate.set)
        for number in range(70):
            loop.call_later(0.5 + number / 100, client.send, ApiKey.PRODUCE, PRODUCE, production(b"e" * 1000))
    assert await answers == [(0, 0), (0, 1), (0, 2), (0, 3)]
    await world.close()


async def test_a_fetch_session_does_not_keep_the_files_of_a_deleted_topic(world: World) -> None:
    client, other = await world.create_topic(), await world.connect()
    client.send(ApiKey.PRODUCE, PRODUCE, production(b"a"))
    await client.produced()
    topic = FetchTopic(topic="topic", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
    opened = FetchRequest(max_wait_ms=0, max_bytes=1000, session_epoch=0, topics=[topic])
    session = await other.call(ApiKey.FETCH, FETCH, opened)
    assert session.session_id > 0
    topic.partitions[0].fetch_offset = 1
    again = FetchRequest(max_wait_ms=0, max_bytes=1000, session_id=session.session_id, session_epoch=1, topics=[topic])
    assert (await other.call(ApiKey.FETCH, FETCH, again)).error_code == 0
    directory = str(world.partition.log.directory.parent)
    assert any(path.startswith(directory) and path.endswith(".log") for path in open_files())
    await client.call(ApiKey.DELETE_TOPICS, DELETE, DeleteTopicsRequest(topic_names=["topic"]))
    await until(lambda: len(world.broker.replicas) == 0)
    await turn()
    assert [path for path in open_files() if path.startswith(directory) and ".log" in path] == []


def open_files() -> list[str]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue
    return found


async def test_a_topic_that_is_deleted_is_not_kept_by_producers_that_wrote_to_it(world: World) -> None:
    """Its files would take room on the disk until somebody produces again."""
    client = await world.create_topic()
    directory = str(world.partition.log.directory)

    def open_files() -> list[str]:
        names = []
        for number in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # closed since they were listed
                names.append(os.readlink(f"/proc/self/fd/{number}"))
        return [name for name in names if directory in name]

    for _ in range(3):
        client.send(ApiKey.PRODUCE, PRODUCE, production(b"x"))
        assert (await client.produced())[0] == 0
    assert open_files()
    await client.call(ApiKey.DELETE_TOPICS, DELETE, DeleteTopicsRequest(topic_names=["topic"], timeout_ms=5000))
    async with asyncio.timeout(PATIENCE):
        await until(lambda: not open_files())
