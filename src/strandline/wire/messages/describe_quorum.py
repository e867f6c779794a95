"""Messages of describe quorum. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_uuid,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_string,
)
from strandline.wire.structure import Structure

_UINT16 = Struct(">H")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT32_INT64 = Struct(">iiq")
_INT64 = Struct(">q")
_INT64_INT64 = Struct(">qq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class RequestPartitionData(Structure):
    """Versions 0 to 2."""

    partition_index: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class RequestTopicData(Structure):
    """Versions 0 to 2."""

    topic_name: str = ""
    partitions: list[RequestPartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeQuorumRequest(Structure):
    """Versions 0 to 2."""

    topics: list[RequestTopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReplicaState(Structure):
    """Versions 0 to 2."""

    replica_id: int = 0
    replica_directory_id: UUID = ZERO_UUID  # from version 2 on
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1  # from version 1 on
    last_caught_up_timestamp: int = -1  # from version 1 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ResponsePartitionData(Structure):
    """Versions 0 to 2."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None  # from version 2 on
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: list[ReplicaState] = field(default_factory=list)
    observers: list[ReplicaState] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ResponseTopicData(Structure):
    """Versions 0 to 2."""

    topic_name: str = ""
    partitions: list[ResponsePartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Listener(Structure):
    """Versions 2 to 2."""

    name: str = ""
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Node(Structure):
    """Versions 2 to 2."""

    node_id: int = 0
    listeners: list[Listener] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeQuorumResponse(Structure):
    """Versions 0 to 2."""

    error_code: int = 0
    error_message: str | None = None  # from version 2 on
    topics: list[ResponseTopicData] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)  # from version 2 on


