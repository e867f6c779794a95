"""Many small consumers: long polls at the tail of partitions, and the small requests that groups send all the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.generator import Answer, LoadFailed
from bench.measures import Bench, Measured, Step, wait_gone
from bench.tail_figures import CALLS, TAILS
from bench.topics import Topics
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.heartbeat import HeartbeatRequest
from strandline.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
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
from strandline.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from strandline.wire.registry import Message, encode_request

_PARTITIONS: Final = 100
_CONNECTIONS: Final = 50
_PATIENCE_SECONDS: Final = 60.0
_SESSION_TIMEOUT_MS: Final = 300_000
_TOPIC: Final = "bench-calls"
_COMMITTED: Final = 42
_NOT_READY: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
_VERSIONS: Final[Mapping[ApiKey, int]] = {
    ApiKey.HEARTBEAT: 4,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
}

Prepared = tuple[ApiKey, Message]


def steps() -> Iterable[Step]:
    yield Step("consumers at the tail, not counted", _warm_up)
    for case in TAILS:
        yield Step(TAILS[case].title, partial(_tail, case=case))
    for name in CALLS:
        yield Step(f"{_CONNECTIONS} connections: {CALLS[name]}", partial(_calls, name=name))


def _warm_up(bench: Bench) -> Measured:
    """A JVM compiles its hot code only after it has seen it often."""
    for case, tail in TAILS.items():
        _run_tail(bench, f"warm-up-{case}", rate=tail.rate, **tail.shape)
    return {}


def _tail(bench: Bench, case: str) -> Measured:
    answer = _run_tail(bench, case, rate=TAILS[case].rate, **TAILS[case].shape)
    return {
        f"tail.{case}.cpu": answer["cpu_seconds"] / answer["delivered"] * 1e6,
        f"tail.{case}.rate": answer["delivered_s"],
        f"tail.{case}.p50": answer["delivery"]["p50_ms"],
        f"tail.{case}.p99": answer["delivery"]["p99_ms"],
    }


def _run_tail(bench: Bench, case: str, **shape: int) -> Answer:
    with bench.topic(f"bench-tail-{case}", _PARTITIONS) as topic:
        return bench.generator.run(
            "tail",
            brokers=bench.broker.bootstrap,
            pid=bench.broker.process.pid,
            topic=topic,
            topic_id=_topic_id(bench, topic),
            partitions=_PARTITIONS,
            seconds=bench.scale.latency_seconds,
            **shape,
        )


def _topic_id(bench: Bench, topic: str) -> str:
    with _connected(bench) as client:
        answer = client.request(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), version=12)
    found: str = answer.topics[0].topic_id.hex
    return found


def _calls(bench: Bench, name: str) -> Measured:
    """Each connection repeats one request, whose answer does not change. Each has a group of its own."""
    topics = Topics(bench.broker.bootstrap)
    topics.create({_TOPIC: 1})
    try:
        with TemporaryDirectory() as folder, _connected(bench) as client:
            frames = Path(folder) / "frames"
            lines = [_line(client, _PREPARATIONS[name], f"bench-{name}-{number}") for number in range(_CONNECTIONS)]
            frames.write_text("\n".join(lines))
            answer = bench.generator.run(
                "calls",
                brokers=bench.broker.bootstrap,
                pid=bench.broker.process.pid,
                frames=str(frames),
                seconds=bench.scale.request_seconds,
                warm_seconds=bench.scale.request_seconds,
            )
    finally:
        topics.delete([_TOPIC])
        wait_gone(bench.broker.data_dir, _TOPIC)
    return {
        f"calls.{name}.cpu": answer["cpu_seconds"] / answer["requests"] * 1e6,
        f"calls.{name}.rate": answer["requests_s"],
        f"calls.{name}.p99": answer["answer"]["p99_ms"],
    }


def _line(client: Client, prepare: Callable[[Client, str], Prepared], group_id: str) -> str:
    """A request frame, and the answer it gets: the same that every further one has to get."""
    _wait_for_coordinator(client, group_id)
    api_key, request = prepare(client, group_id)
    _ask(client, api_key, request)
    frame = encode_request(api_key, _VERSIONS[api_key], 0, "loadgen", request)
    return f"{frame.hex()} {client.exchange(frame).hex()}"


def _joined(client: Client, group_id: str) -> Prepared:
    """A heartbeat of the only member of a classic group."""
    join = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=_SESSION_TIMEOUT_MS,
        group_instance_id="one",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    joined = _ask(client, ApiKey.JOIN_GROUP, join)
    me, generation = joined.member_id, joined.generation_id
    sync = SyncGroupRequest(
        group_id=group_id,
        generation_id=generation,
        member_id=me,
        group_instance_id="one",
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=me, assignment=b"all")],
    )
    _ask(client, ApiKey.SYNC_GROUP, sync)
    beat = HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=me, group_instance_id="one")
    return ApiKey.HEARTBEAT, beat


def _joined_modern(client: Client, group_id: str) -> Prepared:
    """A heartbeat of the only member of a KIP-848 group, which has its partition and has said so."""

    def beat(epoch: int, *, owned: list[TopicPartitions] | None = None) -> ConsumerGroupHeartbeatRequest:
        is_joining = epoch == 0
        return ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=f"{group_id}-member",
            member_epoch=epoch,
            rebalance_timeout_ms=_SESSION_TIMEOUT_MS if is_joining else -1,
            subscribed_topic_names=[_TOPIC] if is_joining else None,
            topic_partitions=owned,
        )

    answer = _ask(client, ApiKey.CONSUMER_GROUP_HEARTBEAT, beat(0, owned=[]))
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while answer.assignment is None or not answer.assignment.topic_partitions:
        if time.monotonic() > deadline:
            raise LoadFailed(f"The member of {group_id} was given no partition.")
        answer = _ask(client, ApiKey.CONSUMER_GROUP_HEARTBEAT, beat(answer.member_epoch))
    owned = [TopicPartitions(topic_id=one.topic_id, partitions=[0]) for one in answer.assignment.topic_partitions]
    answer = _ask(client, ApiKey.CONSUMER_GROUP_HEARTBEAT, beat(answer.member_epoch, owned=owned))
    return ApiKey.CONSUMER_GROUP_HEARTBEAT, beat(answer.member_epoch)


def _committing(client: Client, group_id: str) -> Prepared:
    """A commit of a consumer that is no member."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=_COMMITTED)
    topic = OffsetCommitRequestTopic(name=_TOPIC, partitions=[partition])
    return ApiKey.OFFSET_COMMIT, OffsetCommitRequest(group_id=group_id, topics=[topic])


