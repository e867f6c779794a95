"""Which partitions that were classic before other brokers stand in for, when their leader is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemClock
from strandline.controlplane.database import Database
from strandline.controlplane.reads import SqlBatchReads
from strandline.controlplane.values import DisklessLog, MigrationState
from strandline.errors import NotLeaderOrFollower
from strandline.hybrid.diskless.prefix_watch import LOOK_SECONDS, SOON_SECONDS, PrefixWatch
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.parts.prefix_elsewhere import PrefixElsewhere
from strandline.metadata import TopicImage
from strandline.model import TopicIdPartition, TopicPartition
from strandline.reads import EARLIEST, FetchIsolation
from strandline.testing.clock import VirtualClock
from tests.controlplane.switching import boundary, progress, switch
from tests.hybrid.diskless.world import World, open_world
from tests.metadata.switching import EMPTY, set_to
from tests.waiting import until

OTHER = 9  # a broker that does not have the log
B0 = 100


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as world:
        yield world


async def requested(world: World, partitions: int = 1) -> tuple[TopicImage, int]:
    """A topic whose switch is requested, and the position of the request."""
    topic = await world.create("t", partitions, is_diskless=False)
    flagged = set_to("t", {"diskless.enable": "true"})
    assert await world.cluster.controller.alter_configs([flagged], checks=EMPTY) == [None]
    (position,) = [switch.position for switch in await world.plane.migrations.topic_migrations()]
    return topic, position


def key_of(topic: TopicImage, partition: int = 0) -> TopicIdPartition:
    return TopicIdPartition(topic.topic_id, TopicPartition("t", partition))


async def set_boundary(world: World, topic: TopicImage, position: int) -> None:
    assert await switch(world.plane, boundary(key_of(topic), B0, position=position, log_start=20)) == [None]


@asynccontextmanager
async def watched(world: World, *, is_prefix_served: bool = True) -> AsyncIterator[tuple[DisklessTopics, PrefixWatch]]:
    async with world.diskless(node_id=OTHER) as topics:
        yield (
            topics,
            PrefixWatch(
                topics.registry,
                world.plane.reads,
                learn=lambda log: topics.engine.learn(log),
                is_prefix_served=lambda: is_prefix_served,
                on_lost=topics.boundary_lost,
                clock=SystemClock(),
            ),
        )


def served(topics: DisklessTopics) -> ServedPartition:
    return ServedPartition(topics.by_key["t", 0])


def shown_leader(world: World, topics: DisklessTopics) -> int:
    """That is shown to clients while the broker that has the log is away."""
    return topics.as_served(world.cluster.image.topics["t"], {OTHER}).partitions[0].leader


async def test_nobody_stands_in_while_the_boundary_is_unknown_and_that_is_not_kept(world: World) -> None:
    topic, position = await requested(world)
    leader = topic.partitions[0].leader
    world.is_store_hanging = True
    async with world.diskless(node_id=OTHER) as topics:
        assert shown_leader(world, topics) == leader, "nothing is known of the partition yet"
    world.is_store_hanging = False
    async with watched(world) as (topics, watch):
        assert shown_leader(world, topics) == leader
        before = topics.view_version
        await set_boundary(world, topic, position)
        topics.look_for_boundaries()
        await until(lambda: ("t", 0) in topics.by_key)
        assert topics.view_version != before, "or an answer of before would be given for ever"
        await watch.look()
        assert shown_leader(world, topics) == leader, "its prefix is local alone"
        with pytest.raises(NotLeaderOrFollower):
            served(topics).read_now(20, 1000, isolation=FetchIsolation.HIGH_WATERMARK, min_one_message=True)


async def test_once_the_prefix_is_gone_others_stand_in_also_if_they_knew_it(world: World) -> None:
    topic, position = await requested(world)
    await set_boundary(world, topic, position)
    async with watched(world) as (topics, watch):
        await until(lambda: ("t", 0) in topics.by_key)
        await watch.look()
        assert shown_leader(world, topics) == topic.partitions[0].leader
        before = topics.view_version
        await world.plane.migrations.record_prefix(
            [progress(key_of(topic), MigrationState.DISKLESS_ONLY, log_start=B0)]
        )
        await watch.look()
        assert shown_leader(world, topics) == OTHER
        assert topics.view_version != before
        assert (await served(topics).list_offset(EARLIEST, isolation=FetchIsolation.HIGH_WATERMARK)).offset == B0
    async with watched(world) as (topics, _):  # a broker that did not know it
        await until(lambda: ("t", 0) in topics.by_key)
        assert shown_leader(world, topics) == OTHER


@pytest.mark.parametrize("is_prefix_served", [True, False])
async def test_a_prefix_that_is_proven_to_be_remote_is_stood_in_for_where_prefixes_are_served(
    world: World, monkeypatch: pytest.MonkeyPatch, is_prefix_served: bool
) -> None:
    topic, position = await requested(world)
    await set_boundary(world, topic, position)
    async with watched(world, is_prefix_served=is_prefix_served) as (topics, watch):
        await until(lambda: ("t", 0) in topics.by_key)
        before = topics.by_key["t", 0].older
        assert isinstance(before, PrefixElsewhere)
        monkeypatch.setattr(type(before.prefix), "look", lambda prefix, log: True)
        await watch.look()
        assert (shown_leader(world, topics) == OTHER) is is_prefix_served


async def test_a_boundary_that_was_taken_back_and_set_again_is_noticed_by_the_others(world: World) -> None:
    topic, position = await requested(world)
    await set_boundary(world, topic, position)
    async with watched(world) as (topics, watch):
        await until(lambda: ("t", 0) in topics.by_key)
        before = topics.by_key["t", 0]
        assert (await world.plane.migrations.reset_diskless_log_start_offset(key_of(topic), 4)).refusal is None
        await watch.look()
        assert ("t", 0) not in topics.by_key, "nothing may be written before its boundary is known again"
        assert not before.is_open
        assert isinstance(topics.why_missing("t", 0), NotLeaderOrFollower)
        again = boundary(key_of(topic), B0 + 20, position=position, epoch=4, log_start=B0 + 10)
        assert await switch(world.plane, again) == [None]
        topics.look_for_boundaries()
        await until(lambda: ("t", 0) in topics.by_key)
        assert topics.by_key["t", 0].boundary == B0 + 20
        await watch.look()
        assert topics.by_key["t", 0].boundary == B0 + 20


async def test_the_same_boundary_of_another_leader_is_noticed_by_the_others(world: World) -> None:
    topic, position = await requested(world)
    await set_boundary(world, topic, position)
    async with watched(world) as (topics, watch):
        await until(lambda: ("t", 0) in topics.by_key)
        before = topics.by_key["t", 0]
        assert (await world.plane.migrations.reset_diskless_log_start_offset(key_of(topic), 4)).refusal is None
        assert await switch(world.plane, boundary(key_of(topic), B0, position=position, epoch=4, log_start=20)) == [
            None
        ]
        await watch.look()
        assert not before.is_open, "epochs of records behind it are judged by the epoch of the boundary"
        topics.look_for_boundaries()
        await until(lambda: ("t", 0) in topics.by_key)
        await watch.look()
        assert topics.by_key["t", 0].is_open


async def test_a_boundary_may_be_taken_back_until_something_is_behind_it(world: World) -> None:
    topic, position = await requested(world)
    assert await switch(world.plane, boundary(key_of(topic), B0, position=position, log_start=B0)) == [None]
    async with watched(world) as (topics, watch):
        await until(lambda: ("t", 0) in topics.by_key)
        await watch.look()
        assert topics.registry.prefixes, "it has no prefix, and no record either"
        assert shown_leader(world, topics) == OTHER


class AskedReads(SqlBatchReads):
    """Notes which logs it is asked for, and answers what was true before, at once: virtual time waits for no thread."""

    known: Mapping[TopicIdPartition, DisklessLog]
    asked: list[list[int]]

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        self.asked.append(sorted(key.partition for key in partitions))
        return {key: self.known[key] for key in partitions}


async def test_partitions_that_are_not_urgent_are_not_asked_for_more_often_because_another_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, position = await requested(world, partitions=3)
    keys = [key_of(topic, number) for number in range(3)]
    for key in keys:
        assert await switch(world.plane, boundary(key, B0, position=position, log_start=20)) == [None]
    async with world.diskless(node_id=OTHER) as topics:
        await until(lambda: len(topics.registry.prefixes) == 3)
        reads, clock = AskedReads(Database(world.cluster.sql)), VirtualClock()
        reads.known, reads.asked = await world.plane.reads.logs(keys), []
        watch = PrefixWatch(
            topics.registry,
            reads,
            learn=lambda log: topics.engine.learn(log),
            is_prefix_served=lambda: True,
            on_lost=topics.boundary_lost,
            clock=clock,
        )
        urgent = topics.registry.prefixes["t", 1].prefix
        monkeypatch.setattr(type(urgent), "look", lambda prefix, log: False)  # its metadata is read all the time
        urgent.is_proving = True
        running = asyncio.create_task(watch.run())
        await clock.advance(LOOK_SECONDS)
        running.cancel()
    soon = round(LOOK_SECONDS / SOON_SECONDS)
    assert reads.asked == [[0, 1, 2], *[[1]] * (soon - 2), [0, 1, 2]], "none was looked at before the first time"
