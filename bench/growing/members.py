"""Groups with so many members, and so many groups. Members of a classic group have a connection each."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from bench.asking import Asker, framed, served
from bench.growing.measuring import Growth, Measured, costs, each, settle
from bench.process import ServerProcess
from bench.systems import StrandlineBroker
from strandline.wire.api import ApiKey
from strandline.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.messages.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.heartbeat import HeartbeatRequest
from strandline.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.messages.list_groups import ListGroupsRequest
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.share_group_describe import ShareGroupDescribeRequest
from strandline.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

# Long enough for all members to join before the first generation begins.
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "10000",
    "group.consumer.max.size": "100000",
    "group.share.max.size": "1000",
    "offsets.topic.num.partitions": "1",
}
_PARTITIONS: Final = 100
_SHARE_LIMIT: Final = 1000

_JOIN = Growth("classic group: all members join", "CPU ms")
_MEMORY = Growth("classic group: memory for all members", "MB")
_BEATS = Growth("classic group: a heartbeat of each", "CPU ms")
_REBALANCE = Growth("classic group: one leaves, all others join again", "CPU ms")
_DESCRIBE = Growth("classic group: DescribeGroups", "CPU ms")
_CONSUMER_JOIN = Growth("consumer group: all members join, one after the other", "CPU ms")
_CONSUMER_BEATS = Growth("consumer group: a heartbeat of each", "CPU ms")
_CONSUMER_DESCRIBE = Growth("consumer group: ConsumerGroupDescribe", "CPU ms")
_SHARE_JOIN = Growth("share group: all members join, one after the other", "CPU ms")
_SHARE_BEATS = Growth("share group: a heartbeat of each", "CPU ms")
_SHARE_DESCRIBE = Growth("share group: ShareGroupDescribe", "CPU ms")
_GROUPS = Growth("so many groups: commit an offset in each", "CPU ms")
_LIST = Growth("so many groups: ListGroups", "CPU ms")
_DESCRIBE_ALL = Growth("so many groups: DescribeGroups of all", "CPU ms")


def measure(broker: StrandlineBroker, size: int) -> Measured:
    """Groups of `size` members, and then `size` groups."""
    broker.start()
    port, process = int(broker.bootstrap.rpartition(":")[2]), broker.process
    with Asker(port) as asker:
        asker.create("shared", _PARTITIONS)
        asker.find_coordinator("any")
        found = {
            **_classic(asker, process, port, size),
            **_consumer(asker, process, size),
            **(_share(asker, process, size) if size <= _SHARE_LIMIT else {}),
            **_many_groups(asker, process, size),
        }
    broker.stop()
    return found


def _classic(asker: Asker, process: ServerProcess, port: int, size: int) -> Measured:
    members = [Asker(port) for _ in range(size)]
    group = "classic"
    settle(process)
    with costs(process) as cost:
        ids = [asker.new_member_id(group) for _ in members]
        generation, leader = _generation(members, group, ids)
        for member, member_id in zip(members, ids, strict=True):
            member.send_sync(group, member_id, generation, ids if member_id == leader else [])
        _served_all(members, ApiKey.SYNC_GROUP)
    found = {_JOIN: cost.cpu * 1e3, _MEMORY: cost.memory / 1e6}
    beats = [
        framed(ApiKey.HEARTBEAT, HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id))
        for member_id in ids
    ]
    found[_BEATS] = each(process, lambda: [asker.exchange(beat) for beat in beats]) * 1e3
    described = framed(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group]))
    found[_DESCRIBE] = each(process, lambda: asker.exchange(described)) * 1e3
    with costs(process) as cost:
        leaving = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=ids[-1])])
        served(asker.ask(ApiKey.LEAVE_GROUP, leaving).error_code, "LeaveGroup")
        rest, rest_ids = members[:-1], ids[:-1]
        generation, leader = _generation(rest, group, rest_ids)
        for member, member_id in zip(rest, rest_ids, strict=True):
            member.send_sync(group, member_id, generation, rest_ids if member_id == leader else [])
        _served_all(rest, ApiKey.SYNC_GROUP)
    found[_REBALANCE] = cost.cpu * 1e3
    for member in members:
        member.close()
    return found


def _generation(members: Sequence[Asker], group: str, ids: Sequence[str]) -> tuple[int, str]:
    """All members join at once; returns the generation that begins, and its leader."""
    for member, member_id in zip(members, ids, strict=True):
        member.send(framed(ApiKey.JOIN_GROUP, member.join_request(group, member_id)))
    answers = _served_all(members, ApiKey.JOIN_GROUP)
    generations = {answer.generation_id for answer in answers}
    served(len(generations) != 1, f"one generation of {len(members)} members: {generations}")
    return answers[0].generation_id, answers[0].leader


def _served_all(members: Sequence[Asker], key: ApiKey) -> list[Any]:
    answers = [member.receive_answer(key) for member in members]
    served(max(answer.error_code for answer in answers), key.name)
    return answers


def _member_id(number: int) -> str:
    return base64.urlsafe_b64encode(struct.pack(">QQ", 1, number)).rstrip(b"=").decode()


def _consumer(asker: Asker, process: ServerProcess, size: int) -> Measured:
    def joining(number: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id="consumer",
            member_id=_member_id(number),
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=["shared"],
            topic_partitions=[],
        )

    def beating(number: int, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id="consumer", member_id=_member_id(number), member_epoch=epoch, topic_partitions=None
        )

    describe = framed(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(group_ids=["consumer"]))
    joined, beats = _heartbeats(asker, process, ApiKey.CONSUMER_GROUP_HEARTBEAT, size, joining, beating)
    described = each(process, lambda: asker.exchange(describe)) * 1e3
    return {_CONSUMER_JOIN: joined, _CONSUMER_BEATS: beats, _CONSUMER_DESCRIBE: described}


def _share(asker: Asker, process: ServerProcess, size: int) -> Measured:
    def joining(number: int) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id="share", member_id=_member_id(number), subscribed_topic_names=["shared"]
        )

    def beating(number: int, epoch: int) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(group_id="share", member_id=_member_id(number), member_epoch=epoch)

    describe = framed(ApiKey.SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest(group_ids=["share"]))
    joined, beats = _heartbeats(asker, process, ApiKey.SHARE_GROUP_HEARTBEAT, size, joining, beating)
    described = each(process, lambda: asker.exchange(describe)) * 1e3
    return {_SHARE_JOIN: joined, _SHARE_BEATS: beats, _SHARE_DESCRIBE: described}


def _heartbeats(
    asker: Asker,
    process: ServerProcess,
    key: ApiKey,
    size: int,
    joining: Callable[[int], Any],
    beating: Callable[[int, int], Any],
) -> tuple[float, float]:
    """CPU ms until all have joined, and for one heartbeat of each when the group is at rest."""
    epochs: dict[int, int] = {}

    def beat(number: int, request: Any) -> None:
        answer = asker.ask(key, request)
        served(answer.error_code, key.name)
        epochs[number] = answer.member_epoch

    settle(process)
    with costs(process) as cost:
        for number in range(size):
            beat(number, joining(number))
    for _ in range(4):  # until all have the newest epoch
        for number in range(size):
            beat(number, beating(number, epochs[number]))
        settle(process)
    frames = [framed(key, beating(number, epochs[number])) for number in range(size)]
    return cost.cpu * 1e3, each(process, lambda: [asker.exchange(frame) for frame in frames]) * 1e3


def _many_groups(asker: Asker, process: ServerProcess, size: int) -> Measured:
    topic = OffsetCommitRequestTopic(
        name="shared", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    )
    names = [f"group-{number}" for number in range(size)]
    settle(process)
    with costs(process) as cost:
        for name in names:
            answer = asker.ask(ApiKey.OFFSET_COMMIT, OffsetCommitRequest(group_id=name, topics=[topic]))
            served(answer.topics[0].partitions[0].error_code, "OffsetCommit")
    listed = framed(ApiKey.LIST_GROUPS, ListGroupsRequest())
    described = framed(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=names))
    return {
        _GROUPS: cost.cpu * 1e3,
        _LIST: each(process, lambda: asker.exchange(listed)) * 1e3,
        _DESCRIBE_ALL: each(process, lambda: asker.exchange(described)) * 1e3,
    }
