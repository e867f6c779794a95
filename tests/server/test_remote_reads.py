"""Fetch and ListOffsets of records in remote storage, which may be slow or dead: how long clients wait, and what they
get meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from strandline.broker import Broker
from strandline.clock import SystemClock
from strandline.config import Settings
from strandline.diskless.reader import DisklessReader
from strandline.errors import KafkaStorageError
from strandline.hybrid.remote.topics import is_open_tier
from strandline.metadata.image import PartitionImage
from strandline.remote.ports import RemoteStorageError
from strandline.remote.reader import RemoteLogReader, RemoteRead, TopicReads
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker import free_port
from tests.server.test_produce_memory import CREATE, FETCH
from tests.server.test_slow_reads import LONG_MS, PATIENCE, Gate, World, fetch, fetched, offsets

SEGMENTS = 3
LIST_OFFSETS = 10


class RemoteStore:
    """What tests do to the remote storage."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.reads = 0
        self.is_dead = False


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> RemoteStore:
    """The storage of the broker, through memory as with S3."""
    store, read = RemoteStore(), ObjectRemoteStorage.fetch_log_segment

    async def gated(storage: ObjectRemoteStorage, *arguments: Any) -> Any:
        store.reads += 1
        store.gate.reached.set()
        await store.gate.open.wait()
        if store.is_dead:
            raise RemoteStorageError("a test let the storage die")
        return await read(storage, *arguments)

    monkeypatch.setattr(ObjectRemoteStorage, "fetch_log_segment", gated)
    monkeypatch.setattr(ObjectRemoteStorage, "log_segment_path", lambda *_: None)
    return store


