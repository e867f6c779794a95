"""Messages of share acknowledge. Written by tools/generate_messages.py: do not edit."""

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
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT32 = Struct(">ii")
_INT64_INT64 = Struct(">qq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AcknowledgementBatch(Structure):
    """Versions 1 to 2."""

    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AcknowledgePartition(Structure):
    """Versions 1 to 2."""

    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AcknowledgeTopic(Structure):
    """Versions 1 to 2."""

    topic_id: UUID = ZERO_UUID
    partitions: list[AcknowledgePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ShareAcknowledgeRequest(Structure):
    """Versions 1 to 2."""

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False  # from version 2 on
    topics: list[AcknowledgeTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class LeaderIdAndEpoch(Structure):
    """Versions 1 to 2."""

    leader_id: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionData(Structure):
    """Versions 1 to 2."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ShareAcknowledgeTopicResponse(Structure):
    """Versions 1 to 2."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class NodeEndpoint(Structure):
    """Versions 1 to 2."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ShareAcknowledgeResponse(Structure):
    """Versions 1 to 2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0  # from version 2 on
    responses: list[ShareAcknowledgeTopicResponse] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


def _read_acknowledgement_batch(buffer: memoryview, position: int, version: int) -> tuple[AcknowledgementBatch, int]:
    first_offset, last_offset = _INT64_INT64.unpack_from(buffer, position)
    position += 16
    count, position = read_compact_array_length(buffer, position, 1)
    acknowledge_types, position = read_numbers(buffer, position, count, "b")
    position = skip_tags(buffer, position)
    return AcknowledgementBatch(
        first_offset=first_offset, last_offset=last_offset, acknowledge_types=acknowledge_types
    ), position


def _write_acknowledgement_batch(out: bytearray, message: AcknowledgementBatch, version: int) -> None:
    out += _INT64_INT64.pack(message.first_offset, message.last_offset)
    write_compact_numbers(out, message.acknowledge_types, "b")
    out += b"\x00"


def _read_acknowledge_partition(buffer: memoryview, position: int, version: int) -> tuple[AcknowledgePartition, int]:
    (partition_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 17)
    acknowledgement_batches: list[AcknowledgementBatch] = []
    for _ in range(count):
        acknowledgement_batch, position = _read_acknowledgement_batch(buffer, position, version)
        acknowledgement_batches.append(acknowledgement_batch)
    position = skip_tags(buffer, position)
    return AcknowledgePartition(
        partition_index=partition_index, acknowledgement_batches=acknowledgement_batches
    ), position


def _write_acknowledge_partition(out: bytearray, message: AcknowledgePartition, version: int) -> None:
    out += _INT32.pack(message.partition_index)
    write_compact_array_length(out, len(message.acknowledgement_batches))
    for acknowledgement_batch in message.acknowledgement_batches:
        _write_acknowledgement_batch(out, acknowledgement_batch, version)
    out += b"\x00"


def _read_acknowledge_topic(buffer: memoryview, position: int, version: int) -> tuple[AcknowledgeTopic, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 5)
    partitions: list[AcknowledgePartition] = []
    for _ in range(count):
        acknowledge_partition, position = _read_acknowledge_partition(buffer, position, version)
        partitions.append(acknowledge_partition)
    position = skip_tags(buffer, position)
    return AcknowledgeTopic(topic_id=topic_id, partitions=partitions), position


def _write_acknowledge_topic(out: bytearray, message: AcknowledgeTopic, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for acknowledge_partition in message.partitions:
        _write_acknowledge_partition(out, acknowledge_partition, version)
    out += b"\x00"


def _read_share_acknowledge_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ShareAcknowledgeRequest, int]:
    group_id, position = read_compact_nullable_string(buffer, position)
    member_id, position = read_compact_nullable_string(buffer, position)
    (share_session_epoch,) = _INT32.unpack_from(buffer, position)
    position += 4
    is_renew_ack: bool = False
    if version >= 2:
        (is_renew_ack,) = _BOOL.unpack_from(buffer, position)
        position += 1
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[AcknowledgeTopic] = []
    for _ in range(count):
        acknowledge_topic, position = _read_acknowledge_topic(buffer, position, version)
        topics.append(acknowledge_topic)
    position = skip_tags(buffer, position)
    return ShareAcknowledgeRequest(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=share_session_epoch,
        is_renew_ack=is_renew_ack,
        topics=topics,
    ), position


def _write_share_acknowledge_request(out: bytearray, message: ShareAcknowledgeRequest, version: int) -> None:
    write_compact_nullable_string(out, message.group_id)
    write_compact_nullable_string(out, message.member_id)
    out += _INT32.pack(message.share_session_epoch)
    if version >= 2:
        out += _BOOL.pack(message.is_renew_ack)
    write_compact_array_length(out, len(message.topics))
    for acknowledge_topic in message.topics:
        _write_acknowledge_topic(out, acknowledge_topic, version)
    out += b"\x00"


def read_share_acknowledge_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ShareAcknowledgeRequest, int]:
    """Read a ShareAcknowledgeRequest. Raises MalformedRequest."""
    try:
        return _read_share_acknowledge_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ShareAcknowledgeRequest") from error


def write_share_acknowledge_request(out: bytearray, message: ShareAcknowledgeRequest, version: int) -> None:
    """Append a ShareAcknowledgeRequest to `out`."""
    _write_share_acknowledge_request(out, message, version)


def _read_leader_id_and_epoch(buffer: memoryview, position: int, version: int) -> tuple[LeaderIdAndEpoch, int]:
    leader_id, leader_epoch = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    position = skip_tags(buffer, position)
    return LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch), position


def _write_leader_id_and_epoch(out: bytearray, message: LeaderIdAndEpoch, version: int) -> None:
    out += _INT32_INT32.pack(message.leader_id, message.leader_epoch)
    out += b"\x00"


def _read_partition_data(buffer: memoryview, position: int, version: int) -> tuple[PartitionData, int]:
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    current_leader, position = _read_leader_id_and_epoch(buffer, position, version)
    position = skip_tags(buffer, position)
    return PartitionData(
        partition_index=partition_index,
        error_code=error_code,
        error_message=error_message,
        current_leader=current_leader,
    ), position


def _write_partition_data(out: bytearray, message: PartitionData, version: int) -> None:
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    _write_leader_id_and_epoch(out, message.current_leader, version)
    out += b"\x00"


def _read_share_acknowledge_topic_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ShareAcknowledgeTopicResponse, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 15)
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition_data, position = _read_partition_data(buffer, position, version)
        partitions.append(partition_data)
    position = skip_tags(buffer, position)
    return ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions), position


