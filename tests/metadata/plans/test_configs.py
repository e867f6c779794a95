"""Changing settings of topics and brokers through the controller."""

from __future__ import annotations

import pytest

from strandline.errors import InvalidConfig, InvalidRequest, StrandlineError, UnknownTopicOrPartition
from strandline.metadata import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigReplacement,
    ConfigResource,
    ConfigResourceType,
)
from tests.metadata.cluster import Cluster, open_cluster

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
BROKER = ConfigResource(ConfigResourceType.BROKER, "1")
ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")
SET, DELETE, APPEND, SUBTRACT = ConfigOperation


async def alter(cluster: Cluster, resource: ConfigResource, *changes: ConfigChange) -> StrandlineError | None:
    (answer,) = await cluster.controller.alter_configs([ConfigAlteration(resource=resource, changes=changes)])
    return answer


async def test_settings_are_set_and_deleted_one_by_one() -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", configs={"retention.ms": "1000"})
        assert await alter(cluster, TOPIC, ConfigChange("retention.bytes", SET, "5")) is None
        assert cluster.image.topic_overrides("t") == {"retention.ms": "1000", "retention.bytes": "5"}
        assert await alter(cluster, TOPIC, ConfigChange("retention.ms", DELETE)) is None
        assert await alter(cluster, TOPIC, ConfigChange("segment.ms", DELETE)) is None
        assert cluster.image.topic_overrides("t") == {"retention.bytes": "5"}


async def test_lists_are_appended_to_and_subtracted_from() -> None:
    async with open_cluster() as cluster:
        await cluster.create("t")
        assert await alter(cluster, TOPIC, ConfigChange("cleanup.policy", APPEND, "compact")) is None
        assert cluster.image.topic_overrides("t") == {"cleanup.policy": "delete,compact"}  # the default is the start
        assert await alter(cluster, TOPIC, ConfigChange("cleanup.policy", APPEND, "compact")) is None
        assert await alter(cluster, TOPIC, ConfigChange("cleanup.policy", SUBTRACT, "delete")) is None
        assert cluster.image.topic_overrides("t") == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ([ConfigChange("retention.ms", APPEND, "1")], InvalidConfig),
        ([ConfigChange("retention.ms", SUBTRACT, "1")], InvalidConfig),
        ([ConfigChange("nonsense", APPEND, "1")], InvalidConfig),
        ([ConfigChange("nonsense", SET, "1")], InvalidConfig),
        ([ConfigChange("retention.ms", SET, "often")], InvalidConfig),
        ([ConfigChange("retention.ms", SET, None)], InvalidRequest),
        ([ConfigChange("retention.ms", SET, "1"), ConfigChange("retention.ms", DELETE)], InvalidRequest),
        ([ConfigChange("retention.bytes", SET, "1"), ConfigChange("segment.ms", SET, "0")], InvalidConfig),
    ],
)
async def test_a_resource_is_changed_as_a_whole_or_not_at_all(
    changes: list[ConfigChange], kind: type[StrandlineError]
) -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", configs={"retention.ms": "7"})
        before = cluster.image
        assert type(await alter(cluster, TOPIC, *changes)) is kind
        assert cluster.image is before
        # A refused change leaves the topic as usable as before.
        assert await alter(cluster, TOPIC, ConfigChange("retention.ms", SET, "8")) is None


async def test_each_resource_gets_its_own_answer() -> None:
    async with open_cluster() as cluster:
        await cluster.create("t")
        change = [ConfigChange("retention.ms", SET, "5")]
        missing = ConfigResource(ConfigResourceType.TOPIC, "missing")
        answers = await cluster.controller.alter_configs(
            [ConfigAlteration(resource=missing, changes=change), ConfigAlteration(resource=TOPIC, changes=change)]
        )
        assert [type(answer) for answer in answers] == [UnknownTopicOrPartition, type(None)]
        answers = await cluster.controller.alter_configs([ConfigAlteration(resource=TOPIC, changes=change)] * 2)
        assert [type(answer) for answer in answers] == [InvalidRequest, InvalidRequest]


async def test_a_replacement_removes_what_it_does_not_name() -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", configs={"retention.ms": "7", "segment.ms": "8"})
        wish = ConfigReplacement(resource=TOPIC, values={"retention.ms": "9"})
        assert await cluster.controller.replace_configs([wish]) == [None]
        assert cluster.image.topic_overrides("t") == {"retention.ms": "9"}
        bad = ConfigReplacement(resource=TOPIC, values={"retention.ms": None})
        assert type((await cluster.controller.replace_configs([bad]))[0]) is InvalidRequest
        assert await cluster.controller.replace_configs([ConfigReplacement(resource=TOPIC, values={})]) == [None]
        assert cluster.image.topic_overrides("t") == {}


async def test_validate_only_changes_nothing() -> None:
    async with open_cluster() as cluster:
        await cluster.create("t")
        before = cluster.image
        good = ConfigAlteration(resource=TOPIC, changes=[ConfigChange("retention.ms", SET, "5")])
        bad = ConfigReplacement(resource=TOPIC, values={"retention.ms": "x"})
        assert await cluster.controller.alter_configs([good], validate_only=True) == [None]
        assert type((await cluster.controller.replace_configs([bad], validate_only=True))[0]) is InvalidConfig
        assert cluster.image is before
        assert await cluster.store.load() == before


async def test_brokers_have_settings_one_by_one_and_together() -> None:
    async with open_cluster() as cluster:
        assert await alter(cluster, ALL_BROKERS, ConfigChange("log.retention.ms", SET, "5000")) is None
        assert await alter(cluster, BROKER, ConfigChange("log.retention.ms", SET, "6000")) is None
        assert cluster.image.cluster_default_overrides() == {"log.retention.ms": "5000"}
        assert cluster.image.broker_overrides(1) == {"log.retention.ms": "6000"}
        assert cluster.image.broker_overrides(2) == {}


@pytest.mark.parametrize(
    ("resource", "change"),
    [
        (BROKER, ConfigChange("node.id", SET, "7")),
        (BROKER, ConfigChange("nonsense", SET, "7")),
        (BROKER, ConfigChange("log.retention.ms", SET, "soon")),
        (ConfigResource(ConfigResourceType.BROKER, "one"), ConfigChange("log.retention.ms", SET, "1")),
        (ConfigResource(ConfigResourceType.BROKER, "²"), ConfigChange("log.retention.ms", SET, "1")),
        (ConfigResource(ConfigResourceType.BROKER, "9"), ConfigChange("log.retention.ms", SET, "1")),
        (ConfigResource(ConfigResourceType.BROKER, "01"), ConfigChange("log.retention.ms", SET, "1")),
        (ConfigResource(ConfigResourceType.BROKER_LOGGER, "1"), ConfigChange("root", SET, "DEBUG")),
    ],
)
async def test_illegal_broker_settings_are_invalid_requests(resource: ConfigResource, change: ConfigChange) -> None:
    async with open_cluster() as cluster:
        before = cluster.image
        assert type(await alter(cluster, resource, change)) is InvalidRequest
        assert cluster.image is before


async def test_a_new_cluster_default_counts_in_the_next_election() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        assert await alter(cluster, ALL_BROKERS, ConfigChange("unclean.leader.election.enable", SET, "true")) is None
        await cluster.beat(2, want_fence=True)  # only 1 is in sync
        await cluster.beat(1, want_fence=True)
        assert cluster.partition("t").leader == -1
        await cluster.beat(2)
        assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))
