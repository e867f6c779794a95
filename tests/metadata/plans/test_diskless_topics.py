"""Which topics are diskless: decided when they are created, stored, and never changed."""

from __future__ import annotations

import pytest

from strandline.errors import InvalidConfig, InvalidReplicationFactor, StrandlineError
from strandline.metadata import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigReplacement,
    ConfigResource,
    ConfigResourceType,
    NewPartitions,
    NewTopic,
    TopicImage,
)
from strandline.model import INTERNAL_TOPICS
from tests.metadata.cluster import Cluster, open_cluster

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")
SET, DELETE, APPEND, _ = ConfigOperation
DISKLESS = {"diskless.enable": "true"}
BY_DEFAULT = {"log.diskless.enable": "true"}


async def created(cluster: Cluster, topic: NewTopic) -> TopicImage | StrandlineError:
    (answer,) = await cluster.controller.create_topics([topic])
    return answer


async def altered(cluster: Cluster, resource: ConfigResource, *changes: ConfigChange) -> StrandlineError | None:
    (answer,) = await cluster.controller.alter_configs([ConfigAlteration(resource=resource, changes=changes)])
    return answer


async def test_a_diskless_topic_has_one_replica_whatever_the_default_is() -> None:
    async with open_cluster(brokers=(1, 2, 3), properties={"default.replication.factor": "3"}) as cluster:
        for name, factor in (("a", -1), ("b", 1)):
            topic = await created(
                cluster, NewTopic(name=name, num_partitions=4, replication_factor=factor, configs=DISKLESS)
            )
            assert isinstance(topic, TopicImage)
            assert [len(partition.replicas) for partition in topic.partitions] == [1] * 4
            assert cluster.image.topic_overrides(name) == DISKLESS


@pytest.mark.parametrize(
    "topic",
    [
        NewTopic(name="t", num_partitions=1, replication_factor=2, configs=DISKLESS),
        NewTopic(name="t", assignments={0: [1], 1: [1, 2]}, configs=DISKLESS),
        NewTopic(name="t", num_partitions=1, replication_factor=2),
    ],
    ids=["by number", "by assignment", "by the broker's default"],
)
async def test_more_replicas_than_one_are_refused_for_a_diskless_topic(topic: NewTopic) -> None:
    async with open_cluster(brokers=(1, 2), properties=BY_DEFAULT) as cluster:
        answer = await created(cluster, topic)
        assert isinstance(answer, InvalidReplicationFactor)
        assert "Diskless topic t has one replica, not 2" in str(answer)
        assert "Write 1 or -1 as its replication factor" in str(answer)


async def test_a_diskless_topic_takes_a_manual_assignment_of_one_replica_each() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        topic = await created(cluster, NewTopic(name="t", assignments={0: [2], 1: [1]}, configs=DISKLESS))
        assert isinstance(topic, TopicImage)
        assert [partition.leader for partition in topic.partitions] == [2, 1]
        (grown,) = await cluster.controller.create_partitions([NewPartitions(name="t", count=3)])
        assert isinstance(grown, TopicImage)
        assert len(grown.partitions[2].replicas) == 1


async def test_the_broker_default_is_written_down_with_the_topic() -> None:
    async with open_cluster() as cluster:
        await cluster.create("classic")
        assert await altered(cluster, ALL_BROKERS, ConfigChange("log.diskless.enable", SET, "true")) is None
        await cluster.create("diskless")
        await cluster.create("by-choice-classic", configs={"diskless.enable": "false"})
        assert await altered(cluster, ALL_BROKERS, ConfigChange("log.diskless.enable", DELETE)) is None
        await cluster.create("classic-again")
        assert {name: dict(cluster.image.topic_overrides(name)) for name in cluster.image.topics} == {
            "classic": {},
            "diskless": {"diskless.enable": "true"},
            "by-choice-classic": {"diskless.enable": "false"},
            "classic-again": {},
        }


async def test_compacted_and_internal_topics_stay_classic_under_the_broker_default() -> None:
    async with open_cluster(properties=BY_DEFAULT) as cluster:
        await cluster.create("compacted", configs={"cleanup.policy": "compact"})
        assert cluster.image.topic_overrides("compacted") == {"cleanup.policy": "compact"}
        for name in sorted(INTERNAL_TOPICS):
            await cluster.create(name)
            assert cluster.image.topic_overrides(name) == {}


async def test_topics_compacted_by_the_broker_default_stay_classic() -> None:
    async with open_cluster(properties=BY_DEFAULT | {"log.cleanup.policy": "compact"}) as cluster:
        await cluster.create("t")
        assert cluster.image.topic_overrides("t") == {}
        answer = await created(cluster, NewTopic(name="u", num_partitions=1, configs=DISKLESS))
        assert isinstance(answer, InvalidConfig)


