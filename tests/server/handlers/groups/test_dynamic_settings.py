"""Settings of groups that Kafka can change while it runs, and so can this broker: the assignment intervals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from strandline.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.server.handlers.configs.test_configs import BROKER, DELETE, DYNAMIC_DEFAULT, SET, change, entry

CONSUMER, SHARE = "group.consumer.assignment.interval.ms", "group.share.assignment.interval.ms"


@pytest.fixture
def assigns_at_once(client: Client) -> Iterator[None]:
    assert change(client, BROKER, "", (CONSUMER, SET, "0"), (SHARE, SET, "0")) is ErrorCode.NONE
    yield
    assert change(client, BROKER, "", (CONSUMER, DELETE, None), (SHARE, DELETE, None)) is ErrorCode.NONE


def join(client: Client, group_id: str, member_id: str, topic: str) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    response = client.request(ApiKey.CONSUMER_GROUP_HEARTBEAT, request)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response


def described(client: Client, group_id: str) -> DescribedGroup:
    (group,) = client.request(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(group_ids=[group_id])).groups
    assert isinstance(group, DescribedGroup)
    return group


def test_the_assignment_intervals_can_be_changed(client: Client) -> None:
    for name in (CONSUMER, SHARE):
        assert not entry(client, BROKER, "1", name).read_only
        assert change(client, BROKER, "", (name, SET, "15001")) is ErrorCode.INVALID_REQUEST


def test_a_changed_interval_counts_for_the_next_member(client: Client, topic: str, assigns_at_once: None) -> None:
    """With the default of a second, the members after the first would wait for their epoch."""
    assert entry(client, BROKER, "1", CONSUMER).config_source == DYNAMIC_DEFAULT
    client.request(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["at-once"]))
    for members in range(1, 5):
        answer = join(client, "at-once", f"m{members}", topic)
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        group = described(client, "at-once")
        assert len(group.members) == members
        assert answer.member_epoch == group.group_epoch == group.assignment_epoch
