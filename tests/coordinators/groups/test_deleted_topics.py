"""Committed offsets end with their topic, by level: whoever was away when it was deleted finds out by its id."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import replace

import pytest

from strandline.coordinators.groups import CommitRequest, CommittedOffset, PartitionCommit
from strandline.coordinators.groups.schemas import (
    OffsetKey,
    OffsetValue,
    read_key,
    read_offset_value,
    write_offset_key,
    write_offset_value,
)
from strandline.coordinators.runtime import CoordinatorRecord
from strandline.errors import RequestTimedOut
from strandline.metadata.image import TopicImage
from strandline.model import ZERO_UUID, TopicPartition
from tests.coordinators.groups.known_topics import KnownTopics
from tests.coordinators.groups.members import GroupDriver
from tests.coordinators.runtime.appending import appended
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog

ORDERS_0 = TopicPartition("orders", 0)
SWEEP_S = 600


async def commit(group: GroupDriver, topics: KnownTopics, topic: str, offset: int, **changes: int) -> None:
    """As OffsetCommit does, whose handler adds the id of the topic in every version."""
    one = PartitionCommit(topic=topic, partition=0, offset=offset, topic_id=topics.id_of(topic))
    assert await group.coordinator.commit(replace(CommitRequest(group_id="g", offsets=(one,)), **changes)) == [None]  # type: ignore[arg-type]


async def read(group: GroupDriver) -> list[tuple[str, int]]:
    """What is stored, asked for in both ways."""
    everything = await group.coordinator.fetch("g", None)
    asked = await group.coordinator.fetch("g", [ORDERS_0])
    of_orders = [answer for answer in everything if answer.topic == "orders"]
    assert asked == (of_orders or [CommittedOffset(topic="orders", partition=0)])
    return [(answer.topic, answer.offset) for answer in everything]


def resign(group: GroupDriver) -> None:
    group.coordinator.runtime.resigned(group.coordinator.partition_for("g"))


async def elect(group: GroupDriver, leader_epoch: int) -> None:
    group.coordinator.runtime.elected(group.coordinator.partition_for("g"), leader_epoch)
    await group.coordinator.runtime.wait_loaded()
    await group.clock.settle()


def newest(log: MemoryCoordinatorLog, topic: str = "orders") -> OffsetValue | None:
    """What compaction would leave of the topic's offset."""
    found: bytes | None = None
    for _, records in log.appends:
        for record in records:
            key = read_key(record.key)
            if isinstance(key, OffsetKey) and key.topic == topic:
                found = record.value
    return None if found is None else read_offset_value(found)


async def test_offsets_of_a_deleted_topic_go(
    group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics
) -> None:
    await commit(group, topics, "orders", 1)
    await commit(group, topics, "other", 2)
    group.coordinator.apply(topics.delete("orders"), topics.image)
    assert await read(group) == [("other", 2)]  # at once, before the tombstone is written
    await group.clock.settle()
    assert newest(log) is None
    resign(group)
    await elect(group, 1)
    assert await read(group) == [("other", 2)]


class NotedTopics(dict[str, TopicImage]):
    """Topics of an image that remember which names were asked for."""

    def __init__(self, topics: Mapping[str, TopicImage]) -> None:
        super().__init__(topics)
        self.asked: list[str] = []

    def get(self, name: str, default: object = None) -> TopicImage | None:  # type: ignore[override]
        self.asked.append(name)
        return super().get(name)


async def test_a_deletion_looks_at_the_offsets_of_its_own_topic_only(
    group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics
) -> None:
    """A broker with hundreds of thousands of offsets would stand still at every deletion otherwise."""
    await commit(group, topics, "orders", 1)
    await commit(group, topics, "other", 2)
    delta = topics.delete("orders")
    noted = NotedTopics(topics.image.topics)
    topics.image = replace(topics.image, topics=noted)
    group.coordinator.apply(delta, topics.image)
    await group.clock.settle()
    assert newest(log) is None
    assert noted.asked == ["orders"]


@pytest.mark.parametrize("created_again", [False, True])
async def test_a_coordinator_that_was_away_drops_them_when_it_has_loaded(
    group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics, created_again: bool
) -> None:
    await commit(group, topics, "orders", 1)
    await commit(group, topics, "other", 2)
    resign(group)
    topics.delete("orders")
    if created_again:
        topics.create("orders")
    await elect(group, 1)
    assert await read(group) == [("other", 2)]
    assert newest(log) is None


async def test_a_topic_that_goes_while_the_partition_is_loaded(
    group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics
) -> None:
    await commit(group, topics, "orders", 1)
    resign(group)
    log.hold()
    group.coordinator.runtime.elected(group.coordinator.partition_for("g"), 1)
    group.coordinator.apply(topics.create_again("orders"), topics.image)
    log.release()
    await group.coordinator.runtime.wait_loaded()
    await group.clock.settle()
    assert await read(group) == []
    assert newest(log) is None


