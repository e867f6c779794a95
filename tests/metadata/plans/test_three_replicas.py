"""Partitions with three replicas: who leads when brokers go, return and stop, and the way back to preferred leaders."""

from __future__ import annotations

from strandline.metadata import IsrChange, IsrMember, NewTopic, PartitionImage, TopicImage
from strandline.metadata.plans.elections import ElectionType
from strandline.model import GROUP_METADATA_TOPIC, TopicPartition
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, open_cluster

THREE = (1, 2, 3)
T0 = TopicPartition("t", 0)


async def join(cluster: Cluster, name: str, *nodes: int) -> None:
    """The leader finds these replicas in sync, beside those that are."""
    topic, found = cluster.image.topics[name], cluster.partition(name)
    change = IsrChange(
        topic_id=topic.topic_id,
        partition=0,
        leader_epoch=found.leader_epoch,
        partition_epoch=found.partition_epoch,
        isr=tuple(IsrMember(node, cluster.image.brokers[node].epoch) for node in (*found.isr, *nodes)),
    )
    epoch = cluster.image.brokers[found.leader].epoch
    (answer,) = await cluster.controller.alter_partition(found.leader, epoch, [change])
    assert isinstance(answer, PartitionImage), answer


def state(cluster: Cluster, name: str = "t") -> tuple[int, tuple[int, ...], int]:
    """The leader, the in-sync set in the order of the replicas, and the leader epoch."""
    found = cluster.partition(name)
    return found.leader, found.isr, found.leader_epoch


async def test_the_next_replica_in_sync_leads_and_a_returning_one_has_to_catch_up_first() -> None:
    async with open_cluster(brokers=THREE) as cluster:
        await cluster.create("t", [[1, 2, 3]])
        await cluster.beat(1, want_fence=True)
        assert state(cluster) == (2, (2, 3), 1)
        await cluster.beat(1)
        assert state(cluster) == (2, (2, 3), 1), "it may lack records"
        await join(cluster, "t", 1)
        assert state(cluster) == (2, (1, 2, 3), 1), "an in-sync set that grows starts no epoch"
        await cluster.beat(2, want_fence=True)
        assert state(cluster) == (1, (1, 3), 2)


async def test_leaders_return_to_their_preferred_replicas_on_request() -> None:
    """As kafka-leader-election does."""
    async with open_cluster(brokers=THREE) as cluster:
        await cluster.create("t", [[1, 2, 3]])
        await cluster.beat(1, want_fence=True)
        await cluster.beat(1)
        await join(cluster, "t", 1)
        assert await cluster.controller.elect_leaders(ElectionType.PREFERRED, [T0]) == {T0: None}
        assert state(cluster) == (1, (1, 2, 3), 2)


async def test_leaders_return_to_their_preferred_replicas_by_themselves() -> None:
    properties = {"leader.imbalance.check.interval.seconds": "5"}
    async with open_cluster(brokers=THREE, properties=properties) as cluster:
        await cluster.create("t", [[1, 2, 3]])
        await cluster.beat(1, want_fence=True)
        await cluster.beat(1)
        for is_in_sync in (False, True):
            if is_in_sync:
                await join(cluster, "t", 1)
            clock = cluster.clock
            assert isinstance(clock, VirtualClock)
            clock.move(5.0)
            for node_id in THREE:
                await cluster.beat(node_id)
            await cluster.controller.upkeep.step()
            assert cluster.partition("t").leader == (1 if is_in_sync else 2)


async def test_a_broker_stops_when_others_lead_what_it_led_and_know_that() -> None:
    async with open_cluster(brokers=THREE) as cluster:
        await cluster.create("t", [[2, 3, 1]])
        await cluster.create("u", [[1, 2, 3]])
        reply = await cluster.beat(2, want_shut_down=True)
        assert not reply.should_shut_down
        assert state(cluster) == (3, (3, 1), 1)
        assert state(cluster, "u") == (1, (1, 3), 0), "a follower that stops holds up no producer"
        assert not (await cluster.beat(2, want_shut_down=True)).should_shut_down
        for node_id in (1, 3):
            await cluster.beat(node_id)
        assert (await cluster.beat(2, want_shut_down=True)).should_shut_down
        assert not cluster.image.is_active(2)


async def test_a_coordinator_has_a_successor_at_once() -> None:
    async with open_cluster(brokers=THREE) as cluster:
        wish = NewTopic(name=GROUP_METADATA_TOPIC, num_partitions=6, replication_factor=3)
        (topic,) = await cluster.controller.create_topics([wish])
        assert isinstance(topic, TopicImage)
        assert {partition.leader for partition in topic.partitions} == set(THREE)
        await cluster.beat(3, want_fence=True)
        assert {one.leader for one in cluster.image.topics[GROUP_METADATA_TOPIC].partitions} == {1, 2}