@pytest_asyncio.fixture
async def world(tmp_path: Path, store: RemoteStore, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A broker with a topic that is mostly remote, and a local one."""
    properties = {
        "strandline.data.dir": str(tmp_path / "data"),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
        "remote.log.storage.system.enable": "true",
        "remote.log.manager.task.interval.ms": "50",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "log.retention.check.interval.ms": "50",
        "log.initial.task.delay.ms": "0",
        **getattr(request, "param", {}),
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        opened = World(broker, store.gate)
        await make_topic(opened, "classic")
        await make_tiered(opened, "tiered")
        try:
            yield opened
        finally:
            await opened.close()


async def make_topic(world: World, name: str, **configs: str) -> None:
    rows = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=rows)
    client = await world.connect()
    response = await client.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=[topic]))
    assert response.topics[0].error_code == ErrorCode.NONE


async def make_tiered(world: World, name: str) -> None:
    """A topic of one record in each segment, all but the last one in remote storage only."""
    await make_topic(world, name, remote_storage_enable="true", internal_segment_bytes="200", local_retention_bytes="1")
    for _ in range(SEGMENTS + 1):
        await world.write(name, b"x" * 50)
    log = world.broker.replicas.by_key[name, 0].log
    async with asyncio.timeout(30):
        while log.local_log_start_offset < SEGMENTS:
            await asyncio.to_thread(lambda: None)


quick = pytest.mark.parametrize("world", [{"remote.fetch.max.wait.ms": "50"}], indirect=True, ids=["50ms"])
patient = pytest.mark.parametrize("world", [{"remote.fetch.max.wait.ms": "60000"}], indirect=True, ids=["60s"])


async def test_records_of_both_tiers_come_in_one_answer(world: World) -> None:
    await world.write("classic")
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0), ("classic", 0)))
    found = await fetched(client)
    assert [offsets(found["tiered"]), offsets(found["classic"])] == [[0], [0]]
    assert (found["tiered"].high_watermark, found["tiered"].log_start_offset) == (SEGMENTS + 1, 0)


async def test_a_consumer_goes_from_remote_to_local_records(world: World) -> None:
    client = await world.connect()
    seen: list[int] = []
    while len(seen) <= SEGMENTS:
        client.send(ApiKey.FETCH, FETCH, fetch(("tiered", len(seen))))
        seen += offsets((await fetched(client))["tiered"])
    assert seen == list(range(SEGMENTS + 1))


@quick
async def test_local_records_wait_for_remote_ones_no_longer_than_the_setting_says(world: World) -> None:
    await world.write("classic")
    world.gate.close()
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0), ("classic", 0), wait_ms=LONG_MS))
    found = await fetched(client)
    assert offsets(found["classic"]) == [0]
    slow = found["tiered"]
    assert (offsets(slow), slow.error_code, slow.high_watermark) == ([], ErrorCode.NONE, SEGMENTS + 1)


@quick
async def test_remote_records_that_come_too_late_are_there_for_the_next_fetch(world: World, store: RemoteStore) -> None:
    world.gate.close()
    client = await world.connect()
    for _ in range(3):
        client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0), wait_ms=1))
        assert offsets((await fetched(client))["tiered"]) == []
    world.gate.open.set()
    found: list[int] = []
    while not found:
        client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0), wait_ms=1))
        found = offsets((await fetched(client))["tiered"])
    assert found == [0]
    assert store.reads == 1


@patient
@pytest.mark.parametrize("wait_ms", [0, 1])
async def test_remote_records_are_waited_for_whatever_the_client_says(world: World, wait_ms: int) -> None:
    await world.write("classic")
    world.gate.close()
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0), ("classic", 0), wait_ms=wait_ms))
    await world.gate.reached.wait()
    for _ in range(5):  # other requests are served meanwhile
        await world.write("classic")
    world.gate.open.set()
    found = await fetched(client)
    assert offsets(found["tiered"]) == [0]
    assert offsets(found["classic"])[0] == 0


async def test_remote_records_below_min_bytes_are_given_at_once(world: World) -> None:
    client = await world.connect()
    for _ in range(2):  # the second time they are in memory
        client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0), wait_ms=LONG_MS, min_bytes=1_000_000))
        assert offsets((await fetched(client))["tiered"]) == [0]


def reads_of(world: World) -> Mapping[str, TopicReads]:
    """By topic, as they are counted."""
    tier = world.broker.tiered.storage
    assert is_open_tier(tier)
    return tier.reader.status().topics


@patient
async def test_remote_records_at_hand_are_read_and_counted_once_while_others_are_brought(world: World) -> None:
    await make_tiered(world, "known")
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("known", 0)))
    sent = len((await fetched(client))["known"].records or b"")
    client.send(ApiKey.FETCH, FETCH, fetch(("known", 0), ("tiered", 0)))
    found = await fetched(client)
    assert [offsets(found["known"]), offsets(found["tiered"])] == [[0], [0]]
    reads = reads_of(world)
    assert [(reads[topic].requests, reads[topic].bytes) for topic in ("known", "tiered")] == [(2, 2 * sent), (1, sent)]


@patient
async def test_an_error_of_remote_storage_is_counted_once_while_others_are_brought(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = RemoteLogReader._read_now

    def failing(reader: RemoteLogReader, request: RemoteRead, **limits: Any) -> Any:
        if request.partition.topic == "lost":
            raise KafkaStorageError("a test lost the segment")
        return read(reader, request, **limits)

    monkeypatch.setattr(RemoteLogReader, "_read_now", failing)
    await make_tiered(world, "lost")
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("lost", 0), ("tiered", 0)))
    found = await fetched(client)
    assert (found["lost"].error_code, offsets(found["tiered"])) == (ErrorCode.KAFKA_STORAGE_ERROR, [0])
    reads = reads_of(world)["lost"]
    assert (reads.requests, reads.errors) == (1, 1)


@quick
async def test_remote_records_that_come_too_late_are_not_counted_as_given(world: World) -> None:
    world.gate.close()
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0), wait_ms=1))
    assert offsets((await fetched(client))["tiered"]) == []
    world.gate.open.set()
    records = b""
    while not records:
        client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0), wait_ms=1))
        records = bytes((await fetched(client))["tiered"].records or b"")
    assert reads_of(world)["tiered"].bytes == len(records)


async def test_a_dead_store_is_an_error_for_the_remote_partition_only(world: World, store: RemoteStore) -> None:
    await world.write("classic")
    store.is_dead = True
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0), ("classic", 0)))
    found = await fetched(client)
    assert found["tiered"].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert offsets(found["classic"]) == [0]
    store.is_dead = False
    client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0)))
    assert offsets((await fetched(client))["tiered"]) == [0]


@patient
async def test_a_store_that_hangs_holds_up_only_its_readers(world: World) -> None:
    world.gate.close()
    waiting = [await world.connect() for _ in range(5)]
    for client in waiting:
        client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0)))
    await world.gate.reached.wait()
    other = await world.connect()
    for offset in range(10):
        await world.write("classic")
        other.send(ApiKey.FETCH, FETCH, fetch(("classic", offset)))
        assert offsets((await fetched(other))["classic"]) == [offset]
    world.gate.open.set()
    for client in waiting:
        assert offsets((await fetched(client))["tiered"]) == [0]


async def test_followers_are_told_that_the_records_are_remote(world: World) -> None:
    replica = world.broker.replicas.find("tiered", 0)
    me = replica.node_id
    replica.follow(PartitionImage(0, (me, 5), (me,), me, replica.leader_epoch, replica.partition_epoch + 1))
    client = await world.connect()
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="tiered", partitions=[partition])]
    client.send(ApiKey.FETCH, FETCH, FetchRequest(replica_id=5, max_wait_ms=0, max_bytes=1 << 20, topics=topics))
    assert (await fetched(client))["tiered"].error_code == ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE


def asked(timestamp: int, timeout_ms: int = 0) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = [ListOffsetsTopic(name="tiered", partitions=[partition])]
    return ListOffsetsRequest(replica_id=-1, topics=topics, timeout_ms=timeout_ms)


async def test_a_timestamp_is_found_in_remote_storage_first(world: World) -> None:
    client = await world.connect()
    response = await client.call(ApiKey.LIST_OFFSETS, LIST_OFFSETS, asked(1))
    row = response.topics[0].partitions[0]
    assert (row.error_code, row.offset, row.leader_epoch) == (0, 0, 0)


async def test_a_search_that_takes_too_long_ends_when_the_client_says(world: World) -> None:
    world.gate.close()
    client = await world.connect()
    response = await client.call(ApiKey.LIST_OFFSETS, LIST_OFFSETS, asked(1, timeout_ms=20))
    assert response.topics[0].partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_what_leaves_the_disk_during_a_search_is_searched_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, search = world.broker.replicas.by_key["tiered", 0].log, RemoteLogReader.offset_by_timestamp
    after = SystemClock().now_ms() + 1
    searches = 0

    async def meanwhile(*arguments: Any) -> Any:
        nonlocal searches
        searches += 1
        found = await search(*arguments)
        if searches == 1:
            while SystemClock().now_ms() < after:
                await asyncio.to_thread(lambda: None)
            for _ in range(2):
                await world.write("tiered", b"x" * 50)
            async with asyncio.timeout(PATIENCE):
                while log.local_log_start_offset <= SEGMENTS + 1:
                    await asyncio.to_thread(lambda: None)
        return found

    monkeypatch.setattr(RemoteLogReader, "offset_by_timestamp", meanwhile)
    client = await world.connect()
    response = await client.call(ApiKey.LIST_OFFSETS, LIST_OFFSETS, asked(after))
    row = response.topics[0].partitions[0]
    assert (row.error_code, row.offset) == (0, SEGMENTS + 1)


@pytest.mark.parametrize(
    "world", [{"remote.fetch.max.wait.ms": "50", "inkless.consume.cache.max.bytes": "0"}], indirect=True, ids=["50ms"]
)
async def test_remote_records_at_hand_wait_for_a_diskless_read_no_longer_than_the_setting_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_topic(world, "diskless", diskless_enable="true")
    await world.write("diskless")
    client = await world.connect()
    read: list[int] = []
    async with asyncio.timeout(PATIENCE):
        while not read:  # a read that takes longer than the setting says goes on into the cache
            client.send(ApiKey.FETCH, FETCH, fetch(("tiered", 0)))
            read = offsets((await fetched(client))["tiered"])
    assert read == [0]  # from now on in memory

    async def hanging(*arguments: Any, **limits: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(DisklessReader, "read", hanging)
    client.send(ApiKey.FETCH, FETCH, fetch(("diskless", 0), ("tiered", 0), wait_ms=LONG_MS))
    found = await fetched(client)
    assert [offsets(found["tiered"]), offsets(found["diskless"])] == [[0], []]
