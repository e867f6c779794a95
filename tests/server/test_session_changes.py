"""Fetch sessions over partitions that change while the session rests: switched to diskless, created again, cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.broker import Broker
from strandline.config import Settings
from strandline.hybrid.diskless.engine import is_open_engine
from strandline.metadata.image import PartitionImage
from strandline.tasks import next_turn
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker import free_port
from tests.server.test_many_consumers import BY_NAME, LONG_MS, PATIENCE, Consumer, World
from tests.server.test_produce_memory import CREATE, DELETE
from tests.switched import is_switched

TOPIC = 2
SET = 0
COPIED = CreatableTopicConfig(name="remote.storage.enable", value="true")
CLASSIC = CreatableTopic(name="classic", num_partitions=2, replication_factor=1, configs=[COPIED])


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    properties = {
        "strandline.data.dir": str(tmp_path / "data"),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
        "remote.log.storage.system.enable": "true",
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        opened = World(broker)
        client = await opened.connect()
        response = await client.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=[CLASSIC]))
        assert [row.error_code for row in response.topics] == [0]
        try:
            yield opened
        finally:
            await opened.close()


async def at_rest(world: World) -> Consumer:
    """A consumer whose session has found its partitions idle."""
    consumer = Consumer(world, await world.connect(), [("classic", 0), ("classic", 1)])
    for number in range(3):
        await world.write("classic", 0, b"%d" % number)
    for _ in range(4):
        consumer.ask(wait_ms=1)
        await consumer.take()
    assert consumer.offsets["classic", 0] == 3
    return consumer


async def switch(world: World) -> None:
    change = AlterableConfig(name="diskless.enable", config_operation=SET, value="true")
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="classic", configs=[change])
    client = await world.connect()
    answer = await client.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[resource])
    )
    assert [row.error_code for row in answer.responses] == [0], answer


@pytest.mark.parametrize("waits", [True, False])
async def test_a_session_reads_on_behind_a_switch_to_diskless(world: World, waits: bool) -> None:
    consumer = await at_rest(world)
    if waits:
        consumer.ask()
        await world.all_wait(1)
    await switch(world)
    for number in range(3, 6):
        await world.write("classic", 0, b"%d" % number)
    while consumer.has_unread:
        if not consumer.is_asking:
            consumer.ask()
        await consumer.take()
    consumer.ask()
    await world.all_wait(1)
    await world.write("classic", 0, b"at the end")
    await consumer.take()
    assert consumer.offsets["classic", 0] == 7


async def test_nobody_asks_the_database_for_a_client_that_has_left(world: World) -> None:
    consumer = await at_rest(world)
    consumer.client.drop()
    await switch(world)
    async with asyncio.timeout(PATIENCE):
        while not all(is_switched(world.broker.partitions.find("classic", at)) for at in range(2)):
            await next_turn()
    tier = world.broker.diskless.engine
    assert is_open_engine(tier)
    assert tier.reader.status().watched == 0
    other = Consumer(world, await world.connect(), [("classic", 0), ("classic", 1)])
    while other.has_unread:
        other.ask()
        await other.take()
    other.ask()
    await world.all_wait(1)
    assert tier.reader.status().watched == 2
    other.client.drop()
    async with asyncio.timeout(PATIENCE):
        while tier.reader.status().watched:
            await next_turn()


@pytest.mark.parametrize("waits", [True, False])
async def test_a_session_hears_of_a_topic_that_was_created_again(world: World, waits: bool) -> None:
    consumer = await at_rest(world)
    if waits:
        consumer.ask()
        await world.all_wait(1)
    other = await world.connect()
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="classic")], timeout_ms=5000)
    await other.call(ApiKey.DELETE_TOPICS, DELETE + 1, gone)
    await other.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=[CLASSIC]))
    if not waits:
        consumer.ask(wait_ms=LONG_MS)
    async with asyncio.timeout(PATIENCE):
        response = await consumer.client.receive(ApiKey.FETCH, BY_NAME)
    [answered] = response.responses
    codes = {row.partition_index: ErrorCode(row.error_code) for row in answered.partitions}
    assert codes[0] in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OFFSET_OUT_OF_RANGE)
    consumer.epoch += 1
    world.written.clear()
    for place in consumer.offsets:
        consumer.seek(place, 0)
    consumer.ask(wait_ms=1)
    await consumer.take()
    consumer.ask()
    await world.all_wait(1)
    await world.write("classic", 0, b"of the new topic")
    await consumer.take()
    assert consumer.offsets["classic", 0] == 1


@pytest.mark.parametrize("min_bytes", [1, 1000])
async def test_whoever_waits_in_an_epoch_that_is_over_is_told_at_once(world: World, min_bytes: int) -> None:
    replica = world.classic("classic", 0).replica
    epoch = replica.leader_epoch
    reader = await world.connect()
    wanted = FetchPartition(partition=0, current_leader_epoch=epoch, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="classic", partitions=[wanted])]
    reader.send(ApiKey.FETCH, BY_NAME, FetchRequest(max_wait_ms=LONG_MS, min_bytes=min_bytes, topics=topics))
    await world.all_wait(1)
    node = (replica.node_id,)
    replica.follow(PartitionImage(0, node, node, replica.node_id, epoch + 1, replica.partition_epoch + 1))
    async with asyncio.timeout(PATIENCE):
        response = await reader.receive(ApiKey.FETCH, BY_NAME)
    assert response.responses[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_a_reader_whose_log_diverges_is_told_the_offsets_as_well(world: World) -> None:
    for number in range(3):
        await world.write("classic", 0, b"%d" % number)
    world.classic("classic", 0).replica.delete_records(1)
    reader = await world.connect()
    epoch = world.classic("classic", 0).leader_epoch
    wanted = FetchPartition(partition=0, fetch_offset=5, last_fetched_epoch=epoch, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="classic", partitions=[wanted])]
    response = await reader.call(ApiKey.FETCH, BY_NAME, FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics))
    [row] = response.responses[0].partitions
    assert (row.error_code, row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, epoch, 3)
    assert (row.high_watermark, row.last_stable_offset, row.log_start_offset) == (3, 3, 1)