async def test_offsets_of_the_new_topic_stay(
    group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics
) -> None:
    await commit(group, topics, "orders", 7)
    group.coordinator.apply(topics.create_again("orders"), topics.image)
    await commit(group, topics, "orders", 3)
    assert await read(group) == [("orders", 3)]
    for epoch in (1, 2):
        resign(group)
        await elect(group, epoch)
        assert await read(group) == [("orders", 3)]


async def test_a_commit_that_is_under_way_when_its_topic_goes_is_dropped_when_it_is_written(
    group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics
) -> None:
    log.hold()
    late = asyncio.create_task(commit(group, topics, "orders", 7))
    await group.clock.settle()
    group.coordinator.apply(topics.create_again("orders"), topics.image)
    log.release()
    await late
    await group.clock.settle()
    assert await read(group) == []
    assert newest(log) is None


async def test_a_tombstone_never_comes_behind_a_commit_for_the_new_topic(
    group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics
) -> None:
    log.hold()
    late = asyncio.create_task(commit(group, topics, "orders", 7))
    await group.clock.settle()
    group.coordinator.apply(topics.create_again("orders"), topics.image)
    current = asyncio.create_task(commit(group, topics, "orders", 3))
    await group.clock.settle()
    group.coordinator.apply(topics.delete("other"), topics.image)  # another look meanwhile
    log.release()
    await asyncio.gather(late, current)
    await group.clock.settle()
    assert await read(group) == [("orders", 3)]
    stored = newest(log)
    assert stored is not None
    assert (stored.offset, stored.topic_id) == (3, topics.id_of("orders"))


async def test_tombstones_that_the_log_refuses_are_written_at_the_next_sweep(
    group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics
) -> None:
    await commit(group, topics, "orders", 7)
    log.fail_with = RequestTimedOut("too slow")
    group.coordinator.apply(topics.create_again("orders"), topics.image)
    await group.clock.settle()
    log.fail_with = None
    assert newest(log) is not None
    assert await read(group) == []
    await group.clock.advance(SWEEP_S + 1)
    assert newest(log) is None


async def test_an_offset_with_a_retention_of_its_own_ends_with_its_topic_as_well(
    group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics
) -> None:
    await commit(group, topics, "orders", 7, retention_time_ms=3_600_000)
    resign(group)
    await elect(group, 1)
    assert await read(group) == [("orders", 7)]
    resign(group)
    topics.create_again("orders")
    await elect(group, 2)
    assert await read(group) == []
    await commit(group, topics, "orders", 3, retention_time_ms=3_600_000)
    resign(group)
    await elect(group, 3)
    assert await read(group) == [("orders", 3)]
    await group.clock.advance(3_600 + SWEEP_S)
    assert await read(group) == []


async def append_without_id(group: GroupDriver, log: MemoryCoordinatorLog, offset: int) -> None:
    """As Kafka stored offsets before it had topic ids there."""
    key, value = OffsetKey("g", "orders", 0), OffsetValue(offset=offset, commit_timestamp=group.clock.now_ms())
    record = CoordinatorRecord(write_offset_key(key), write_offset_value(value), group.clock.now_ms())
    await appended(log, group.coordinator.partition_for("g"), [record], leader_epoch=0)


async def test_offsets_that_kafka_stored_without_an_id_count_and_get_one(
    group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics
) -> None:
    await append_without_id(group, log, 7)
    resign(group)
    await elect(group, 1)
    assert await read(group) == [("orders", 7)]
    stored = newest(log)
    assert stored is not None
    assert (stored.offset, stored.topic_id) == (7, topics.id_of("orders"))
    resign(group)
    topics.create_again("orders")
    await elect(group, 2)
    assert await read(group) == []
    assert newest(log) is None


async def test_ids_are_stored_once(group: GroupDriver, log: MemoryCoordinatorLog, topics: KnownTopics) -> None:
    await append_without_id(group, log, 7)
    resign(group)
    await elect(group, 1)
    appends = len(log.appends)
    resign(group)
    await elect(group, 2)
    assert len(log.appends) == appends


async def test_a_topic_without_a_known_id_counts_by_its_name(group: GroupDriver, topics: KnownTopics) -> None:
    topics.create("orders", uuid.UUID(int=77))
    assert await group.commit(("orders", 0, 5)) == [None]
    (answer,) = await group.coordinator.fetch("g", [ORDERS_0])
    assert (answer.offset, answer.topic_id) == (5, ZERO_UUID)
