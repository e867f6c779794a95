"""Consumer groups in bytes: what members may say, and the codes that they get when they may not.

Every test passes on Apache Kafka 4.3.1 as well, with `group.consumer.assignment.interval.ms=0` and
`group.consumer.assignor.offload.enable=false`: point `STRANDLINE_TEST_BOOTSTRAP` at one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from strandline.wire.messages.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.heartbeat import HeartbeatRequest
from strandline.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from strandline.wire.messages.list_groups import ListGroupsRequest
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from strandline.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from strandline.wire.messages.sync_group import SyncGroupRequest
from tests.broker import Broker, broker_for_clients
from tests.waiting import wait_until
from tests.wirelevel.raw import RawConnection, connected, create_topic
from tests.wirelevel.replay import has_coordinator

SETTINGS = {"group.consumer.assignment.interval.ms": "0"}
PARTITIONS = 4


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_for_clients(tmp_path_factory.mktemp("broker") / "data", SETTINGS) as running:
        with connected(running.bootstrap) as connection:
            wait_until(lambda: has_coordinator(connection), what="the group coordinator")
        yield running


class RawGroup:
    """One group over one topic; the requests of its members."""

    def __init__(self, connection: RawConnection, group: str, topic: str) -> None:
        self.connection, self.group, self.topic = connection, group, topic
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        (found,) = connection.call(ApiKey.METADATA, 12, request).topics
        self.topic_id: UUID = found.topic_id

    def partitions(self, *numbers: int) -> list[TopicPartitions]:
        return [TopicPartitions(topic_id=self.topic_id, partitions=list(numbers))] if numbers else []

    def beat(self, member_id: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        fields = {"topic_partitions": None, **fields}
        version = fields.pop("version", 1)
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=member_id, member_epoch=epoch, **fields)
        answer = self.connection.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer

    def code(self, member_id: str, epoch: int, **fields: Any) -> ErrorCode:
        answer = self.beat(member_id, epoch, **fields)
        assert (answer.error_message is None) == (answer.error_code == 0)
        return ErrorCode(answer.error_code)

    def join(self, member_id: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        whole = {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": [self.topic],
            "topic_partitions": [],
            **fields,
        }
        return self.beat(member_id, 0, **whole)

    def commit(self, member_id: str, epoch: int, *numbers: int, version: int = 9) -> ErrorCode:
        offsets = [OffsetCommitRequestPartition(partition_index=number, committed_offset=5) for number in numbers]
        request = OffsetCommitRequest(
            group_id=self.group,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=offsets)],
        )
        (topic,) = self.connection.call(ApiKey.OFFSET_COMMIT, version, request).topics
        (code,) = {partition.error_code for partition in topic.partitions}
        return ErrorCode(code)

    def fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        group = OffsetFetchRequestGroup(group_id=self.group, member_id=member_id, member_epoch=epoch, topics=None)
        (answer,) = self.connection.call(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[group])).groups
        return ErrorCode(answer.error_code)


@pytest.fixture
def group(broker: Broker, unique_name: Callable[[], str]) -> Iterator[RawGroup]:
    with connected(broker.bootstrap) as connection:
        topic = unique_name()
        create_topic(connection, topic, partitions=PARTITIONS)
        yield RawGroup(connection, unique_name(), topic)


def assigned(answer: ConsumerGroupHeartbeatResponse) -> list[int] | None:
    """The partitions of the one topic; None: as before."""
    if answer.assignment is None:
        return None
    return sorted(number for topic in answer.assignment.topic_partitions for number in topic.partitions)


def two_members(group: RawGroup) -> None:
    """a: 0 and 1, b: 2 and 3, both in epoch 3."""
    assert assigned(group.join("a")) == [0, 1, 2, 3]
    first = group.join("b")
    assert (first.member_epoch, assigned(first)) == (3, [])
    told = group.beat("a", 2, topic_partitions=group.partitions(0, 1, 2, 3))
    assert (told.member_epoch, assigned(told)) == (2, [0, 1])
    done = group.beat("a", 2, topic_partitions=group.partitions(0, 1))
    assert (done.member_epoch, assigned(done)) == (3, None)
    assert assigned(group.beat("b", 3)) == [2, 3]


def test_two_members_share_a_topic(group: RawGroup) -> None:
    two_members(group)
    again = group.beat("a", 3)
    assert (again.error_code, again.member_id, again.member_epoch, again.assignment) == (0, "a", 3, None)
    assert again.heartbeat_interval_ms == 5000
    left = group.beat("b", -1)
    assert (left.error_code, left.member_id, left.member_epoch, left.assignment) == (0, "b", -1, None)
    assert assigned(group.beat("a", 3, topic_partitions=group.partitions(0, 1))) == [0, 1, 2, 3]


def test_epochs_fence(group: RawGroup) -> None:
    two_members(group)
    mine = group.partitions(0, 1)
    assert group.code("a", 4, topic_partitions=mine) is ErrorCode.FENCED_MEMBER_EPOCH
    assert group.code("a", 1, topic_partitions=mine) is ErrorCode.FENCED_MEMBER_EPOCH
    assert group.code("a", 2) is ErrorCode.FENCED_MEMBER_EPOCH
    assert group.code("a", 2, topic_partitions=group.partitions(0, 3)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert group.beat("a", 2, topic_partitions=mine).member_epoch == 3
    again = group.join("a")
    assert (again.error_code, again.member_epoch, assigned(again)) == (0, 3, [0, 1])
    assert group.code("nobody", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.code("nobody", -1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_requests_that_contradict_the_protocol(group: RawGroup) -> None:
    names = {"subscribed_topic_names": [group.topic], "rebalance_timeout_ms": 1000, "topic_partitions": []}
    assert group.code("", 0, **names) is ErrorCode.INVALID_REQUEST
    assert group.code("a", 0, **{**names, "topic_partitions": group.partitions(1)}) is ErrorCode.INVALID_REQUEST
    assert group.code("a", 0, **{**names, "topic_partitions": None}) is ErrorCode.INVALID_REQUEST
    assert group.code("a", 0, **{**names, "rebalance_timeout_ms": -1}) is ErrorCode.INVALID_REQUEST
    assert group.code("a", 0, **{**names, "subscribed_topic_names": None}) is ErrorCode.INVALID_REQUEST
    assert group.code("a", 0, **names, instance_id="") is ErrorCode.INVALID_REQUEST
    assert group.code("a", 0, **names, rack_id="") is ErrorCode.INVALID_REQUEST
    assert group.code("a", -2) is ErrorCode.INVALID_REQUEST
    assert group.code("a", 0, **names, server_assignor="best") is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert group.code("a", 0, **names, subscribed_topic_regex="(") is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert group.code("a", 0, **names, subscribed_topic_regex=r"(.)\1") is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert group.code("a", 1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert group.code("a", -1) is ErrorCode.GROUP_ID_NOT_FOUND
    group.group = ""
    assert group.code("a", 0, **names) is ErrorCode.INVALID_REQUEST


def test_in_version_0_the_broker_may_choose_the_id(group: RawGroup) -> None:
    answer = group.join("", version=0)
    assert answer.error_code == 0
    assert answer.member_id
    assert group.beat(answer.member_id, answer.member_epoch, version=0).error_code == 0


def test_static_members(group: RawGroup) -> None:
    assert assigned(group.join("a", instance_id="i")) == [0, 1, 2, 3]
    assert group.join("b", instance_id="i").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert group.code("b", 2, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert group.code("b", -2, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert group.code("a", -2, instance_id="other") is ErrorCode.UNKNOWN_MEMBER_ID
    left = group.beat("a", -2, instance_id="i")
    assert (left.error_code, left.member_epoch) == (0, -2)
    back = group.join("b", instance_id="i")
    assert (back.error_code, back.member_epoch, assigned(back)) == (0, 2, [0, 1, 2, 3])
    assert group.code("a", 2, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID


def test_commits_and_fetches_name_the_epoch(group: RawGroup) -> None:
    two_members(group)
    assert group.commit("a", 3, 0, 1) is ErrorCode.NONE
    assert group.commit("a", 2, 0, 1) is ErrorCode.NONE, "the member owned them in the epoch before"
    assert group.commit("a", 2, 0, 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert group.commit("b", 2, 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert group.commit("a", 4, 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert group.commit("nobody", 3, 0) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.commit("", -1, 0) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.commit("a", 3, 0, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert group.fetch(None, -1) is ErrorCode.NONE
    assert group.fetch("a", 3) is ErrorCode.NONE
    assert group.fetch("a", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert group.fetch("nobody", 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_consumer_groups_are_not_described_as_classic_ones(group: RawGroup) -> None:
    two_members(group)
    call = group.connection.call
    (classic,) = call(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(groups=[group.group])).groups
    assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert classic.error_message == f"Group {group.group} is not a classic group."
    names = [group.group, "absent"]
    described = call(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(group_ids=names)).groups
    found, absent = sorted(described, key=lambda one: names.index(one.group_id))
    assert (absent.error_code, absent.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group absent not found.")
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 3, 3)
    assert found.assignor_name == "uniform"
    rows = {member.member_id: member for member in found.members}
    assert rows.keys() == {"a", "b"}
    assert (rows["a"].member_epoch, rows["a"].member_type, rows["a"].client_id) == (3, 1, "raw")
    for assignment in (rows["a"].assignment, rows["a"].target_assignment):
        (topic,) = assignment.topic_partitions
        assert (topic.topic_id, topic.topic_name, sorted(topic.partitions)) == (group.topic_id, group.topic, [0, 1])
    assert (list(rows["a"].subscribed_topic_names), rows["a"].subscribed_topic_regex) == ([group.topic], "")


def test_lists_and_deletions(group: RawGroup) -> None:
    two_members(group)
    call = group.connection.call

    def listed(**filters: Any) -> list[tuple[str, str, str]]:
        answer = call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(**filters))
        return [
            (one.group_state, one.group_type, one.protocol_type) for one in answer.groups if one.group_id == group.group
        ]

    everything = [("Stable", "consumer", "consumer")]
    assert listed() == listed(types_filter=["Consumer"]) == listed(states_filter=["stable"]) == everything
    assert listed(types_filter=["classic"]) == listed(states_filter=["Empty"]) == []

    def delete() -> int:
        (result,) = call(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=[group.group])).results
        return int(result.error_code)

    assert group.commit("a", 3, 0) is ErrorCode.NONE
    wish = OffsetDeleteRequestTopic(name=group.topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    deleted = call(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id=group.group, topics=[wish]))
    assert deleted.error_code == 0
    assert deleted.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete() == ErrorCode.NON_EMPTY_GROUP
    for member_id in ("a", "b"):
        assert group.code(member_id, -1) is ErrorCode.NONE
    assert listed() == [("Empty", "consumer", "consumer")]
    assert delete() == ErrorCode.NONE
    assert delete() == ErrorCode.GROUP_ID_NOT_FOUND


def subscription(topic: str) -> bytes:
    return b"\0\0" + (1).to_bytes(4, "big") + len(topic).to_bytes(2, "big") + topic.encode() + b"\xff\xff\xff\xff"


def test_a_classic_member_in_a_consumer_group(group: RawGroup) -> None:
    assert assigned(group.join("a")) == [0, 1, 2, 3]
    call = group.connection.call

    def join(member_id: str, **fields: Any) -> Any:
        whole = {
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=subscription(group.topic))],
            **fields,
        }
        request = JoinGroupRequest(
            group_id=group.group,
            member_id=member_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            **whole,
        )
        return call(ApiKey.JOIN_GROUP, 9, request)

    def sync(generation: int) -> Any:
        request = SyncGroupRequest(
            group_id=group.group,
            member_id=member_id,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name="range",
        )
        return call(ApiKey.SYNC_GROUP, 5, request)

    def heartbeat(name: str, generation: int) -> int:
        request = HeartbeatRequest(group_id=group.group, member_id=name, generation_id=generation)
        return int(call(ApiKey.HEARTBEAT, 4, request).error_code)

    named = join("")
    assert named.error_code == ErrorCode.MEMBER_ID_REQUIRED
    member_id: str = named.member_id
    assert join(member_id, protocol_type="connect").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    joined = join(member_id)
    assert (joined.error_code, joined.generation_id, joined.leader, joined.members) == (0, 3, "", [])
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    synced = sync(3)
    assert (synced.error_code, bytes(synced.assignment)) == (0, b"\0\0" + b"\0\0\0\0" + b"\xff\xff\xff\xff")
    assert heartbeat(member_id, 3) == ErrorCode.NONE, "it waits for the other"
    group.beat("a", 2, topic_partitions=group.partitions(0, 1, 2, 3))
    group.beat("a", 2, topic_partitions=group.partitions(0, 1))
    assert heartbeat(member_id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    assert heartbeat(member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    assert heartbeat("a", 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert join(member_id).generation_id == 3
    synced = sync(3)
    wanted = b"\0\0" + (1).to_bytes(4, "big") + len(group.topic).to_bytes(2, "big") + group.topic.encode()
    wanted += (2).to_bytes(4, "big") + (2).to_bytes(4, "big") + (3).to_bytes(4, "big") + b"\xff\xff\xff\xff"
    assert bytes(synced.assignment) == wanted
    assert heartbeat(member_id, 3) == ErrorCode.NONE
    assert group.commit(member_id, 3, 2, version=8) is ErrorCode.NONE
    assert group.commit(member_id, 2, 2) is ErrorCode.ILLEGAL_GENERATION
    assert group.code("a", -1) is ErrorCode.NONE
    (classic,) = call(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(groups=[group.group])).groups
    assert (classic.error_code, classic.group_state) == (0, "PreparingRebalance")
    assert heartbeat(member_id, 4) == ErrorCode.ILLEGAL_GENERATION
    assert heartbeat(member_id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
