"""The small requests that groups send all the time: one for each of many connections, each with a group of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from bench.asking import Asker, framed, served
from strandline.wire.api import ApiKey
from strandline.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from strandline.wire.messages.heartbeat import HeartbeatRequest
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from strandline.wire.registry import Message

TOPIC: Final = "bench-calls"
"""It has to exist, with one partition."""

_SESSION_TIMEOUT_MS: Final = 300_000
_COMMITTED: Final = 42
_MOST_BEATS: Final = 1000

_NUMBERS: Final = itertools.count()
"""Of groups: one that has members from an earlier round would wait for them."""

Prepared = tuple[ApiKey, Message]


def frames(port: int, name: str, count: int) -> list[str]:
    """For each of so many groups a request and its answer, in hexadecimal: the answer that every further one gets."""
    groups = [f"bench-{name}-{next(_NUMBERS)}" for _ in range(count)]
    with Asker(port) as asker:
        for group in groups:
            asker.find_coordinator(group)
        return [_line(asker, *prepared) for prepared in _PREPARATIONS[name](asker, port, groups)]


def _line(asker: Asker, key: ApiKey, request: Message) -> str:
    asker.ask_when_ready(key, request)
    frame = framed(key, request)
    return f"{frame[4:].hex()} {asker.exchange(frame).hex()}"


def _joined(asker: Asker, port: int, groups: Sequence[str]) -> Iterable[Prepared]:
    """A heartbeat of the only member of each classic group. They join together: each join takes three seconds."""
    members = {group: asker.new_member_id(group) for group in groups}
    with ExitStack() as stack:
        connections = {group: stack.enter_context(Asker(port)) for group in groups}
        for group, connection in connections.items():
            connection.send(framed(ApiKey.JOIN_GROUP, asker.join_request(group, members[group])))
        for group, connection in connections.items():
            joined = connection.receive_answer(ApiKey.JOIN_GROUP)
            served(joined.error_code, f"JoinGroup of {group}")
            connection.send_sync(group, members[group], joined.generation_id, [members[group]])
            served(connection.receive_answer(ApiKey.SYNC_GROUP).error_code, f"SyncGroup of {group}")
            beat = HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=members[group])
            yield ApiKey.HEARTBEAT, beat


def _joined_modern(asker: Asker, port: int, groups: Sequence[str]) -> Iterable[Prepared]:
    """A heartbeat of the only member of each KIP-848 group, which has its partition and has said so."""
    for group in groups:
        yield ApiKey.CONSUMER_GROUP_HEARTBEAT, _settled(asker, group)


def _settled(asker: Asker, group: str) -> ConsumerGroupHeartbeatRequest:
    def beat(epoch: int, *, owned: list[TopicPartitions] | None = None) -> ConsumerGroupHeartbeatRequest:
        is_joining = epoch == 0
        return ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=f"{group}-member",
            member_epoch=epoch,
            rebalance_timeout_ms=_SESSION_TIMEOUT_MS if is_joining else -1,
            subscribed_topic_names=[TOPIC] if is_joining else None,
            topic_partitions=owned,
        )

    answer = asker.ask_when_ready(ApiKey.CONSUMER_GROUP_HEARTBEAT, beat(0, owned=[]))
    for _ in range(_MOST_BEATS):
        if answer.assignment is not None and answer.assignment.topic_partitions:
            break
        answer = asker.ask_when_ready(ApiKey.CONSUMER_GROUP_HEARTBEAT, beat(answer.member_epoch))
    else:
        raise TimeoutError(f"The member of {group} was given no partition in {_MOST_BEATS} heartbeats.")
    owned = [TopicPartitions(topic_id=one.topic_id, partitions=[0]) for one in answer.assignment.topic_partitions]
    answer = asker.ask_when_ready(ApiKey.CONSUMER_GROUP_HEARTBEAT, beat(answer.member_epoch, owned=owned))
    return beat(answer.member_epoch)


def _committing(asker: Asker, port: int, groups: Sequence[str]) -> Iterable[Prepared]:
    """A commit of a consumer that is no member."""
    for group in groups:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=_COMMITTED)
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
        yield ApiKey.OFFSET_COMMIT, OffsetCommitRequest(group_id=group, topics=[topic])


def _reading(asker: Asker, port: int, groups: Sequence[str]) -> Iterable[Prepared]:
    """The committed offset of one partition."""
    for commit in _committing(asker, port, groups):
        asker.ask_when_ready(*commit)
    for group in groups:
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        yield ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])])


_PREPARATIONS: Final[Mapping[str, Callable[[Asker, int, Sequence[str]], Iterable[Prepared]]]] = {
    "heartbeat": _joined,
    "modern": _joined_modern,
    "commit": _committing,
    "offsets": _reading,
}
