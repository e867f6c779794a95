"""Group requests in every version, as a client sees them on the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from strandline.model import coordinator_partition
from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.heartbeat import HeartbeatRequest
from strandline.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from strandline.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.messages.list_groups import ListedGroup, ListGroupsRequest
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker import Broker

NOBODY = "nobody-knows-this-member"


def versions(api_key: ApiKey) -> range:
    return range(API_VERSIONS[api_key].min, API_VERSIONS[api_key].max + 1)


@pytest.fixture
def group_id(client: Client, new_name: Callable[[], str]) -> str:
    """A group that was never used, whose coordinator is available."""
    name = new_name()
    client.request(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=[name]))
    return name


def join(client: Client, group_id: str, version: int = 9, **how: Any) -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")],
    )
    for name, value in how.items():
        setattr(request, name, value)
    response = client.request(ApiKey.JOIN_GROUP, request, version=version)
    assert isinstance(response, JoinGroupResponse)
    return response


def join_fully(client: Client, group_id: str, version: int = 9) -> JoinGroupResponse:
    """Join as clients do: again, with the id that was given, where the version wants that."""
    first = join(client, group_id, version)
    if first.error_code != ErrorCode.MEMBER_ID_REQUIRED:
        return first
    return join(client, group_id, version, member_id=first.member_id)


def stable_member(client: Client, group_id: str) -> str:
    member_id = join_fully(client, group_id).member_id
    sync(client, group_id, member_id)
    return member_id


def sync(client: Client, group_id: str, member_id: str, version: int = 5, **how: Any) -> Any:
    request = SyncGroupRequest(
        group_id=group_id,
        member_id=member_id,
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")],
    )
    for name, value in how.items():
        setattr(request, name, value)
    return client.request(ApiKey.SYNC_GROUP, request, version=version)


# Finding the coordinator


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
def test_the_coordinator_is_the_leader_of_the_groups_partition(
    client: Client, broker: Broker, group_id: str, version: int
) -> None:
    request = FindCoordinatorRequest(key=group_id, coordinator_keys=[group_id, "other"])
    answer = client.request(ApiKey.FIND_COORDINATOR, request, version=version)
    found = answer.coordinators if version >= 4 else [answer]
    assert [row.error_code for row in found] == [ErrorCode.NONE] * len(found)
    assert {f"{row.host}:{row.port}" for row in found} == {broker.bootstrap}
    if version >= 4:
        assert [(row.key, row.error_message) for row in found] == [(group_id, ""), ("other", "")]
    elif version >= 1:
        assert answer.error_message == "NONE"
    topics = [MetadataRequestTopic(name="__consumer_offsets")]
    (offsets,) = client.request(ApiKey.METADATA, MetadataRequest(topics=topics)).topics
    assert offsets.is_internal
    assert coordinator_partition(group_id, len(offsets.partitions)) < len(offsets.partitions)


@pytest.mark.parametrize(
    ("key_type", "error"),
    [(2, ErrorCode.INVALID_REQUEST), (77, 42), (-1, 42)],
)
def test_only_groups_and_transactional_ids_have_a_coordinator_yet(client: Client, key_type: int, error: int) -> None:
    request = FindCoordinatorRequest(key="x", key_type=key_type, coordinator_keys=["x"])
    (row,) = client.request(ApiKey.FIND_COORDINATOR, request, version=6).coordinators
    assert (row.error_code, row.node_id, row.host, row.port) == (error, -1, "", -1)
    old = client.request(ApiKey.FIND_COORDINATOR, request, version=2)
    assert (old.error_code, old.node_id, old.host, old.port) == (error, -1, "", -1)


# Members


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_member_joins_in_every_version(client: Client, group_id: str, version: int) -> None:
    first = join(client, group_id, version)
    if version >= 4:
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert (first.generation_id, first.leader, first.members) == (-1, "", [])
        assert first.protocol_name == (None if version >= 7 else "")
        assert first.member_id.startswith("strandline-")
    joined = join_fully(client, group_id, version) if version >= 4 else first
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert joined.leader == joined.member_id
    assert [member.member_id for member in joined.members] == [joined.member_id]
    assert joined.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_made_up_member_id_is_refused(client: Client, group_id: str, version: int) -> None:
    refused = join(client, group_id, version, member_id=NOBODY)
    assert (refused.error_code, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, NOBODY)


def test_joins_are_refused_with_kafkas_codes(client: Client, group_id: str) -> None:
    assert join(client, "").error_code == ErrorCode.INVALID_GROUP_ID
    assert join(client, group_id, session_timeout_ms=1).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert join(client, group_id, protocols=[]).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    too_long = join(client, group_id, group_instance_id="x" * 32_760)
    assert too_long.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", versions(ApiKey.SYNC_GROUP))
def test_the_assignment_comes_in_every_version(client: Client, group_id: str, version: int) -> None:
    member_id = join_fully(client, group_id).member_id
    unknown = sync(client, group_id, NOBODY, version)
    assert (unknown.error_code, unknown.assignment) == (ErrorCode.UNKNOWN_MEMBER_ID, b"")
    assert sync(client, group_id, member_id, version, generation_id=7).error_code == ErrorCode.ILLEGAL_GENERATION
    synced = sync(client, group_id, member_id, version)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"mine")
    assert synced.protocol_name == ("range" if version >= 5 else None)


def test_the_newest_sync_has_to_name_its_protocol(client: Client, group_id: str) -> None:
    member_id = join_fully(client, group_id).member_id
    refused = sync(client, group_id, member_id, 5, protocol_name=None)
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", versions(ApiKey.HEARTBEAT))
def test_heartbeats_in_every_version(client: Client, group_id: str, version: int) -> None:
    member_id = stable_member(client, group_id)

    def beat(member: str, generation: int) -> int:
        request = HeartbeatRequest(group_id=group_id, member_id=member, generation_id=generation)
        return int(client.request(ApiKey.HEARTBEAT, request, version=version).error_code)

    assert beat(member_id, 1) == ErrorCode.NONE
    assert beat(member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    assert beat(NOBODY, 1) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
def test_leaving_in_every_version(client: Client, group_id: str, version: int) -> None:
    member_id = stable_member(client, group_id)

    def leave(member: str) -> tuple[int, list[int]]:
        members = [MemberIdentity(member_id=member)]
        request = LeaveGroupRequest(group_id=group_id, member_id=member, members=members)
        answer = client.request(ApiKey.LEAVE_GROUP, request, version=version)
        return int(answer.error_code), [int(row.error_code) for row in answer.members]

    if version < 3:
        assert leave(NOBODY) == (ErrorCode.UNKNOWN_MEMBER_ID, [])
        assert leave(member_id) == (ErrorCode.NONE, [])
    else:
        assert leave(NOBODY) == (ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID])
        assert leave(member_id) == (ErrorCode.NONE, [ErrorCode.NONE])
    assert describe(client, group_id).group_state == "Empty"


# Administration


def describe(client: Client, group_id: str, version: int = 6) -> DescribedGroup:
    request = DescribeGroupsRequest(groups=[group_id])
    (group,) = client.request(ApiKey.DESCRIBE_GROUPS, request, version=version).groups
    assert isinstance(group, DescribedGroup)
    return group


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
def test_groups_are_described_in_every_version(client: Client, group_id: str, version: int) -> None:
    member_id = stable_member(client, group_id)
    group = describe(client, group_id, version)
    assert (group.error_code, group.group_state, group.protocol_type) == (ErrorCode.NONE, "Stable", "consumer")
    assert group.protocol_data == "range"
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "strandline", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"\0" * 10, b"mine")
    assert group.authorized_operations == -(2**31)
    absent = describe(client, "absent", version)
    expected = (ErrorCode.GROUP_ID_NOT_FOUND, "Group absent not found.") if version >= 6 else (ErrorCode.NONE, None)
    assert (absent.error_code, absent.error_message) == expected
    assert absent.group_state == "Dead"


def test_operations_are_told_to_those_who_ask(client: Client, group_id: str) -> None:
    stable_member(client, group_id)
    request = DescribeGroupsRequest(groups=[group_id, "absent"], include_authorized_operations=True)
    groups = client.request(ApiKey.DESCRIBE_GROUPS, request).groups
    assert {group.group_id: group.authorized_operations for group in groups} == {
        group_id: 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11,
        "absent": -(2**31),
    }


@pytest.fixture
def listed(client: Client, group_id: str) -> Callable[..., ListedGroup | None]:
    stable_member(client, group_id)

    def find(version: int = 5, **filters: list[str]) -> ListedGroup | None:
        answer = client.request(ApiKey.LIST_GROUPS, ListGroupsRequest(**filters), version=version)
        assert answer.error_code == ErrorCode.NONE
        return next((group for group in answer.groups if group.group_id == group_id), None)

    return find


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
def test_groups_are_listed_in_every_version(listed: Callable[..., ListedGroup | None], version: int) -> None:
    group = listed(version)
    assert group is not None
    assert group.protocol_type == "consumer"
    assert group.group_state == ("Stable" if version >= 4 else "")
    assert group.group_type == ("classic" if version >= 5 else "")


def test_listings_are_filtered_in_any_case(listed: Callable[..., ListedGroup | None]) -> None:
    assert listed(states_filter=["stable", "Empty"]) is not None
    assert listed(states_filter=["Empty"]) is None
    assert listed(types_filter=["Classic"]) is not None
    assert listed(types_filter=["consumer"]) is None
    assert listed(types_filter=["nonsense"]) is None


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
def test_groups_are_deleted_in_every_version(client: Client, group_id: str, version: int) -> None:
    member_id = stable_member(client, group_id)

    def delete(*names: str) -> dict[str, int]:
        request = DeleteGroupsRequest(groups_names=list(names))
        results = client.request(ApiKey.DELETE_GROUPS, request, version=version).results
        return {row.group_id: int(row.error_code) for row in results}

    assert delete(group_id, "absent", "") == {
        group_id: ErrorCode.NON_EMPTY_GROUP,
        "absent": ErrorCode.GROUP_ID_NOT_FOUND,
        "": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    leaving = LeaveGroupRequest(group_id=group_id, members=[MemberIdentity(member_id=member_id)])
    client.request(ApiKey.LEAVE_GROUP, leaving)
    assert delete(group_id) == {group_id: ErrorCode.NONE}
    assert describe(client, group_id).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def topic_id_of(client: Client, topic: str) -> UUID:
    (found,) = client.request(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=topic)])).topics
    assert isinstance(found.topic_id, UUID)
    return found.topic_id
