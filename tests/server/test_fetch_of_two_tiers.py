"""A Fetch of a local partition and a diskless one, whose read a test holds up: what becomes of the local records."""

from __future__ import annotations

import asyncio
import gc
import os
from collections import Counter
from contextlib import suppress

import pytest

from strandline.clock import SystemClock
from strandline.hybrid.partition import ServedPartition
from strandline.log.reader import LogReader
from strandline.records import Record, build_batch, read_records
from strandline.replication import Partition
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.fetch import PartitionData
from tests.replication.conftest import image
from tests.server.test_many_consumers import counting
from tests.server.test_produce_memory import CREATE, DELETE, FETCH, Client
from tests.server.test_slow_reads import World, fetch, fetched, offsets, world
from tests.waiting import until

__all__ = ["world"]


def replica(world: World) -> Partition:
    return world.broker.replicas.by_key["classic", 0]


def follow(here: Partition, *, leader: int) -> None:
    """The next leader epoch begins, with this leader."""
    here.follow(
        image(
            leader=leader,
            isr=(leader,),
            epoch=here.leader_epoch + 1,
            replicas=here.replicas,
            version=here.partition_epoch + 1,
        )
    )


def values(row: PartitionData) -> list[bytes | None]:
    return [record.value for record in read_records(row.records or b"")]


async def ask(world: World, *topics: str, wait_ms: int = 60_000) -> Client:
    """A client whose request waits for the diskless records."""
    world.gate.close()
    client = await world.connect()
    client.send(ApiKey.FETCH, FETCH, fetch(*((topic, 0) for topic in topics), wait_ms=wait_ms))
    async with asyncio.timeout(20):
        await world.gate.reached.wait()
    return client


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the reads of local logs."""
    return counting(monkeypatch, LogReader, "read")


@pytest.mark.plain
@pytest.mark.parametrize("topics", [("classic", "diskless"), ("diskless", "classic")], ids=["first", "last"])
async def test_local_records_are_read_once_while_others_are_brought(
    world: World, reads: Counter[str], topics: tuple[str, str]
) -> None:
    await world.write("classic")
    await world.write("diskless")
    before = reads["read"]
    client = await ask(world, *topics)
    world.gate.open.set()
    found = await fetched(client)
    assert [offsets(found[topic]) for topic in topics] == [[0], [0]]
    assert reads["read"] == before + 1


@pytest.mark.plain
async def test_and_once_if_those_come_too_late(world: World, reads: Counter[str]) -> None:
    await world.write("classic")
    await world.write("diskless")
    before = reads["read"]
    found = await fetched(await ask(world, "classic", "diskless", wait_ms=20))
    assert [offsets(found["classic"]), offsets(found["diskless"])] == [[0], []]
    assert reads["read"] == before + 1


@pytest.mark.plain
async def test_a_log_that_was_cut_meanwhile_gives_what_it_has_now(world: World, reads: Counter[str]) -> None:
    """As a broker does that becomes a follower and leads again. The bytes of the old record are gone, and others are
    in their place."""
    await world.write("classic", b"old")
    await world.write("diskless")
    before = reads["read"]
    client = await ask(world, "classic", "diskless")
    here = replica(world)
    follow(here, leader=here.node_id + 1)
    here.log.truncate_to(0)
    follow(here, leader=here.node_id)
    now = SystemClock().now_ms()
    here.log.append(memoryview(bytearray(build_batch([Record(0, now, None, b"new")]))), leader_epoch=here.leader_epoch)
    here.log.update_high_watermark(1)
    world.gate.open.set()
    found = await fetched(client)
    assert [values(found["classic"]), offsets(found["diskless"])] == [[b"new"], [0]]
    assert reads["read"] == before + 2


async def test_a_broker_that_does_not_lead_any_more_gives_nothing_that_it_has_read(world: World) -> None:
    await world.write("classic")
    await world.write("diskless")
    client = await ask(world, "classic", "diskless")
    here = replica(world)
    follow(here, leader=here.node_id + 1)
    world.gate.open.set()
    found = await fetched(client)
    assert found["classic"].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [offsets(found["classic"]), offsets(found["diskless"])] == [[], [0]]


async def test_records_that_were_deleted_meanwhile_are_out_of_range(world: World) -> None:
    await world.write("classic")
    await world.write("diskless")
    client = await ask(world, "classic", "diskless")
    replica(world).log.delete_records(1)
    world.gate.open.set()
    found = await fetched(client)
    assert found["classic"].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert offsets(found["diskless"]) == [0]


@pytest.mark.plain
async def test_a_partition_that_is_served_by_other_parts_now_is_read_again(world: World, reads: Counter[str]) -> None:
    """As after a switch."""
    await world.write("classic")
    await world.write("diskless")
    before = reads["read"]
    client = await ask(world, "classic", "diskless")
    partitions = world.broker.partitions
    partitions.add(ServedPartition(partitions.find("classic", 0).newest))
    world.gate.open.set()
    found = await fetched(client)
    assert [offsets(found["classic"]), offsets(found["diskless"])] == [[0], [0]]
    assert reads["read"] == before + 2


def open_files_of_deleted_topics() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [name for name in found if "-delete/" in name and name.endswith(".log")]


@pytest.mark.parametrize("is_made_again", [False, True], ids=["deleted", "made again"])
async def test_a_topic_that_is_deleted_meanwhile_is_told_and_its_files_are_closed(
    world: World, is_made_again: bool
) -> None:
    await world.write("classic", b"of the old topic")
    await world.write("diskless")
    client = await ask(world, "classic", "diskless")
    other = await world.connect()
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="classic")], timeout_ms=5000)
    await other.call(ApiKey.DELETE_TOPICS, DELETE + 1, gone)
    await until(open_files_of_deleted_topics, "the answer holds the records")
    if is_made_again:
        await until(lambda: ("classic", 0) not in world.broker.replicas.by_key)
        made = CreatableTopic(name="classic", num_partitions=1, replication_factor=1)
        await other.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=[made]))
        await world.write("classic", b"of the new one")
    world.gate.open.set()
    found = await fetched(client)
    assert offsets(found["diskless"]) == [0]
    if is_made_again:
        assert values(found["classic"]) == [b"of the new one"]
    else:
        assert found["classic"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    gc.collect()
    await until(lambda: not open_files_of_deleted_topics())


@pytest.mark.parametrize("wait_ms", [300, 60_000], ids=["late", "in time"])
async def test_a_record_that_comes_while_others_are_brought_is_in_the_answer(world: World, wait_ms: int) -> None:
    """There was none when the partition was read."""
    await world.write("diskless")
    client = await ask(world, "classic", "diskless", wait_ms=wait_ms)
    await world.write("classic")
    if wait_ms > 1_000:
        world.gate.open.set()
    found = await fetched(client)
    assert offsets(found["classic"]) == [0]
    assert offsets(found["diskless"]) == ([0] if wait_ms > 1_000 else [])
