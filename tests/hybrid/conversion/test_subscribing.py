"""The remote log metadata of a led partition is read as long as its conversion needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.conversion_api.values import BeginSegment
from strandline.errors import InvalidRequest
from strandline.hybrid.remote.topics import is_open_tier
from strandline.metadata import NewTopic, TopicImage
from strandline.model import TopicIdPartition, TopicPartition
from tests.hybrid.switching.world import switching_broker


async def test_metadata_that_a_refused_request_has_asked_for_is_not_read_for_ever(tmp_path: Path) -> None:
    async with switching_broker(tmp_path) as world:
        wish = NewTopic(name="t", num_partitions=1, replication_factor=1, configs={"diskless.enable": "true"})
        (topic,) = await world.broker.controller.create_topics([wish])
        assert isinstance(topic, TopicImage), topic
        await world.broker.diskless.wait_served(["t"])
        tier, partition = world.broker.tiered.storage, TopicIdPartition(topic.topic_id, TopicPartition("t", 0))
        assert is_open_tier(tier)
        request = BeginSegment(claimant="me", partition=partition, base_offset=0, last_offset=9, claim_ms=60_000)
        with pytest.raises(InvalidRequest):
            await world.broker.tiering.begin_segment(request)
        await world.until(lambda: not tier.subscriptions.users(partition))