def _asking(client: Client, group_id: str) -> Prepared:
    """The committed offset of one partition."""
    _ask(client, *_committing(client, group_id))
    topic = OffsetFetchRequestTopics(name=_TOPIC, partition_indexes=[0])
    group = OffsetFetchRequestGroup(group_id=group_id, topics=[topic])
    return ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=[group])


_PREPARATIONS: Final[Mapping[str, Callable[[Client, str], Prepared]]] = {
    "heartbeat": _joined,
    "modern": _joined_modern,
    "commit": _committing,
    "offsets": _asking,
}


def _ask(client: Client, api_key: ApiKey, request: Message) -> Message:
    """The answer without an error. Raises LoadFailed."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        answer = client.request(api_key, request, version=_VERSIONS.get(api_key))
        codes = {*_codes(answer)} - {0}
        if not codes:
            return answer
        if not codes <= {*_NOT_READY} or time.monotonic() > deadline:
            raise LoadFailed(f"{api_key.name} was refused: {sorted(codes)}")
        time.sleep(0.1)


def _codes(answer: Message) -> Iterable[int]:
    yield getattr(answer, "error_code", 0)
    for name in ("topics", "groups", "partitions"):
        for part in getattr(answer, name, None) or ():
            yield from _codes(part)


def _wait_for_coordinator(client: Client, group_id: str) -> None:
    """The first question makes the broker create its topic for groups, which takes a while to be loaded."""
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id])
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while client.request(ApiKey.FIND_COORDINATOR, find).coordinators[0].error_code:
        if time.monotonic() > deadline:
            raise LoadFailed(f"Group {group_id} has no coordinator.")
        time.sleep(0.1)


def _connected(bench: Bench) -> Client:
    host, _, port = bench.broker.bootstrap.rpartition(":")
    return Client.connect(host, int(port))
