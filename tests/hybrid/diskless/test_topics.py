"""Diskless topics follow the metadata: by level, whatever was missed or cut short before."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemClock
from strandline.diskless.values import DisklessAppend, DisklessAppended
from strandline.errors import KafkaStorageError, NotLeaderOrFollower, UnknownTopicOrPartition
from strandline.health import WRITES
from strandline.hybrid.diskless import topics as diskless_topics
from strandline.hybrid.diskless.engine import is_open_engine
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.partition import ServedPartition
from strandline.log import AppendOrigin
from strandline.metadata import TopicImage
from strandline.model import TopicIdPartition, TopicPartition
from strandline.objects import ObjectStoreMisconfigured, ObjectStoreUnavailable
from strandline.objects.counting import DELETES
from strandline.reads import LATEST, FetchIsolation, ReadResult
from strandline.records import TimestampType, read_header
from strandline.replication import Append, Appended
from strandline.sql import StoreUnavailable
from tests.controlplane.making import batch as committed_batch
from tests.controlplane.making import wal
from tests.hybrid.diskless.world import World, open_world
from tests.replication.conftest import batch


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened
        assert not opened.failures


def ids(topic: TopicImage) -> set[TopicIdPartition]:
    return {TopicIdPartition(topic.topic_id, TopicPartition(topic.name, image.partition)) for image in topic.partitions}


async def test_nothing_is_opened_without_a_diskless_topic(world: World) -> None:
    await world.create("classic", is_diskless=False)
    async with world.diskless() as topics:
        await world.create("another", is_diskless=False)
        await world.delete("classic")
        await topics.wait_served(["another"])
        assert not topics.engine.is_open
        assert topics.why_missing("another", 0) is None
    assert world.times_opened == 0
    assert not world.directory.exists()


async def test_a_new_topic_has_logs_before_it_is_served(world: World) -> None:
    async with world.diskless() as topics:
        topic = await world.create("t", 3)
        assert isinstance(topics.why_missing("t", 0), KafkaStorageError)
        await topics.wait_served(["t"])
        assert set(topics.by_key) == {("t", 0), ("t", 1), ("t", 2)}
        assert set(await world.plane.reads.logs(ids(topic))) == ids(topic)
        assert topics.why_missing("t", 3) is None
        await world.grow("t", 5)
        assert isinstance(topics.why_missing("t", 4), NotLeaderOrFollower)
        await topics.wait_served(["t"])
        assert len(topics.by_key) == 5
    assert world.times_opened == 1


async def test_a_partition_that_this_broker_has_not_read_yet_has_a_stand_in(world: World) -> None:
    """Its log start is not known then: only a partition that was classic may have records elsewhere."""
    async with world.diskless(node_id=9) as topics:
        topic = await world.create("t")
        await topics.wait_served(["t"])
        assert not topics.by_key["t", 0].has_prefix
        (partition,) = topics.as_served(topic, {9}).partitions
        assert partition.leader == 9


async def test_topics_made_while_the_broker_was_away_are_served_after_its_start(world: World) -> None:
    topic = await world.create("t", 2)
    async with world.diskless() as topics:
        assert set(topics.by_key) == {("t", 0), ("t", 1)}
        assert set(await world.plane.reads.logs(ids(topic))) == ids(topic)


async def test_the_logs_of_a_deleted_topic_go(world: World) -> None:
    async with world.diskless() as topics:
        await world.create("t")
        await topics.wait_served(["t"])
        partition = topics.by_key["t", 0]
        await world.delete("t")
        assert not topics.by_key
        with pytest.raises(UnknownTopicOrPartition):
            partition.check_leader()
        await logs_are_gone(world)


async def test_a_commit_between_the_deletion_and_the_removal_of_the_log_leaves_nothing_in_memory(world: World) -> None:
    async with world.diskless(node_id=9) as topics:  # not the controller: the log stays for now
        await world.create("t")
        await topics.wait_served(["t"])
        partition, tier = topics.by_key["t", 0], topics.engine
        assert is_open_engine(tier)
        await append(topics, batch(b"a", b"b", b"c"))
        assert tier.reader.status().partitions == 1
        await world.delete("t")
        late: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        records = bytearray(batch(b"a", b"b", b"c"))
        tier.writer.append(
            DisklessAppend(partition.id, records, read_header(records), TimestampType.CREATE_TIME, 0), late.set_result
        )
        assert await late == DisklessAppended(3, -1, 0), "the control plane does not know of the deletion yet"
        status = tier.reader.status()
        assert (status.partitions, status.cache.hot_blocks) == (0, 0)


async def logs_are_gone(world: World) -> None:
    async with asyncio.timeout(15):
        while await world.plane.lifecycle.topic_ids():
            await SystemClock().sleep(0.01)


async def test_a_deletion_that_nobody_finished_is_finished_by_the_next_controller(world: World) -> None:
    topic = await world.create("t")
    await world.plane.lifecycle.create_logs(ids(topic))
    await world.delete("t")
    async with world.diskless() as topics:
        await logs_are_gone(world)
        assert topics.engine.is_open, "somebody has to delete the objects"


async def test_a_broker_that_is_not_the_controller_deletes_nothing(world: World) -> None:
    topic = await world.create("t")
    await world.plane.lifecycle.create_logs(ids(topic))
    await world.delete("t")
    async with world.diskless(node_id=9) as topics:
        await world.create("u")
        await topics.wait_served(["u"])
        assert topic.topic_id in await world.plane.lifecycle.topic_ids()


async def test_a_topic_made_again_under_its_name_is_another_one(world: World) -> None:
    async with world.diskless() as topics:
        for _ in range(3):
            topic = await world.create("t")
            await topics.wait_served(["t"])
            assert topics.by_key["t", 0].id.topic_id == topic.topic_id
            await world.delete("t")


@pytest.mark.parametrize("trouble", [StoreUnavailable("away"), ObjectStoreUnavailable("away")], ids=["sql", "objects"])
async def test_a_store_that_is_away_does_not_keep_the_broker_from_starting(world: World, trouble: Exception) -> None:
    await world.create("t")
    world.refuses_to_open = [trouble]
    async with world.diskless() as topics:
        error = topics.why_missing("t", 0)
        assert isinstance(error, KafkaStorageError)
        assert "away" in str(error)
        await topics.wait_served(["t"])
        assert set(topics.by_key) == {("t", 0)}


async def test_a_store_that_cannot_be_used_does_not_hold_up_the_start(world: World) -> None:
    await world.create("t")
    world.refuses_to_open = [ObjectStoreMisconfigured("belongs to another cluster")]
    async with world.diskless() as topics:
        assert "belongs to another cluster" in str(topics.why_missing("t", 0))
        await topics.wait_served(["t"])
        assert set(topics.by_key) == {("t", 0)}


async def test_a_store_that_cannot_be_used_is_tried_again_while_the_broker_runs(world: World) -> None:
    async with world.diskless() as topics:
        world.refuses_to_open = [ObjectStoreMisconfigured("no such bucket")]
        await world.create("t")
        await topics.wait_served(["t"])
        assert set(topics.by_key) == {("t", 0)}


async def test_a_broker_that_does_not_lead_a_partition_sends_clients_away_until_its_store_is_open(world: World) -> None:
    """It does not know where the partition became diskless; the broker that its metadata names does."""
    await world.create("t")
    world.refuses_to_open = [ObjectStoreUnavailable("away")]
    async with world.diskless(node_id=99) as topics:
        error = topics.why_missing("t", 0)
        assert isinstance(error, NotLeaderOrFollower)
        assert "away" in str(error)


async def test_a_broker_without_diskless_storage_says_so(world: World) -> None:
    await world.create("t")
    async with world.diskless(is_enabled=False) as topics:
        error = topics.why_missing("t", 0)
        assert isinstance(error, KafkaStorageError)
        assert "diskless.storage.system.enable is false on this broker" in str(error)
    assert world.times_opened == 0


async def test_settings_of_the_topic_come_into_force_while_it_is_served(world: World) -> None:
    async with world.diskless() as topics:
        await world.create("t", max_message_bytes="5000")
        await topics.wait_served(["t"])
        assert topics.by_key["t", 0].limits.batch.max_message_bytes == 5000
        assert not topics.engine.is_writing


async def test_sizes_are_those_of_the_control_plane(world: World) -> None:
    async with world.diskless() as topics:
        await world.create("t", 2)
        await topics.wait_served(["t"])
        records = batch(b"x" * 100)
        await append(topics, records)
        sizes = await topics.sizes(None)
        assert {key.partition: size for key, size in sizes.items()} == {0: len(records), 1: 0}
        assert await topics.sizes([("t", 1), ("u", 0)]) == {("t", 1): 0}
        assert await topics.sizes([("u", 0)]) == {}


async def append(topics: DisklessTopics, records: memoryview) -> Appended:
    """Write to t-0 and wait until it is committed."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def finished(error: Exception | None) -> None:
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    appended = topics.by_key["t", 0].appends.append(Append(records, acks=-1, origin=AppendOrigin.CLIENT, done=finished))
    assert not appended.is_done
    await done
    return appended


