"""Messages of alter partition reassignments. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)
from strandline.wire.structure import Structure

_BOOL = Struct(">?")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReassignablePartition(Structure):
    """Versions 0 to 1."""

    partition_index: int = 0
    replicas: list[int] | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReassignableTopic(Structure):
    """Versions 0 to 1."""

    name: str = ""
    partitions: list[ReassignablePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterPartitionReassignmentsRequest(Structure):
    """Versions 0 to 1."""

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True  # from version 1 on
    topics: list[ReassignableTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReassignablePartitionResponse(Structure):
    """Versions 0 to 1."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReassignableTopicResponse(Structure):
    """Versions 0 to 1."""

    name: str = ""
    partitions: list[ReassignablePartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterPartitionReassignmentsResponse(Structure):
    """Versions 0 to 1."""

    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True  # from version 1 on
    error_code: int = 0
    error_message: str | None = None
    responses: list[ReassignableTopicResponse] = field(default_factory=list)


def _read_reassignable_partition(buffer: memoryview, position: int, version: int) -> tuple[ReassignablePartition, int]:
    (partition_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_nullable_array_length(buffer, position, 4)
    replicas: list[int] | None = None
    if count >= 0:
        replicas, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return ReassignablePartition(partition_index=partition_index, replicas=replicas), position


def _write_reassignable_partition(out: bytearray, message: ReassignablePartition, version: int) -> None:
    out += _INT32.pack(message.partition_index)
    if message.replicas is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_numbers(out, message.replicas, "i")
    out += b"\x00"


def _read_reassignable_topic(buffer: memoryview, position: int, version: int) -> tuple[ReassignableTopic, int]:
    name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 5)
    partitions: list[ReassignablePartition] = []
    for _ in range(count):
        reassignable_partition, position = _read_reassignable_partition(buffer, position, version)
        partitions.append(reassignable_partition)
    position = skip_tags(buffer, position)
    return ReassignableTopic(name=name, partitions=partitions), position


def _write_reassignable_topic(out: bytearray, message: ReassignableTopic, version: int) -> None:
    write_compact_string(out, message.name)
    write_compact_array_length(out, len(message.partitions))
    for reassignable_partition in message.partitions:
        _write_reassignable_partition(out, reassignable_partition, version)
    out += b"\x00"


def _read_alter_partition_reassignments_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterPartitionReassignmentsRequest, int]:
    (timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    allow_replication_factor_change: bool = True
    if version >= 1:
        (allow_replication_factor_change,) = _BOOL.unpack_from(buffer, position)
        position += 1
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[ReassignableTopic] = []
    for _ in range(count):
        reassignable_topic, position = _read_reassignable_topic(buffer, position, version)
        topics.append(reassignable_topic)
    position = skip_tags(buffer, position)
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms, allow_replication_factor_change=allow_replication_factor_change, topics=topics
    ), position


def _write_alter_partition_reassignments_request(
    out: bytearray, message: AlterPartitionReassignmentsRequest, version: int
) -> None:
    out += _INT32.pack(message.timeout_ms)
    if version >= 1:
        out += _BOOL.pack(message.allow_replication_factor_change)
    write_compact_array_length(out, len(message.topics))
    for reassignable_topic in message.topics:
        _write_reassignable_topic(out, reassignable_topic, version)
    out += b"\x00"


def read_alter_partition_reassignments_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterPartitionReassignmentsRequest, int]:
    """Read a AlterPartitionReassignmentsRequest. Raises MalformedRequest."""
    try:
        return _read_alter_partition_reassignments_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterPartitionReassignmentsRequest") from error


def write_alter_partition_reassignments_request(
    out: bytearray, message: AlterPartitionReassignmentsRequest, version: int
) -> None:
    """Append a AlterPartitionReassignmentsRequest to `out`."""
    _write_alter_partition_reassignments_request(out, message, version)


def _read_reassignable_partition_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ReassignablePartitionResponse, int]:
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return ReassignablePartitionResponse(
        partition_index=partition_index, error_code=error_code, error_message=error_message
    ), position


def _write_reassignable_partition_response(
    out: bytearray, message: ReassignablePartitionResponse, version: int
) -> None:
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def _read_reassignable_topic_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ReassignableTopicResponse, int]:
    name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 7)
    partitions: list[ReassignablePartitionResponse] = []
    for _ in range(count):
        reassignable_partition_response, position = _read_reassignable_partition_response(buffer, position, version)
        partitions.append(reassignable_partition_response)
    position = skip_tags(buffer, position)
    return ReassignableTopicResponse(name=name, partitions=partitions), position


def _write_reassignable_topic_response(out: bytearray, message: ReassignableTopicResponse, version: int) -> None:
    write_compact_string(out, message.name)
    write_compact_array_length(out, len(message.partitions))
    for reassignable_partition_response in message.partitions:
        _write_reassignable_partition_response(out, reassignable_partition_response, version)
    out += b"\x00"


def _read_alter_partition_reassignments_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterPartitionReassignmentsResponse, int]:
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    allow_replication_factor_change: bool = True
    if version >= 1:
        (allow_replication_factor_change,) = _BOOL.unpack_from(buffer, position)
        position += 1
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = read_compact_nullable_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 2)
    responses: list[ReassignableTopicResponse] = []
    for _ in range(count):
        reassignable_topic_response, position = _read_reassignable_topic_response(buffer, position, version)
        responses.append(reassignable_topic_response)
    position = skip_tags(buffer, position)
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=throttle_time_ms,
        allow_replication_factor_change=allow_replication_factor_change,
        error_code=error_code,
        error_message=error_message,
        responses=responses,
    ), position


def _write_alter_partition_reassignments_response(
    out: bytearray, message: AlterPartitionReassignmentsResponse, version: int
) -> None:
    out += _INT32.pack(message.throttle_time_ms)
    if version >= 1:
        out += _BOOL.pack(message.allow_replication_factor_change)
    out += _INT16.pack(message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_array_length(out, len(message.responses))
    for reassignable_topic_response in message.responses:
        _write_reassignable_topic_response(out, reassignable_topic_response, version)
    out += b"\x00"


def read_alter_partition_reassignments_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterPartitionReassignmentsResponse, int]:
    """Read a AlterPartitionReassignmentsResponse. Raises MalformedRequest."""
    try:
        return _read_alter_partition_reassignments_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterPartitionReassignmentsResponse") from error


def write_alter_partition_reassignments_response(
    out: bytearray, message: AlterPartitionReassignmentsResponse, version: int
) -> None:
    """Append a AlterPartitionReassignmentsResponse to `out`."""
    _write_alter_partition_reassignments_response(out, message, version)
