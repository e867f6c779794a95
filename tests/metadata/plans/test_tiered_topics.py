"""Which topics may be tiered, and what may be done to the topic of remote log metadata."""

from __future__ import annotations

import pytest

from strandline.config import Settings
from strandline.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicationFactor,
    StrandlineError,
    TopicDeletionDisabled,
)
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
from strandline.metadata.plans.rules import ConfigRules
from strandline.model import INTERNAL_TOPICS, REMOTE_LOG_METADATA_TOPIC
from tests.metadata.cluster import Cluster, open_cluster

SET = ConfigOperation.SET
ON = {"remote.log.storage.system.enable": "true"}
TIERED = {"remote.storage.enable": "true"}
DISABLED = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}


async def created(cluster: Cluster, name: str, **configs: str) -> TopicImage | StrandlineError:
    wish = NewTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    (answer,) = await cluster.controller.create_topics([wish])
    return answer


async def altered(cluster: Cluster, name: str, values: dict[str, str]) -> StrandlineError | None:
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    changes = tuple(ConfigChange(key, SET, value) for key, value in values.items())
    (answer,) = await cluster.controller.alter_configs([ConfigAlteration(resource=resource, changes=changes)])
    return answer


async def test_a_topic_is_not_tiered_where_the_broker_does_not_have_tiers() -> None:
    async with open_cluster() as cluster:
        answer = await created(cluster, "a", **TIERED)
        assert isinstance(answer, InvalidConfig)
        assert "while remote.log.storage.system.enable is false on the broker" in str(answer)
        assert isinstance(await created(cluster, "a"), TopicImage)
        assert isinstance(await altered(cluster, "a", TIERED), InvalidConfig)


async def test_a_topic_becomes_tiered_and_ceases_to_be_together_with_its_remote_segments() -> None:
    async with open_cluster(properties=ON) as cluster:
        assert isinstance(await created(cluster, "a"), TopicImage)
        assert await altered(cluster, "a", TIERED) is None
        refused = await altered(cluster, "a", {"remote.storage.enable": "false"})
        assert isinstance(refused, InvalidConfig)
        assert cluster.image.topic_overrides("a") == TIERED
        assert await altered(cluster, "a", DISABLED) is None
        assert await altered(cluster, "a", TIERED) is None


async def test_replacing_all_settings_without_the_flag_does_not_end_tiering() -> None:
    async with open_cluster(properties=ON) as cluster:
        await created(cluster, "a", **TIERED)
        resource = ConfigResource(ConfigResourceType.TOPIC, "a")
        wish = ConfigReplacement(resource=resource, values={"retention.ms": "5"})
        (answer,) = await cluster.controller.replace_configs([wish])
        assert isinstance(answer, InvalidConfig)
        assert cluster.image.topic_overrides("a") == TIERED


@pytest.mark.parametrize(
    "wish",
    [
        NewTopic(name="t", num_partitions=1, replication_factor=2, configs=TIERED),
        NewTopic(name="t", num_partitions=1, configs=TIERED),
        NewTopic(name="t", assignments={0: [1, 2]}, configs=TIERED),
    ],
    ids=["by number", "by default", "by assignment"],
)
async def test_a_tiered_topic_is_not_created_with_more_replicas_than_one(wish: NewTopic) -> None:
    async with open_cluster(brokers=(1, 2), properties={**ON, "default.replication.factor": "2"}) as cluster:
        (answer,) = await cluster.controller.create_topics([wish])
        assert isinstance(answer, InvalidReplicationFactor)
        assert "Tiered topic t has one replica in this version, not 2" in str(answer)
        assert not cluster.image.topics


async def test_a_topic_with_several_replicas_does_not_become_tiered() -> None:
    async with open_cluster(brokers=(1, 2), properties=ON) as cluster:
        await cluster.create("a", [[1, 2], [2, 1]])
        answer = await altered(cluster, "a", TIERED)
        assert isinstance(answer, InvalidConfig)
        assert "it has 2 replicas" in str(answer)
        assert cluster.image.topic_overrides("a") == {}


@pytest.mark.parametrize("name", sorted(INTERNAL_TOPICS | {REMOTE_LOG_METADATA_TOPIC}))
async def test_the_brokers_own_topics_are_never_tiered(name: str) -> None:
    async with open_cluster(properties=ON) as cluster:
        assert isinstance(await created(cluster, name, **TIERED), InvalidConfig)
        assert isinstance(await created(cluster, name), TopicImage)
        answer = await altered(cluster, name, TIERED)
        assert isinstance(answer, InvalidConfig)
        assert "cannot be tiered" in str(answer)


async def test_the_remote_log_metadata_topic_is_never_diskless() -> None:
    async with open_cluster(properties={**ON, "log.diskless.enable": "true"}) as cluster:
        assert isinstance(await created(cluster, REMOTE_LOG_METADATA_TOPIC), TopicImage)
        assert cluster.image.topic_overrides(REMOTE_LOG_METADATA_TOPIC) == {}


async def test_the_remote_log_metadata_topic_keeps_its_partitions() -> None:
    async with open_cluster(properties=ON) as cluster:
        await created(cluster, REMOTE_LOG_METADATA_TOPIC)
        (grown,) = await cluster.controller.create_partitions([NewPartitions(name=REMOTE_LOG_METADATA_TOPIC, count=2)])
        assert isinstance(grown, InvalidPartitions)
        (deleted,) = await cluster.controller.delete_topics([REMOTE_LOG_METADATA_TOPIC])
        assert isinstance(deleted, TopicDeletionDisabled)


async def test_without_tiers_the_remote_log_metadata_topic_can_be_deleted() -> None:
    async with open_cluster() as cluster:
        await created(cluster, REMOTE_LOG_METADATA_TOPIC)
        (deleted,) = await cluster.controller.delete_topics([REMOTE_LOG_METADATA_TOPIC])
        assert isinstance(deleted, TopicImage)


async def test_the_remote_log_metadata_topic_stays_as_long_as_there_is_a_tiered_topic() -> None:
    """The controller may be a broker without tiers, in a cluster in which others have them."""
    async with open_cluster(properties=ON) as cluster:
        without = ConfigRules(Settings())
        await created(cluster, "a")
        assert not without.has_tiers(cluster.image)
        await altered(cluster, "a", TIERED)
        assert without.has_tiers(cluster.image)


async def test_the_remote_log_metadata_topic_is_never_compacted() -> None:
    async with open_cluster(properties=ON) as cluster:
        await created(cluster, REMOTE_LOG_METADATA_TOPIC)
        for policy in ("compact", "compact,delete"):
            answer = await altered(cluster, REMOTE_LOG_METADATA_TOPIC, {"cleanup.policy": policy})
            assert isinstance(answer, InvalidConfig)
            assert "cannot be compacted" in str(answer)
        assert await altered(cluster, REMOTE_LOG_METADATA_TOPIC, {"retention.ms": "-1"}) is None