def _read_request_partition_data(buffer: memoryview, position: int, version: int) -> tuple[RequestPartitionData, int]:
    (partition_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return RequestPartitionData(partition_index=partition_index), position


def _write_request_partition_data(out: bytearray, message: RequestPartitionData, version: int) -> None:
    out += _INT32.pack(message.partition_index)
    out += b"\x00"


def _read_request_topic_data(buffer: memoryview, position: int, version: int) -> tuple[RequestTopicData, int]:
    topic_name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partitions: list[RequestPartitionData] = []
    for _ in range(count):
        request_partition_data, position = _read_request_partition_data(buffer, position, version)
        partitions.append(request_partition_data)
    position = skip_tags(buffer, position)
    return RequestTopicData(topic_name=topic_name, partitions=partitions), position


def _write_request_topic_data(out: bytearray, message: RequestTopicData, version: int) -> None:
    write_compact_string(out, message.topic_name)
    write_compact_array_length(out, len(message.partitions))
    for request_partition_data in message.partitions:
        _write_request_partition_data(out, request_partition_data, version)
    out += b"\x00"


def _read_describe_quorum_request(buffer: memoryview, position: int, version: int) -> tuple[DescribeQuorumRequest, int]:
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[RequestTopicData] = []
    for _ in range(count):
        request_topic_data, position = _read_request_topic_data(buffer, position, version)
        topics.append(request_topic_data)
    position = skip_tags(buffer, position)
    return DescribeQuorumRequest(topics=topics), position


def _write_describe_quorum_request(out: bytearray, message: DescribeQuorumRequest, version: int) -> None:
    write_compact_array_length(out, len(message.topics))
    for request_topic_data in message.topics:
        _write_request_topic_data(out, request_topic_data, version)
    out += b"\x00"


def read_describe_quorum_request(buffer: memoryview, position: int, version: int) -> tuple[DescribeQuorumRequest, int]:
    """Read a DescribeQuorumRequest. Raises MalformedRequest."""
    try:
        return _read_describe_quorum_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeQuorumRequest") from error


def write_describe_quorum_request(out: bytearray, message: DescribeQuorumRequest, version: int) -> None:
    """Append a DescribeQuorumRequest to `out`."""
    _write_describe_quorum_request(out, message, version)


def _read_replica_state(buffer: memoryview, position: int, version: int) -> tuple[ReplicaState, int]:
    (replica_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    replica_directory_id: UUID = ZERO_UUID
    if version >= 2:
        replica_directory_id, position = read_uuid(buffer, position)
    (log_end_offset,) = _INT64.unpack_from(buffer, position)
    position += 8
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1
    if version >= 1:
        last_fetch_timestamp, last_caught_up_timestamp = _INT64_INT64.unpack_from(buffer, position)
        position += 16
    position = skip_tags(buffer, position)
    return ReplicaState(
        replica_id=replica_id,
        replica_directory_id=replica_directory_id,
        log_end_offset=log_end_offset,
        last_fetch_timestamp=last_fetch_timestamp,
        last_caught_up_timestamp=last_caught_up_timestamp,
    ), position


def _write_replica_state(out: bytearray, message: ReplicaState, version: int) -> None:
    out += _INT32.pack(message.replica_id)
    if version >= 2:
        out += message.replica_directory_id.bytes
    out += _INT64.pack(message.log_end_offset)
    if version >= 1:
        out += _INT64_INT64.pack(message.last_fetch_timestamp, message.last_caught_up_timestamp)
    out += b"\x00"


def _read_response_partition_data(buffer: memoryview, position: int, version: int) -> tuple[ResponsePartitionData, int]:
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message: str | None = None
    if version >= 2:
        error_message, position = read_compact_nullable_string(buffer, position)
    leader_id, leader_epoch, high_watermark = _INT32_INT32_INT64.unpack_from(buffer, position)
    position += 16
    count, position = read_compact_array_length(buffer, position, 12)
    current_voters: list[ReplicaState] = []
    for _ in range(count):
        replica_state, position = _read_replica_state(buffer, position, version)
        current_voters.append(replica_state)
    count, position = read_compact_array_length(buffer, position, 12)
    observers: list[ReplicaState] = []
    for _ in range(count):
        replica_state, position = _read_replica_state(buffer, position, version)
        observers.append(replica_state)
    position = skip_tags(buffer, position)
    return ResponsePartitionData(
        partition_index=partition_index,
        error_code=error_code,
        error_message=error_message,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        high_watermark=high_watermark,
        current_voters=current_voters,
        observers=observers,
    ), position


def _write_response_partition_data(out: bytearray, message: ResponsePartitionData, version: int) -> None:
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    if version >= 2:
        write_compact_nullable_string(out, message.error_message)
    out += _INT32_INT32_INT64.pack(message.leader_id, message.leader_epoch, message.high_watermark)
    write_compact_array_length(out, len(message.current_voters))
    for replica_state in message.current_voters:
        _write_replica_state(out, replica_state, version)
    write_compact_array_length(out, len(message.observers))
    for replica_state in message.observers:
        _write_replica_state(out, replica_state, version)
    out += b"\x00"


def _read_response_topic_data(buffer: memoryview, position: int, version: int) -> tuple[ResponseTopicData, int]:
    topic_name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 24)
    partitions: list[ResponsePartitionData] = []
    for _ in range(count):
        response_partition_data, position = _read_response_partition_data(buffer, position, version)
        partitions.append(response_partition_data)
    position = skip_tags(buffer, position)
    return ResponseTopicData(topic_name=topic_name, partitions=partitions), position


def _write_response_topic_data(out: bytearray, message: ResponseTopicData, version: int) -> None:
    write_compact_string(out, message.topic_name)
    write_compact_array_length(out, len(message.partitions))
    for response_partition_data in message.partitions:
        _write_response_partition_data(out, response_partition_data, version)
    out += b"\x00"


def _read_listener(buffer: memoryview, position: int, version: int) -> tuple[Listener, int]:
    name, position = read_compact_string(buffer, position)
    host, position = read_compact_string(buffer, position)
    (port,) = _UINT16.unpack_from(buffer, position)
    position += 2
    position = skip_tags(buffer, position)
    return Listener(name=name, host=host, port=port), position


def _write_listener(out: bytearray, message: Listener, version: int) -> None:
    write_compact_string(out, message.name)
    write_compact_string(out, message.host)
    out += _UINT16.pack(message.port)
    out += b"\x00"


def _read_node(buffer: memoryview, position: int, version: int) -> tuple[Node, int]:
    (node_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 4)
    listeners: list[Listener] = []
    for _ in range(count):
        listener, position = _read_listener(buffer, position, version)
        listeners.append(listener)
    position = skip_tags(buffer, position)
    return Node(node_id=node_id, listeners=listeners), position


def _write_node(out: bytearray, message: Node, version: int) -> None:
    out += _INT32.pack(message.node_id)
    write_compact_array_length(out, len(message.listeners))
    for listener in message.listeners:
        _write_listener(out, listener, version)
    out += b"\x00"


def _read_describe_quorum_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeQuorumResponse, int]:
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message: str | None = None
    if version >= 2:
        error_message, position = read_compact_nullable_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[ResponseTopicData] = []
    for _ in range(count):
        response_topic_data, position = _read_response_topic_data(buffer, position, version)
        topics.append(response_topic_data)
    nodes: list[Node] = []
    if version >= 2:
        count, position = read_compact_array_length(buffer, position, 5)
        nodes = []
        for _ in range(count):
            node, position = _read_node(buffer, position, version)
            nodes.append(node)
    position = skip_tags(buffer, position)
    return DescribeQuorumResponse(
        error_code=error_code, error_message=error_message, topics=topics, nodes=nodes
    ), position


def _write_describe_quorum_response(out: bytearray, message: DescribeQuorumResponse, version: int) -> None:
    out += _INT16.pack(message.error_code)
    if version >= 2:
        write_compact_nullable_string(out, message.error_message)
    write_compact_array_length(out, len(message.topics))
    for response_topic_data in message.topics:
        _write_response_topic_data(out, response_topic_data, version)
    if version >= 2:
        write_compact_array_length(out, len(message.nodes))
        for node in message.nodes:
            _write_node(out, node, version)
    out += b"\x00"


def read_describe_quorum_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeQuorumResponse, int]:
    """Read a DescribeQuorumResponse. Raises MalformedRequest."""
    try:
        return _read_describe_quorum_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeQuorumResponse") from error


def write_describe_quorum_response(out: bytearray, message: DescribeQuorumResponse, version: int) -> None:
    """Append a DescribeQuorumResponse to `out`."""
    _write_describe_quorum_response(out, message, version)
