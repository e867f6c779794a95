"""The share group of the golden data, served again: our coordinator writes the batches that Kafka wrote."""

from __future__ import annotations

import hashlib
from pathlib import Path
from uuid import UUID

import pytest

from strandline.config.sharing import ShareSettings
from strandline.coordinators.share_states import (
    DeliveryBatch,
    DeliveryState,
    ShareCoordinator,
    SharePartitionKey,
    ShareStateSummary,
    ShareStateUpdate,
)
from strandline.errors import NotCoordinator, UnknownTopicOrPartition
from strandline.metadata import MetadataImage
from strandline.metadata.image import LeaderRecoveryState, PartitionImage, TopicImage
from strandline.model import uuid_from_text
from strandline.share_delivery.delivery import (
    Acknowledgement,
    AcknowledgeType,
    AcquireLimits,
    FetchedBatch,
    ShareDelivery,
)
from strandline.testing.clock import VirtualClock
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog
from tests.golden import kafka_classic as kafka_classic
from tests.golden import read_json

TOPIC_ID = uuid_from_text("znTrLlVPSZa1BAumJUnH0g")
KEY = SharePartitionKey("fx-share", TOPIC_ID, 0)
T = AcknowledgeType


class PrunedMemoryLog(MemoryCoordinatorLog):
    """A log in memory that remembers from where on it has records."""

    def __init__(self, partitions: int) -> None:
        super().__init__(partitions)
        self.starts: dict[int, int] = {}

    def delete_before(self, partition: int, offset: int, *, leader_epoch: int) -> None:
        self.starts[partition] = offset


class OneTopic:
    """`Images` with one topic."""

    def __init__(self, topic_id: UUID) -> None:
        partitions = tuple(PartitionImage(at, (0,), (0,), 0, 4, 0, LeaderRecoveryState.RECOVERED) for at in range(2))
        topic = TopicImage("fx-share", topic_id, partitions)
        self.image = MetadataImage(topics={topic.name: topic}, topics_by_id={topic_id: topic})


def coordinator_on(log: PrunedMemoryLog, clock: VirtualClock) -> ShareCoordinator:
    return ShareCoordinator(log, OneTopic(TOPIC_ID), clock=clock, settings=ShareSettings())


async def test_the_story_of_the_golden_group_gives_kafkas_bytes(kafka_classic: Path) -> None:
    path = kafka_classic / "expected" / "classic" / "records" / "__share_group_state-0.json"
    golden = [record for batch in read_json(path)["segments"][0]["batches"] for record in batch["records"]]
    clock = VirtualClock(golden[0]["ts"])
    log = PrunedMemoryLog(2)
    coordinator = coordinator_on(log, clock)
    async with coordinator.running():
        coordinator.runtime.elected(coordinator.partition_for(KEY), 0)
        await coordinator.runtime.wait_loaded()
        await coordinator.initialize(KEY, state_epoch=2, start_offset=-1)
        state = await coordinator.read(KEY, leader_epoch=4)
        delivery = ShareDelivery(0)
        limits = AcquireLimits(max_records=500, batch_size=500, max_locks=2000, max_deliveries=5)
        delivery.acquire("m", 0, [FetchedBatch(0, 126)], limits, deadline=1.0)
        said = [T.ACCEPT, T.ACCEPT, T.ACCEPT, T.RELEASE, T.REJECT] * 25 + [T.ACCEPT] * 2
        change = delivery.acknowledge("m", [Acknowledgement(0, 126, said)], max_deliveries=5, renewed_until=None)
        await coordinator.write(
            KEY,
            ShareStateUpdate(
                state_epoch=state.state_epoch,
                leader_epoch=4,
                start_offset=delivery.start,
                delivery_complete_count=delivery.settled_count,
                batches=tuple(change.batches()),
            ),
        )
    written = [record for _, records in log.appends for record in records]
    assert len(written) == len(golden) == 3
    for ours, kafkas in zip(written, golden, strict=True):
        value = ours.value or b""
        if "sha256" in kafkas["value"]:
            assert (len(value), hashlib.sha256(value).hexdigest()) == (
                kafkas["value"]["len"],
                kafkas["value"]["sha256"],
            )
    delivery.commit(change)
    assert (delivery.start, delivery.next_offset()) == (3, 3)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


async def test_another_broker_goes_on_and_this_one_says_so(clock: VirtualClock) -> None:
    log = PrunedMemoryLog(1)
    first, second = coordinator_on(log, clock), coordinator_on(log, clock)
    async with first.running(), second.running():
        partition = first.partition_for(KEY)
        first.runtime.elected(partition, 0)
        await first.runtime.wait_loaded()
        await first.initialize(KEY, state_epoch=1, start_offset=10)
        first.runtime.resigned(partition)
        with pytest.raises(NotCoordinator):
            await first.summary(KEY)
        second.runtime.elected(partition, 1)
        await second.runtime.wait_loaded()
        assert await second.summary(KEY) == ShareStateSummary(1, 0, 10, 0)
        with pytest.raises(UnknownTopicOrPartition):
            await second.summary(KEY._replace(partition=9))


async def test_the_log_is_pruned_by_time(clock: VirtualClock) -> None:
    log = PrunedMemoryLog(1)
    coordinator = coordinator_on(log, clock)
    async with coordinator.running():
        coordinator.runtime.elected(0, 0)
        await coordinator.runtime.wait_loaded()
        await coordinator.initialize(KEY, state_epoch=1, start_offset=0)
        await coordinator.read(KEY, leader_epoch=0)
        batch = DeliveryBatch(0, 0, DeliveryState.ACKNOWLEDGED, 1)
        await coordinator.write(KEY, ShareStateUpdate(leader_epoch=0, batches=(batch,)))
        assert log.starts == {}
        await clock.advance(700)
        assert log.starts == {0: 2}, "a snapshot of the cold share partition, then everything before it is deleted"
