"""Internal topics that have fewer replicas than configured get them when there are brokers for them."""

from __future__ import annotations

from collections import Counter

import pytest

from strandline.config import Settings
from strandline.metadata import IsrChange, IsrMember, NewTopic, PartitionImage, TopicImage, wanted_topic
from strandline.model import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    REMOTE_LOG_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from tests.metadata.cluster import Cluster, open_cluster

GROWING = sorted(INTERNAL_TOPICS | {REMOTE_LOG_METADATA_TOPIC})


async def created(cluster: Cluster, name: str, **properties: str) -> TopicImage:
    """The internal topic, as a broker creates it."""
    settings = Settings.from_properties({key.replace("_", "."): value for key, value in properties.items()})
    (topic,) = await cluster.controller.create_topics([wanted_topic(name, settings, cluster.image)])
    assert isinstance(topic, TopicImage), topic
    return topic


async def joined(cluster: Cluster, name: str, *, only: int | None = None) -> None:
    """The leaders of these partitions have all replicas in sync."""
    topic = cluster.image.topics[name]
    for partition in topic.partitions:
        if only is None or partition.partition == only:
            change = IsrChange(
                topic_id=topic.topic_id,
                partition=partition.partition,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                isr=tuple(IsrMember(node) for node in partition.replicas),
            )
            epoch = cluster.image.brokers[partition.leader].epoch
            (answer,) = await cluster.controller.alter_partition(partition.leader, epoch, [change])
            assert isinstance(answer, PartitionImage), answer


def least_in_sync(cluster: Cluster, name: str) -> str | None:
    return cluster.image.topic_overrides(name).get("min.insync.replicas")


@pytest.mark.parametrize("name", GROWING)
async def test_internal_topics_get_three_replicas_where_there_are_three_brokers(name: str) -> None:
    async with open_cluster(brokers=(1, 2, 3, 4)) as cluster:
        topic = await created(cluster, name)
        assert {len(partition.replicas) for partition in topic.partitions} == {3}
        offset = cluster.image.offset
        await cluster.controller.upkeep.step()
        assert cluster.image.offset == offset


@pytest.mark.parametrize("name", GROWING)
async def test_a_topic_made_by_a_single_broker_grows_with_the_cluster(name: str) -> None:
    async with open_cluster() as cluster:
        await created(cluster, name)
        await cluster.start_broker(2)
        await cluster.controller.upkeep.step()
        assert {partition.replicas for partition in cluster.image.topics[name].partitions} == {(1, 2)}
        await cluster.start_broker(3)
        await cluster.start_broker(4)
        await cluster.controller.upkeep.step()
        for partition in cluster.image.topics[name].partitions:
            assert partition.replicas[:2] == (1, 2)
            assert len(set(partition.replicas)) == 3
            assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 0, (1,))
            assert partition.partition_epoch == 2
        offset = cluster.image.offset
        await cluster.controller.upkeep.step()
        assert cluster.image.offset == offset


async def test_new_replicas_are_spread_evenly() -> None:
    async with open_cluster() as cluster:
        await created(cluster, GROUP_METADATA_TOPIC)
        for node_id in (2, 3, 4, 5, 6):
            await cluster.start_broker(node_id)
        await cluster.controller.upkeep.step()
        held = Counter(
            node for one in cluster.image.topics[GROUP_METADATA_TOPIC].partitions for node in one.replicas if node != 1
        )
        assert held == dict.fromkeys((2, 3, 4, 5, 6), 20)


async def test_new_replicas_go_to_racks_that_have_none() -> None:
    async with open_cluster(brokers=()) as cluster:
        for node_id, rack in ((1, "a"), (2, "a"), (3, "b"), (4, "b"), (5, "c")):
            await cluster.start_broker(node_id, rack=rack)
        await cluster.create(GROUP_METADATA_TOPIC, [[1], [3], [5]])
        await cluster.controller.upkeep.step()
        racks = {node_id: broker.rack for node_id, broker in cluster.image.brokers.items()}
        for partition in cluster.image.topics[GROUP_METADATA_TOPIC].partitions:
            assert {racks[node] for node in partition.replicas} == {"a", "b", "c"}


@pytest.mark.parametrize("name", [TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC])
async def test_the_least_number_in_sync_follows_when_replicas_have_joined_everywhere(name: str) -> None:
    async with open_cluster() as cluster:
        await created(cluster, name)
        assert least_in_sync(cluster, name) == "1"
        await cluster.start_broker(2)
        await cluster.start_broker(3)
        await cluster.controller.upkeep.step()
        await joined(cluster, name, only=0)
        await cluster.controller.upkeep.step()
        assert least_in_sync(cluster, name) == "1"  # more would stop the coordinators of the other partitions
        await joined(cluster, name)
        await cluster.controller.upkeep.step()
        assert least_in_sync(cluster, name) == "2"


async def test_the_least_number_in_sync_is_never_more_than_the_replicas_that_are_configured() -> None:
    properties = {"transaction.state.log.replication.factor": "1"}
    async with open_cluster(brokers=(1, 2), properties=properties) as cluster:
        await created(cluster, TRANSACTION_STATE_TOPIC, transaction_state_log_replication_factor="1")
        await cluster.controller.upkeep.step()
        assert least_in_sync(cluster, TRANSACTION_STATE_TOPIC) == "1"
        assert {one.replicas for one in cluster.image.topics[TRANSACTION_STATE_TOPIC].partitions} <= {(1,), (2,)}


async def test_fenced_brokers_and_brokers_that_stop_get_no_replicas() -> None:
    async with open_cluster() as cluster:
        await created(cluster, GROUP_METADATA_TOPIC)
        await cluster.start_broker(2)
        await cluster.start_broker(3)
        await cluster.create("led-by-3", [[3]])
        await cluster.beat(2, want_fence=True)
        await cluster.beat(3, want_shut_down=True)
        await cluster.controller.upkeep.step()
        assert {one.replicas for one in cluster.image.topics[GROUP_METADATA_TOPIC].partitions} == {(1,)}


async def test_a_partition_without_a_leader_waits_for_it() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create(GROUP_METADATA_TOPIC, [[1], [2]])
        await cluster.beat(2, want_fence=True)
        await cluster.start_broker(3)
        await cluster.controller.upkeep.step()
        assert cluster.partition(GROUP_METADATA_TOPIC, 0).replicas == (1, 3)
        assert cluster.partition(GROUP_METADATA_TOPIC, 1).replicas == (2,)
        await cluster.beat(2)
        await cluster.controller.upkeep.step()
        assert cluster.partition(GROUP_METADATA_TOPIC, 1).replicas[0] == 2
        assert len(cluster.partition(GROUP_METADATA_TOPIC, 1).replicas) == 3


async def test_topics_of_users_keep_their_replicas() -> None:
    async with open_cluster() as cluster:
        await cluster.controller.create_topics([NewTopic(name="t", num_partitions=3, replication_factor=1)])
        await cluster.start_broker(2)
        await cluster.controller.upkeep.step()
        assert {one.replicas for one in cluster.image.topics["t"].partitions} == {(1,)}