async def test_what_was_written_is_read_from_memory(world: World) -> None:
    async with world.diskless() as topics:
        await world.create("t")
        await topics.wait_served(["t"])
        partition = ServedPartition(topics.by_key["t", 0])
        appended = await append(topics, batch(b"a", b"b"))
        assert (appended.info.first_offset, appended.info.last_offset) == (0, 1)
        result = partition.read_now(0, 1000, isolation=FetchIsolation.HIGH_WATERMARK, min_one_message=True)
        assert isinstance(result, ReadResult), "what was just written is in memory"
        assert result.high_watermark == 2


async def test_an_epoch_that_only_the_records_know_is_known(world: World) -> None:
    """Another broker has newer metadata, and has committed: a consumer of its batch must not think the log was cut."""
    async with world.diskless() as topics:
        await world.create("t")
        await topics.wait_served(["t"])
        part = topics.by_key["t", 0]
        partition = ServedPartition(part)
        ours = partition.newest.leader_epoch
        assert (await partition.list_offset(LATEST, isolation=FetchIsolation.HIGH_WATERMARK)).leader_epoch == ours
        newer = committed_batch(part.id, 4, leader_epoch=ours + 2)
        await world.plane.commits.commit_files([wal("wal/of-another-broker", newer)])
        assert await partition.end_offset_for_epoch(ours + 2, current_leader_epoch=-1) == (ours + 2, 4)
        assert await partition.end_offset_for_epoch(ours + 3, current_leader_epoch=-1) == (-1, -1)
        assert partition.known_end_of_epoch(ours + 2)[0] == ours + 2
        latest = await partition.list_offset(LATEST, isolation=FetchIsolation.HIGH_WATERMARK)
        assert (latest.offset, latest.leader_epoch) == (4, ours + 2)