def _write_share_acknowledge_topic_response(
    out: bytearray, message: ShareAcknowledgeTopicResponse, version: int
) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_data in message.partitions:
        _write_partition_data(out, partition_data, version)
    out += b"\x00"


def _read_node_endpoint(buffer: memoryview, position: int, version: int) -> tuple[NodeEndpoint, int]:
    (node_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    host, position = read_compact_string(buffer, position)
    (port,) = _INT32.unpack_from(buffer, position)
    position += 4
    rack, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack), position


def _write_node_endpoint(out: bytearray, message: NodeEndpoint, version: int) -> None:
    out += _INT32.pack(message.node_id)
    write_compact_string(out, message.host)
    out += _INT32.pack(message.port)
    write_compact_nullable_string(out, message.rack)
    out += b"\x00"


def _read_share_acknowledge_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ShareAcknowledgeResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    acquisition_lock_timeout_ms: int = 0
    if version >= 2:
        (acquisition_lock_timeout_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    count, position = read_compact_array_length(buffer, position, 17)
    responses: list[ShareAcknowledgeTopicResponse] = []
    for _ in range(count):
        share_acknowledge_topic_response, position = _read_share_acknowledge_topic_response(buffer, position, version)
        responses.append(share_acknowledge_topic_response)
    count, position = read_compact_array_length(buffer, position, 10)
    node_endpoints: list[NodeEndpoint] = []
    for _ in range(count):
        node_endpoint, position = _read_node_endpoint(buffer, position, version)
        node_endpoints.append(node_endpoint)
    position = skip_tags(buffer, position)
    return ShareAcknowledgeResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        acquisition_lock_timeout_ms=acquisition_lock_timeout_ms,
        responses=responses,
        node_endpoints=node_endpoints,
    ), position


def _write_share_acknowledge_response(out: bytearray, message: ShareAcknowledgeResponse, version: int) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    if version >= 2:
        out += _INT32.pack(message.acquisition_lock_timeout_ms)
    write_compact_array_length(out, len(message.responses))
    for share_acknowledge_topic_response in message.responses:
        _write_share_acknowledge_topic_response(out, share_acknowledge_topic_response, version)
    write_compact_array_length(out, len(message.node_endpoints))
    for node_endpoint in message.node_endpoints:
        _write_node_endpoint(out, node_endpoint, version)
    out += b"\x00"


def read_share_acknowledge_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ShareAcknowledgeResponse, int]:
    """Read a ShareAcknowledgeResponse. Raises MalformedRequest."""
    try:
        return _read_share_acknowledge_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ShareAcknowledgeResponse") from error


def write_share_acknowledge_response(out: bytearray, message: ShareAcknowledgeResponse, version: int) -> None:
    """Append a ShareAcknowledgeResponse to `out`."""
    _write_share_acknowledge_response(out, message, version)
