"""Periodic work over many topics goes page by page, and each page meets the topics as they are by then."""

from __future__ import annotations

import asyncio

import pytest

from strandline.metadata import (
    EMPTY_IMAGE,
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    IsrChange,
    IsrMember,
    MetadataDelta,
    MetadataImage,
)
from strandline.metadata.controller import upkeep
from strandline.metadata.topic_map import indexed_topics
from strandline.model import NO_LEADER
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, open_cluster

NAMES = [f"t{number}" for number in range(5)]
PROPERTIES = {"leader.imbalance.check.interval.seconds": "2", "unclean.leader.election.interval.ms": "2000"}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "TOPICS_PER_STEP", 2)


async def set_in_sync(cluster: Cluster, name: str, leader: int, nodes: tuple[int, ...]) -> None:
    topic = cluster.image.topics[name]
    partition = topic.partitions[0]
    change = IsrChange(
        topic_id=topic.topic_id,
        partition=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=tuple(map(IsrMember, nodes)),
    )
    await cluster.controller.alter_partition(leader, cluster.image.brokers[leader].epoch, [change])


async def step(cluster: Cluster) -> list[MetadataDelta]:
    """Everything that is due two seconds later, and what it changes. After its first change the last topic goes."""
    deltas: list[MetadataDelta] = []
    deletions: list[asyncio.Task[object]] = []

    def follow(delta: MetadataDelta, _: MetadataImage) -> None:
        if delta.old is EMPTY_IMAGE:
            return
        deltas.append(delta)
        if not deletions:
            deletions.append(asyncio.ensure_future(cluster.controller.delete_topics([NAMES[-1]])))

    assert isinstance(cluster.clock, VirtualClock)
    cluster.clock.move(2.0)
    stop = cluster.loader.subscribe(follow)
    await cluster.controller.upkeep.step()
    await asyncio.gather(*deletions)
    stop()
    return [delta for delta in deltas if delta.changed_partitions]


async def test_leaders_are_balanced_page_by_page() -> None:
    async with open_cluster(brokers=(1, 2), properties=PROPERTIES) as cluster:
        for name in NAMES:
            await cluster.create(name, [[1, 2]])
        await cluster.beat(1, want_fence=True)
        await cluster.beat(1)
        for name in NAMES:
            await set_in_sync(cluster, name, 2, (2, 1))
        assert set(indexed_topics(cluster.image).astray) == set(NAMES)
        deltas = await step(cluster)
        assert [sorted(delta.changed_topics) for delta in deltas] == [["t0", "t1"], ["t2", "t3"]]
        assert [cluster.partition(name).leader for name in NAMES[:-1]] == [1, 1, 1, 1]
        assert not indexed_topics(cluster.image).astray


async def test_unclean_leaders_are_elected_page_by_page() -> None:
    async with open_cluster(brokers=(1, 2), properties=PROPERTIES) as cluster:
        for name in NAMES:
            await cluster.create(name, [[2, 1]])
            await set_in_sync(cluster, name, 2, (2,))
        await cluster.beat(2, want_fence=True)
        assert {cluster.partition(name).leader for name in NAMES} == {NO_LEADER}
        for name in NAMES:
            change = ConfigChange("unclean.leader.election.enable", ConfigOperation.SET, "true")
            resource = ConfigResource(ConfigResourceType.TOPIC, name)
            await cluster.controller.alter_configs([ConfigAlteration(resource=resource, changes=(change,))])
        deltas = await step(cluster)
        assert [sorted(delta.changed_topics) for delta in deltas] == [["t0", "t1"], ["t2", "t3"]]
        assert [cluster.partition(name).leader for name in NAMES[:-1]] == [1, 1, 1, 1]
        assert not indexed_topics(cluster.image).leaderless