async def test_brokers_that_were_not_told_of_a_common_store_do_not_each_use_their_own(world: World) -> None:
    world.is_told_of_store = False
    await world.create("t")
    async with world.diskless() as topics:
        assert topics.engine.is_open, "a broker that is alone needs no other place"
    await world.cluster.start_broker(2)
    async with world.diskless() as topics:
        assert not topics.engine.is_open
        assert re.search(r"other brokers \(2\).*strandline\.objects\.url", str(topics.why_missing("t", 0)))
    world.is_told_of_store = True
    async with world.diskless() as topics:
        assert topics.engine.is_open
    world.properties = {"strandline.objects.url": "memory://"}
    async with world.diskless() as topics:
        assert "memory:// would be used by this broker alone" in str(topics.why_missing("t", 0))


async def test_a_broker_stops_while_the_store_does_not_answer(world: World) -> None:
    world.is_store_hanging = True
    async with asyncio.timeout(20):
        async with world.diskless() as topics:
            await world.create("t")
            await topics.wait_served(["t"], within=0.01)
            assert (world.times_opened, topics.engine.is_open) == (1, False)


async def test_logs_that_a_slow_broker_makes_for_a_deleted_topic_are_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diskless_topics, "_LOOK_AGAIN_S", 0.05)
    async with world.diskless() as topics:
        topic = await world.create("t")
        await topics.wait_served(["t"])
        await world.delete("t")
        await wait_gone(world)
        await world.plane.lifecycle.create_logs(ids(topic))
        await wait_gone(world)


async def wait_gone(world: World) -> None:
    async with asyncio.timeout(20):
        while await world.plane.lifecycle.topic_ids():
            await SystemClock().sleep(0.01)


async def test_a_store_that_cannot_delete_can_be_written_to(world: World) -> None:
    """A topic that waits for its switch would wait until the next object is to be deleted, which may take hours."""
    await world.create("t")
    async with world.diskless() as topics:
        await topics.wait_served(["t"])
        for kind, is_writable in ((DELETES, True), (WRITES, False)):
            for _ in range(3):
                world.health.failed("No answer.", kind)
            assert world.health.status().is_away
            assert (topics.why_not_writable() == "") == is_writable