async def test_an_internal_topic_cannot_be_asked_to_be_diskless() -> None:
    async with open_cluster() as cluster:
        name = min(INTERNAL_TOPICS)
        answer = await created(cluster, NewTopic(name=name, num_partitions=1, configs=DISKLESS))
        assert isinstance(answer, InvalidConfig)
        assert "is an internal topic" in str(answer)


@pytest.mark.parametrize(
    ("configs", "change"),
    [
        (DISKLESS, ConfigChange("diskless.enable", SET, "false")),
        (DISKLESS, ConfigChange("diskless.enable", DELETE)),
        (DISKLESS, ConfigChange("cleanup.policy", SET, "compact")),
        (DISKLESS, ConfigChange("cleanup.policy", APPEND, "compact")),
    ],
    ids=["switch off", "forget", "compact", "compact too"],
)
async def test_what_a_topic_is_cannot_be_changed_afterwards(configs: dict[str, str], change: ConfigChange) -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", configs=configs)
        answer = await altered(cluster, TOPIC, change)
        assert isinstance(answer, InvalidConfig)
        assert cluster.image.topic_overrides("t") == configs


async def test_other_settings_of_a_diskless_topic_can_be_changed() -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", configs=DISKLESS)
        assert await altered(cluster, TOPIC, ConfigChange("retention.ms", SET, "1000")) is None
        assert await altered(cluster, TOPIC, ConfigChange("diskless.enable", SET, "TRUE")) is None
        assert cluster.image.topic_overrides("t") == {"diskless.enable": "TRUE", "retention.ms": "1000"}


async def test_replacing_all_settings_keeps_the_topic_diskless() -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", configs=DISKLESS)
        wish = ConfigReplacement(resource=TOPIC, values={"retention.ms": "5"})
        assert await cluster.controller.replace_configs([wish]) == [None]
        assert cluster.image.topic_overrides("t") == {"diskless.enable": "true", "retention.ms": "5"}
        off = ConfigReplacement(resource=TOPIC, values={"diskless.enable": "false"})
        (answer,) = await cluster.controller.replace_configs([off])
        assert isinstance(answer, InvalidConfig)


@pytest.mark.parametrize(
    ("retention", "local"),
    [
        ({"retention.ms": "1000"}, {"local.retention.ms": "1001"}),
        ({"retention.bytes": "1000"}, {"local.retention.bytes": "-1"}),
        ({"retention.bytes": "1000"}, {"local.retention.bytes": "1001"}),
        ({}, {"local.retention.ms": str(8 * 24 * 3_600_000)}),
    ],
    ids=["longer", "for ever", "more", "longer than the broker's default"],
)
async def test_local_retention_of_a_diskless_topic_is_no_more_than_its_retention(
    retention: dict[str, str], local: dict[str, str]
) -> None:
    async with open_cluster() as cluster:
        refused = await created(cluster, NewTopic(name="t", num_partitions=1, configs=DISKLESS | retention | local))
        assert isinstance(refused, InvalidConfig)
        assert f"{min(local)} must be from 0 to {min(local).removeprefix('local.')} (" in str(refused)
        assert isinstance(
            await created(cluster, NewTopic(name="t", num_partitions=1, configs=DISKLESS | retention)), TopicImage
        )
        ((name, value),) = local.items()
        assert isinstance(await altered(cluster, TOPIC, ConfigChange(name, SET, value)), InvalidConfig)
        assert await altered(cluster, TOPIC, ConfigChange(name, SET, "500")) is None
        shorter = ConfigChange(name.removeprefix("local."), SET, "499")
        assert isinstance(await altered(cluster, TOPIC, shorter), InvalidConfig)


async def test_a_diskless_topic_may_keep_records_from_conversion_for_ever_whatever_its_retention() -> None:
    async with open_cluster() as cluster:
        asked = DISKLESS | {"retention.ms": "1000", "local.retention.ms": "-1"}
        assert isinstance(await created(cluster, NewTopic(name="t", num_partitions=1, configs=asked)), TopicImage)
        assert await altered(cluster, TOPIC, ConfigChange("local.retention.ms", SET, "0")) is None
        assert await altered(cluster, TOPIC, ConfigChange("local.retention.ms", SET, "-1")) is None


async def test_local_retention_that_brokers_have_by_default_counts_as_well() -> None:
    async with open_cluster(properties={"log.local.retention.ms": "86400000"}) as cluster:
        asked = DISKLESS | {"retention.ms": "3600000"}
        assert isinstance(await created(cluster, NewTopic(name="t", num_partitions=1, configs=asked)), InvalidConfig)
        asked |= {"local.retention.ms": "-2"}
        assert isinstance(await created(cluster, NewTopic(name="t", num_partitions=1, configs=asked)), TopicImage)
