"""When the consumer protocol is not offered: by the settings of the broker, or by the level of a feature."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.config import GroupSettings
from strandline.coordinators.groups import GroupCoordinator, HeartbeatRequest
from strandline.errors import InvalidRequest, UnsupportedVersion
from strandline.metadata.features import GROUP_VERSION
from strandline.testing.clock import VirtualClock
from tests.coordinators.groups.conftest import CountedIds
from tests.coordinators.groups.partitioned_topics import PartitionedTopics
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog

JOIN = HeartbeatRequest(group_id="g", member_id="m", topics=("orders",), rebalance_timeout_ms=1000, owned={})


async def answers(topics: PartitionedTopics, settings: GroupSettings) -> tuple[object, object]:
    """The errors of a heartbeat and of a description."""
    log = MemoryCoordinatorLog()
    coordinator = GroupCoordinator(log, topics, clock=VirtualClock(), ids=CountedIds(), settings=settings)
    async with coordinator.running():
        for partition in range(log.partition_count()):
            coordinator.runtime.elected(partition, 0)
        await coordinator.runtime.wait_loaded()
        wrong = await coordinator.consumer_heartbeat(JOIN._replace(rebalance_timeout_ms=-1))
        assert isinstance(wrong.error, InvalidRequest | UnsupportedVersion)
        heartbeat = await coordinator.consumer_heartbeat(JOIN)
        return heartbeat.error, coordinator.describe_consumer_group("g").error


async def test_by_default_it_is() -> None:
    assert await answers(PartitionedTopics({"orders": 1}), GroupSettings()) == (None, None)


@pytest.mark.parametrize("protocols", [("classic",), ("classic", "streams")])
async def test_not_among_the_protocols_of_the_broker(protocols: tuple[str, ...]) -> None:
    settings = replace(GroupSettings(), group_coordinator_rebalance_protocols=protocols)
    for error in await answers(PartitionedTopics({"orders": 1}), settings):
        assert isinstance(error, UnsupportedVersion)


async def test_not_with_level_0_of_the_feature() -> None:
    topics = PartitionedTopics({"orders": 1})
    administered = replace(topics.image.administered, feature_levels={GROUP_VERSION: 0})
    topics.image = replace(topics.image, administered=administered)
    for error in await answers(topics, GroupSettings()):
        assert isinstance(error, UnsupportedVersion)
