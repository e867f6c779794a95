"""Messages of assign replicas to dirs. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_uuid,
    skip_tags,
    truncated,
    write_compact_array_length,
)
from strandline.wire.structure import Structure

_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT64 = Struct(">iq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class RequestPartitionData(Structure):
    """Versions 0 to 0."""

    partition_index: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class RequestTopicData(Structure):
    """Versions 0 to 0."""

    topic_id: UUID = ZERO_UUID
    partitions: list[RequestPartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class RequestDirectoryData(Structure):
    """Versions 0 to 0."""

    id_: UUID = ZERO_UUID
    topics: list[RequestTopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AssignReplicasToDirsRequest(Structure):
    """Versions 0 to 0."""

    broker_id: int = 0
    broker_epoch: int = -1
    directories: list[RequestDirectoryData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ResponsePartitionData(Structure):
    """Versions 0 to 0."""

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ResponseTopicData(Structure):
    """Versions 0 to 0."""

    topic_id: UUID = ZERO_UUID
    partitions: list[ResponsePartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ResponseDirectoryData(Structure):
    """Versions 0 to 0."""

    id_: UUID = ZERO_UUID
    topics: list[ResponseTopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AssignReplicasToDirsResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    directories: list[ResponseDirectoryData] = field(default_factory=list)


def _read_request_partition_data(buffer: memoryview, position: int, version: int) -> tuple[RequestPartitionData, int]:
    (partition_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return RequestPartitionData(partition_index=partition_index), position


def _write_request_partition_data(out: bytearray, message: RequestPartitionData, version: int) -> None:
    out += _INT32.pack(message.partition_index)
    out += b"\x00"


def _read_request_topic_data(buffer: memoryview, position: int, version: int) -> tuple[RequestTopicData, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partitions: list[RequestPartitionData] = []
    for _ in range(count):
        request_partition_data, position = _read_request_partition_data(buffer, position, version)
        partitions.append(request_partition_data)
    position = skip_tags(buffer, position)
    return RequestTopicData(topic_id=topic_id, partitions=partitions), position


def _write_request_topic_data(out: bytearray, message: RequestTopicData, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for request_partition_data in message.partitions:
        _write_request_partition_data(out, request_partition_data, version)
    out += b"\x00"


def _read_request_directory_data(buffer: memoryview, position: int, version: int) -> tuple[RequestDirectoryData, int]:
    id_, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[RequestTopicData] = []
    for _ in range(count):
        request_topic_data, position = _read_request_topic_data(buffer, position, version)
        topics.append(request_topic_data)
    position = skip_tags(buffer, position)
    return RequestDirectoryData(id_=id_, topics=topics), position


def _write_request_directory_data(out: bytearray, message: RequestDirectoryData, version: int) -> None:
    out += message.id_.bytes
    write_compact_array_length(out, len(message.topics))
    for request_topic_data in message.topics:
        _write_request_topic_data(out, request_topic_data, version)
    out += b"\x00"


def _read_assign_replicas_to_dirs_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AssignReplicasToDirsRequest, int]:
    broker_id, broker_epoch = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    count, position = read_compact_array_length(buffer, position, 17)
    directories: list[RequestDirectoryData] = []
    for _ in range(count):
        request_directory_data, position = _read_request_directory_data(buffer, position, version)
        directories.append(request_directory_data)
    position = skip_tags(buffer, position)
    return AssignReplicasToDirsRequest(
        broker_id=broker_id, broker_epoch=broker_epoch, directories=directories
    ), position


def _write_assign_replicas_to_dirs_request(out: bytearray, message: AssignReplicasToDirsRequest, version: int) -> None:
    out += _INT32_INT64.pack(message.broker_id, message.broker_epoch)
    write_compact_array_length(out, len(message.directories))
    for request_directory_data in message.directories:
        _write_request_directory_data(out, request_directory_data, version)
    out += b"\x00"


def read_assign_replicas_to_dirs_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AssignReplicasToDirsRequest, int]:
    """Read a AssignReplicasToDirsRequest. Raises MalformedRequest."""
    try:
        return _read_assign_replicas_to_dirs_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AssignReplicasToDirsRequest") from error


def write_assign_replicas_to_dirs_request(out: bytearray, message: AssignReplicasToDirsRequest, version: int) -> None:
    """Append a AssignReplicasToDirsRequest to `out`."""
    _write_assign_replicas_to_dirs_request(out, message, version)


def _read_response_partition_data(buffer: memoryview, position: int, version: int) -> tuple[ResponsePartitionData, int]:
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    position = skip_tags(buffer, position)
    return ResponsePartitionData(partition_index=partition_index, error_code=error_code), position


def _write_response_partition_data(out: bytearray, message: ResponsePartitionData, version: int) -> None:
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    out += b"\x00"


def _read_response_topic_data(buffer: memoryview, position: int, version: int) -> tuple[ResponseTopicData, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 6)
    partitions: list[ResponsePartitionData] = []
    for _ in range(count):
        response_partition_data, position = _read_response_partition_data(buffer, position, version)
        partitions.append(response_partition_data)
    position = skip_tags(buffer, position)
    return ResponseTopicData(topic_id=topic_id, partitions=partitions), position


def _write_response_topic_data(out: bytearray, message: ResponseTopicData, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for response_partition_data in message.partitions:
        _write_response_partition_data(out, response_partition_data, version)
    out += b"\x00"


def _read_response_directory_data(buffer: memoryview, position: int, version: int) -> tuple[ResponseDirectoryData, int]:
    id_, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[ResponseTopicData] = []
    for _ in range(count):
        response_topic_data, position = _read_response_topic_data(buffer, position, version)
        topics.append(response_topic_data)
    position = skip_tags(buffer, position)
    return ResponseDirectoryData(id_=id_, topics=topics), position


def _write_response_directory_data(out: bytearray, message: ResponseDirectoryData, version: int) -> None:
    out += message.id_.bytes
    write_compact_array_length(out, len(message.topics))
    for response_topic_data in message.topics:
        _write_response_topic_data(out, response_topic_data, version)
    out += b"\x00"


def _read_assign_replicas_to_dirs_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AssignReplicasToDirsResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    count, position = read_compact_array_length(buffer, position, 17)
    directories: list[ResponseDirectoryData] = []
    for _ in range(count):
        response_directory_data, position = _read_response_directory_data(buffer, position, version)
        directories.append(response_directory_data)
    position = skip_tags(buffer, position)
    return AssignReplicasToDirsResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, directories=directories
    ), position


def _write_assign_replicas_to_dirs_response(
    out: bytearray, message: AssignReplicasToDirsResponse, version: int
) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_array_length(out, len(message.directories))
    for response_directory_data in message.directories:
        _write_response_directory_data(out, response_directory_data, version)
    out += b"\x00"


def read_assign_replicas_to_dirs_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AssignReplicasToDirsResponse, int]:
    """Read a AssignReplicasToDirsResponse. Raises MalformedRequest."""
    try:
        return _read_assign_replicas_to_dirs_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AssignReplicasToDirsResponse") from error


def write_assign_replicas_to_dirs_response(out: bytearray, message: AssignReplicasToDirsResponse, version: int) -> None:
    """Append a AssignReplicasToDirsResponse to `out`."""
    _write_assign_replicas_to_dirs_response(out, message, version)
