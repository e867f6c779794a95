"""Requests about share groups, as frames, and beside the frames that Apache Kafka 4.3.1 answered with.

No listener serves them yet: a frame is decoded, given to its handler, and the answer is encoded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from strandline.coordinators.groups.share.states import ShareProgress
from strandline.errors import CoordinatorNotAvailable
from strandline.model import TopicPartition, uuid_from_text
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import GROUP_OPERATIONS, OPERATIONS_NOT_ASKED
from strandline.server.handlers.groups.administration import GroupAdminHandler
from strandline.server.handlers.groups.share import ShareGroupsHandler
from strandline.wire.api import KNOWN_APIS, ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from strandline.wire.messages.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from strandline.wire.messages.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from strandline.wire.messages.list_groups import ListGroupsRequest
from strandline.wire.messages.share_group_describe import ShareGroupDescribeRequest
from strandline.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from strandline.wire.registry import decode_request, decode_response, encode_request, encode_response
from tests.coordinators.groups.partitioned_topics import topic_image
from tests.coordinators.groups.share.test_share_coordinator import ShareCluster
from tests.wire.frames import Frame, golden_frames

SHARE_GROUP_APIS = (
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
)


class ShareServer:
    """A cluster, and the handlers of share groups and of groups of any type over it."""

    def __init__(self) -> None:
        self.cluster = ShareCluster()
        self.handlers: dict[ApiKey, Handler] = {
            **ShareGroupsHandler(self.cluster.share, self.cluster.topics).routes(),
            **GroupAdminHandler(self.cluster.groups, self.cluster.share).routes(),
        }

    async def answer(self, frame: bytes) -> bytes:
        header, request = decode_request(memoryview(frame))
        context = RequestContext(
            api_key=header.api_key,
            api_version=header.api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
            client_host="127.0.0.1",
            listener="PLAINTEXT",
            principal="User:ANONYMOUS",
            connection_id=1,
        )
        response = await self.handlers[ApiKey(header.api_key)](request, context)
        await self.cluster.clock.settle()
        return encode_response(ApiKey(header.api_key), header.api_version, header.correlation_id, response)

    async def ask(self, api_key: ApiKey, request: Any, version: int | None = None) -> Any:
        chosen = KNOWN_APIS[api_key].max if version is None else version
        frame = await self.answer(encode_request(api_key, chosen, 7, "me", request))
        return decode_response(api_key, chosen, memoryview(frame))[1]

    async def beat(self, epoch: int = 0, topics: list[str] | None = None, **fields: Any) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=epoch, subscribed_topic_names=topics, **fields
        )
        return await self.ask(ApiKey.SHARE_GROUP_HEARTBEAT, request)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ShareServer]:
    server = ShareServer()
    async with server.cluster.groups.running(), server.cluster.share.running():
        server.cluster.groups.runtime.elected(0, 0)
        await server.cluster.groups.runtime.wait_loaded()
        yield server


def exchanges(client: str, api_key: ApiKey) -> list[tuple[Frame, Frame]]:
    frames = [frame for frame in golden_frames() if frame.client == client and frame.api_key == api_key]
    requests = {frame.exchange: frame for frame in frames if frame.is_request}
    return [(requests[frame.exchange], frame) for frame in frames if not frame.is_request]


def test_the_apis_are_served_by_one_handler(server: ShareServer) -> None:
    handler = ShareGroupsHandler(server.cluster.share, server.cluster.topics)
    assert set(handler.routes()) == set(SHARE_GROUP_APIS)


async def test_a_java_client_gets_the_bytes_that_kafka_sent(server: ShareServer) -> None:
    """It joins, is told of its partition when that has state, leaves, and an administrator looks at the group."""
    cluster = server.cluster
    topic_id = uuid_from_text("s3FgZahkTrqUhpOI05XiIQ")
    cluster.topics.put(topic_image("fx-logappend", 1, topic_id))
    cluster.states.hold()
    (join, joined), (wait, waited), (beat, told) = exchanges("java", ApiKey.SHARE_GROUP_HEARTBEAT)
    assert await server.answer(join.data) == joined.data
    assert await server.answer(wait.data) == waited.data
    cluster.states.release()
    await cluster.clock.settle()
    assert await server.answer(beat.data) == told.data
    member_id = join.decoded["memberId"] if join.decoded else ""
    group_id = join.decoded["groupId"] if join.decoded else ""
    leave = ShareGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=-1)
    left = await server.ask(ApiKey.SHARE_GROUP_HEARTBEAT, leave)
    assert (left.error_code, left.member_id, left.member_epoch) == (ErrorCode.NONE, member_id, -1)
    for asked, described in exchanges("java", ApiKey.SHARE_GROUP_DESCRIBE):
        assert await server.answer(asked.data) == described.data
    progress = ShareProgress(start_offset=0, leader_epoch=0, delivery_complete_count=0)
    cluster.states.progress(group_id, topic_id, 0, progress)
    cluster.ends.ends[TopicPartition("fx-logappend", 0)] = 6
    for api_key in (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.ALTER_SHARE_GROUP_OFFSETS):
        recorded = exchanges("java", api_key)
        assert recorded
        for asked, answered in recorded:
            assert await server.answer(asked.data) == answered.data


@pytest.mark.parametrize("api_key", SHARE_GROUP_APIS)
async def test_refusals_have_kafkas_codes(server: ShareServer, api_key: ApiKey) -> None:
    recorded = exchanges("raw", api_key)
    assert recorded
    for asked, answered in recorded:
        ours = decode_response(api_key, asked.api_version, memoryview(await server.answer(asked.data)))[1]
        kafkas = decode_response(api_key, asked.api_version, memoryview(answered.data))[1]
        assert _codes(ours) == _codes(kafkas)


def _codes(message: Any) -> list[Any]:
    """All error codes of an answer, with what they are about."""
    found = [getattr(message, "error_code", None), getattr(message, "group_id", None)]
    for part in (*getattr(message, "groups", ()), *getattr(message, "responses", ())):
        found.append(_codes(part))
    return found


async def test_a_member_that_is_fenced_or_unknown(server: ShareServer) -> None:
    joined = await server.beat(0, ["a"])
    assert (joined.error_code, joined.heartbeat_interval_ms) == (ErrorCode.NONE, 5000)
    fenced = await server.beat(joined.member_epoch + 3)
    assert (fenced.error_code, fenced.member_id, fenced.assignment) == (ErrorCode.FENCED_MEMBER_EPOCH, None, None)
    assert "must abandon all its partitions" in fenced.error_message
    other = ShareGroupHeartbeatRequest(group_id="g", member_id="other", member_epoch=2)
    assert (await server.ask(ApiKey.SHARE_GROUP_HEARTBEAT, other)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    absent = ShareGroupHeartbeatRequest(group_id="absent", member_id="m", member_epoch=2)
    assert (await server.ask(ApiKey.SHARE_GROUP_HEARTBEAT, absent)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    empty = await server.beat(0, ["a"], rack_id="")
    assert (empty.error_code, empty.error_message) == (ErrorCode.INVALID_REQUEST, "RackId can't be empty.")


@pytest.mark.parametrize("wants_operations", [True, False])
async def test_a_group_is_described_with_names_of_topics(server: ShareServer, wants_operations: bool) -> None:
    for _ in range(2):
        await server.beat(0, ["b", "a"], rack_id="r1")
    request = ShareGroupDescribeRequest(group_ids=["g", ""], include_authorized_operations=wants_operations)
    described, nameless = (await server.ask(ApiKey.SHARE_GROUP_DESCRIBE, request)).groups
    assert (described.error_code, described.group_state, described.assignor_name) == (0, "Stable", "simple")
    assert described.authorized_operations == (GROUP_OPERATIONS if wants_operations else OPERATIONS_NOT_ASKED)
    (member,) = described.members
    assert (member.member_id, member.rack_id, member.client_id, member.client_host) == ("m", "r1", "me", "/127.0.0.1")
    assert (member.member_epoch, member.subscribed_topic_names) == (described.group_epoch, ["a", "b"])
    assert {one.topic_name: one.partitions for one in member.assignment.topic_partitions} == {"a": [0, 1], "b": [0]}
    assert (nameless.error_code, nameless.authorized_operations) == (ErrorCode.INVALID_GROUP_ID, OPERATIONS_NOT_ASKED)


@pytest.mark.parametrize("version", [0, 1])
async def test_offsets_of_several_groups(server: ShareServer, version: int) -> None:
    cluster = server.cluster
    await server.beat(0, ["a"])
    progress = ShareProgress(start_offset=3, leader_epoch=2, delivery_complete_count=1)
    cluster.states.progress("g", cluster.id_of("a"), 1, progress)
    cluster.ends.ends[TopicPartition("a", 1)] = 10
    topics = [
        DescribeShareGroupOffsetsRequestTopic(topic_name="a", partitions=[1, 0]),
        DescribeShareGroupOffsetsRequestTopic(topic_name="gone", partitions=[4]),
    ]
    groups = [
        DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=topics),
        DescribeShareGroupOffsetsRequestGroup(group_id="", topics=None),
    ]
    request = DescribeShareGroupOffsetsRequest(groups=groups)
    found, refused = (await server.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, request, version)).groups
    known, gone = found.topics
    assert [(one.partition_index, one.start_offset, one.leader_epoch, one.lag) for one in known.partitions] == [
        (1, 3, 2, 6 if version else -1),
        (0, -1, 0, -1),
    ]
    assert (known.topic_id, gone.topic_id.int) == (cluster.id_of("a"), 0)
    assert [(one.partition_index, one.start_offset, one.error_code) for one in gone.partitions] == [(4, -1, 0)]
    assert refused.error_code == ErrorCode.INVALID_GROUP_ID


def alteration(**offsets: int) -> AlterShareGroupOffsetsRequest:
    """One partition of each topic, whose number is the last character of the name."""
    return AlterShareGroupOffsetsRequest(
        group_id="g",
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name[:-1],
                partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=int(name[-1]), start_offset=offset)],
            )
            for name, offset in offsets.items()
        ],
    )


async def test_offsets_are_altered_and_deleted(server: ShareServer) -> None:
    cluster = server.cluster
    cluster.states.refused[cluster.id_of("b"), 0] = CoordinatorNotAvailable("The share coordinator is away.")
    answer = await server.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, alteration(a0=5, a7=5, b0=5, gone0=5))
    codes = [[one.error_code for one in topic.partitions] for topic in answer.responses]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [[ErrorCode.NONE, unknown], [ErrorCode.COORDINATOR_NOT_AVAILABLE], [unknown]]
    await server.beat(0, ["a"])
    refused = await server.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, alteration(a0=5))
    assert (refused.error_code, refused.responses) == (ErrorCode.NON_EMPTY_GROUP, [])
    topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in ("a", "gone")]
    deletion = DeleteShareGroupOffsetsRequest(group_id="g", topics=topics)
    refused = await server.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, deletion)
    assert (refused.error_code, refused.responses) == (ErrorCode.NON_EMPTY_GROUP, [])
    await server.beat(-1)
    answer = await server.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, deletion)
    assert [(one.topic_name, one.error_code) for one in answer.responses] == [("a", 0), ("gone", unknown)]
    assert answer.responses[0].topic_id == cluster.id_of("a")
    assert cluster.states.found == {}


async def test_groups_of_all_types_are_listed_and_deleted(server: ShareServer) -> None:
    await server.beat(0, ["a"])
    everything = await server.ask(ApiKey.LIST_GROUPS, ListGroupsRequest())
    (listed,) = (await server.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(types_filter=["Share"]))).groups
    assert everything.groups[0].group_id == listed.group_id == "g"
    assert (listed.protocol_type, listed.group_state, listed.group_type) == ("share", "Stable", "share")
    assert (await server.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(types_filter=["classic"]))).groups == []
    (described,) = (await server.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"]))).groups
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    names = DeleteGroupsRequest(groups_names=["g", "absent"])
    refused, absent = (await server.ask(ApiKey.DELETE_GROUPS, names)).results
    assert (refused.error_code, absent.error_code) == (ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND)
    await server.beat(-1)
    assert [one.error_code for one in (await server.ask(ApiKey.DELETE_GROUPS, names)).results] == [
        ErrorCode.NONE,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ]
    assert server.cluster.states.found == {}
