"""State of share partitions ends with their topic, by level: what was missed when it was deleted goes later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from strandline.config.sharing import ShareSettings
from strandline.coordinators.share_states import ShareCoordinator, SharePartitionKey
from strandline.coordinators.share_states.schemas import tombstone
from strandline.errors import NotEnoughReplicas, StrandlineError
from strandline.testing.clock import VirtualClock
from tests.coordinators.groups.partitioned_topics import PartitionedTopics
from tests.coordinators.share_states.test_share_state_golden import PrunedMemoryLog

SWEEP_S = 300


class ShareBroker:
    """One broker that coordinates the share partitions of two topics."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.log = PrunedMemoryLog(1)
        self.topics = PartitionedTopics({"a": 2, "b": 1})
        self.coordinator = ShareCoordinator(self.log, self.topics, clock=self.clock, settings=ShareSettings())
        self.keys = {
            (topic, number): SharePartitionKey("g", self.topics.id_of(topic), number)
            for topic, number in (("a", 0), ("a", 1), ("b", 0))
        }

    async def initialize(self, topic: str, partition: int) -> None:
        await self.coordinator.initialize(self.keys[topic, partition], state_epoch=0, start_offset=0)

    async def delete(self, topic: str) -> None:
        delta = self.topics.delete(topic)
        self.coordinator.apply(delta, self.topics.image)
        await self.clock.settle()

    def known(self) -> set[tuple[str, int]]:
        """What has state; what is gone ended with a tombstone."""
        shard = self.coordinator.runtime.shard_of(0)
        known = {key for key, _ in shard}
        newest = {record.key: record.value for _, records in self.log.appends for record in records}
        written = {name for name, key in self.keys.items() if newest.get(tombstone(key)[0]) is not None}
        found = {name for name, key in self.keys.items() if key in known}
        assert written == found
        return found


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[ShareBroker]:
    broker = ShareBroker()
    async with broker.coordinator.running():
        broker.coordinator.runtime.elected(0, 0)
        await broker.coordinator.runtime.wait_loaded()
        yield broker


async def test_they_go_at_once(broker: ShareBroker) -> None:
    for name in broker.keys:
        await broker.initialize(*name)
    await broker.delete("a")
    assert broker.known() == {("b", 0)}


async def test_those_whose_end_the_log_refuses_go_by_time(broker: ShareBroker) -> None:
    for name in broker.keys:
        await broker.initialize(*name)
    broker.log.fail_with, broker.log.commits_at_once = NotEnoughReplicas("away"), False
    await broker.delete("a")
    await broker.clock.advance(SWEEP_S + 1)
    broker.log.fail_with = None
    assert broker.known() == {("a", 0), ("a", 1), ("b", 0)}
    await broker.clock.advance(SWEEP_S)
    assert broker.known() == {("b", 0)}


async def test_one_that_is_initialized_while_its_topic_goes(broker: ShareBroker) -> None:
    """Its first record is on its way when the topic is deleted, so that nobody knows of it then."""
    await broker.initialize("a", 0)
    broker.log.hold()
    late = asyncio.ensure_future(broker.initialize("a", 1))
    await broker.clock.settle()
    await broker.delete("a")
    broker.log.release()
    await late
    await broker.clock.settle()
    assert broker.known() == set()


async def test_one_whose_end_waits_behind_a_write_that_fails_goes_by_time(broker: ShareBroker) -> None:
    await broker.initialize("a", 0)
    broker.log.hold()
    read = asyncio.ensure_future(broker.coordinator.read(broker.keys["a", 0], leader_epoch=1))
    await broker.clock.settle()
    await broker.delete("a")
    broker.log.fail_with = NotEnoughReplicas("away")
    broker.log.release()
    with pytest.raises(StrandlineError):
        await read
    broker.log.fail_with = None
    assert broker.known() == {("a", 0)}
    await broker.clock.advance(SWEEP_S + 1)
    assert broker.known() == set()
