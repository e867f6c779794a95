"""Messages of describe topic partitions. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_uuid,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)
from strandline.wire.structure import Structure

_BOOL = Struct(">?")
_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT16_INT32_INT32_INT32 = Struct(">hiii")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicRequest(Structure):
    """Versions 0 to 0."""

    name: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Cursor(Structure):
    """Versions 0 to 0."""

    topic_name: str = ""
    partition_index: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeTopicPartitionsRequest(Structure):
    """Versions 0 to 0."""

    topics: list[TopicRequest] = field(default_factory=list)
    response_partition_limit: int = 2000
    cursor: Cursor | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeTopicPartitionsResponsePartition(Structure):
    """Versions 0 to 0."""

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = field(default_factory=list)
    isr_nodes: list[int] = field(default_factory=list)
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeTopicPartitionsResponseTopic(Structure):
    """Versions 0 to 0."""

    error_code: int = 0
    name: str | None = ""
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(default_factory=list)
    topic_authorized_operations: int = -2147483648


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeTopicPartitionsResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default_factory=list)
    next_cursor: Cursor | None = None


def _read_topic_request(buffer: memoryview, position: int, version: int) -> tuple[TopicRequest, int]:
    name, position = read_compact_string(buffer, position)
    position = skip_tags(buffer, position)
    return TopicRequest(name=name), position


def _write_topic_request(out: bytearray, message: TopicRequest, version: int) -> None:
    write_compact_string(out, message.name)
    out += b"\x00"


def _read_cursor(buffer: memoryview, position: int, version: int) -> tuple[Cursor, int]:
    topic_name, position = read_compact_string(buffer, position)
    (partition_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return Cursor(topic_name=topic_name, partition_index=partition_index), position


def _write_cursor(out: bytearray, message: Cursor, version: int) -> None:
    write_compact_string(out, message.topic_name)
    out += _INT32.pack(message.partition_index)
    out += b"\x00"


def _read_describe_topic_partitions_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeTopicPartitionsRequest, int]:
    count, position = read_compact_array_length(buffer, position, 1)
    topics: list[TopicRequest] = []
    for _ in range(count):
        topic_request, position = _read_topic_request(buffer, position, version)
        topics.append(topic_request)
    (response_partition_limit,) = _INT32.unpack_from(buffer, position)
    position += 4
    cursor: Cursor | None = None
    (marker,) = _INT8.unpack_from(buffer, position)
    position += 1
    if marker >= 0:
        cursor, position = _read_cursor(buffer, position, version)
    position = skip_tags(buffer, position)
    return DescribeTopicPartitionsRequest(
        topics=topics, response_partition_limit=response_partition_limit, cursor=cursor
    ), position


def _write_describe_topic_partitions_request(
    out: bytearray, message: DescribeTopicPartitionsRequest, version: int
) -> None:
    write_compact_array_length(out, len(message.topics))
    for topic_request in message.topics:
        _write_topic_request(out, topic_request, version)
    out += _INT32.pack(message.response_partition_limit)
    if message.cursor is None:
        out += b"\xff"
    else:
        out += b"\x01"
        _write_cursor(out, message.cursor, version)
    out += b"\x00"


def read_describe_topic_partitions_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeTopicPartitionsRequest, int]:
    """Read a DescribeTopicPartitionsRequest. Raises MalformedRequest."""
    try:
        return _read_describe_topic_partitions_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeTopicPartitionsRequest") from error


def write_describe_topic_partitions_request(
    out: bytearray, message: DescribeTopicPartitionsRequest, version: int
) -> None:
    """Append a DescribeTopicPartitionsRequest to `out`."""
    _write_describe_topic_partitions_request(out, message, version)


def _read_describe_topic_partitions_response_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeTopicPartitionsResponsePartition, int]:
    error_code, partition_index, leader_id, leader_epoch = _INT16_INT32_INT32_INT32.unpack_from(buffer, position)
    position += 14
    count, position = read_compact_array_length(buffer, position, 4)
    replica_nodes, position = read_numbers(buffer, position, count, "i")
    count, position = read_compact_array_length(buffer, position, 4)
    isr_nodes, position = read_numbers(buffer, position, count, "i")
    count, position = read_compact_nullable_array_length(buffer, position, 4)
    eligible_leader_replicas: list[int] | None = None
    if count >= 0:
        eligible_leader_replicas, position = read_numbers(buffer, position, count, "i")
    count, position = read_compact_nullable_array_length(buffer, position, 4)
    last_known_elr: list[int] | None = None
    if count >= 0:
        last_known_elr, position = read_numbers(buffer, position, count, "i")
    count, position = read_compact_array_length(buffer, position, 4)
    offline_replicas, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return DescribeTopicPartitionsResponsePartition(
        error_code=error_code,
        partition_index=partition_index,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        replica_nodes=replica_nodes,
        isr_nodes=isr_nodes,
        eligible_leader_replicas=eligible_leader_replicas,
        last_known_elr=last_known_elr,
        offline_replicas=offline_replicas,
    ), position


def _write_describe_topic_partitions_response_partition(
    out: bytearray, message: DescribeTopicPartitionsResponsePartition, version: int
) -> None:
    out += _INT16_INT32_INT32_INT32.pack(
        message.error_code, message.partition_index, message.leader_id, message.leader_epoch
    )
    write_compact_numbers(out, message.replica_nodes, "i")
    write_compact_numbers(out, message.isr_nodes, "i")
    if message.eligible_leader_replicas is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_numbers(out, message.eligible_leader_replicas, "i")
    if message.last_known_elr is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_numbers(out, message.last_known_elr, "i")
    write_compact_numbers(out, message.offline_replicas, "i")
    out += b"\x00"


def _read_describe_topic_partitions_response_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeTopicPartitionsResponseTopic, int]:
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    name, position = read_compact_nullable_string(buffer, position)
    topic_id, position = read_uuid(buffer, position)
    (is_internal,) = _BOOL.unpack_from(buffer, position)
    position += 1
    count, position = read_compact_array_length(buffer, position, 19)
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    for _ in range(count):
        describe_topic_partitions_response_partition, position = _read_describe_topic_partitions_response_partition(
            buffer, position, version
        )
        partitions.append(describe_topic_partitions_response_partition)
    (topic_authorized_operations,) = _INT32.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return DescribeTopicPartitionsResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=topic_id,
        is_internal=is_internal,
        partitions=partitions,
        topic_authorized_operations=topic_authorized_operations,
    ), position


def _write_describe_topic_partitions_response_topic(
    out: bytearray, message: DescribeTopicPartitionsResponseTopic, version: int
) -> None:
    out += _INT16.pack(message.error_code)
    write_compact_nullable_string(out, message.name)
    out += message.topic_id.bytes
    out += _BOOL.pack(message.is_internal)
    write_compact_array_length(out, len(message.partitions))
    for describe_topic_partitions_response_partition in message.partitions:
        _write_describe_topic_partitions_response_partition(out, describe_topic_partitions_response_partition, version)
    out += _INT32.pack(message.topic_authorized_operations)
    out += b"\x00"


def _read_describe_topic_partitions_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeTopicPartitionsResponse, int]:
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 25)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for _ in range(count):
        describe_topic_partitions_response_topic, position = _read_describe_topic_partitions_response_topic(
            buffer, position, version
        )
        topics.append(describe_topic_partitions_response_topic)
    next_cursor: Cursor | None = None
    (marker,) = _INT8.unpack_from(buffer, position)
    position += 1
    if marker >= 0:
        next_cursor, position = _read_cursor(buffer, position, version)
    position = skip_tags(buffer, position)
    return DescribeTopicPartitionsResponse(
        throttle_time_ms=throttle_time_ms, topics=topics, next_cursor=next_cursor
    ), position


def _write_describe_topic_partitions_response(
    out: bytearray, message: DescribeTopicPartitionsResponse, version: int
) -> None:
    out += _INT32.pack(message.throttle_time_ms)
    write_compact_array_length(out, len(message.topics))
    for describe_topic_partitions_response_topic in message.topics:
        _write_describe_topic_partitions_response_topic(out, describe_topic_partitions_response_topic, version)
    if message.next_cursor is None:
        out += b"\xff"
    else:
        out += b"\x01"
        _write_cursor(out, message.next_cursor, version)
    out += b"\x00"


def read_describe_topic_partitions_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeTopicPartitionsResponse, int]:
    """Read a DescribeTopicPartitionsResponse. Raises MalformedRequest."""
    try:
        return _read_describe_topic_partitions_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeTopicPartitionsResponse") from error


def write_describe_topic_partitions_response(
    out: bytearray, message: DescribeTopicPartitionsResponse, version: int
) -> None:
    """Append a DescribeTopicPartitionsResponse to `out`."""
    _write_describe_topic_partitions_response(out, message, version)
