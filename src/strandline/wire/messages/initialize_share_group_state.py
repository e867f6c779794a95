"""Messages of initialize share group state. Written by tools/generate_messages.py: do not edit."""

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

_INT32_INT16 = Struct(">ih")
_INT32_INT32_INT64 = Struct(">iiq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionData(Structure):
    """Versions 0 to 0."""

    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class InitializeStateData(Structure):
    """Versions 0 to 0."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class InitializeShareGroupStateRequest(Structure):
    """Versions 0 to 0."""

    group_id: str = ""
    topics: list[InitializeStateData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionResult(Structure):
    """Versions 0 to 0."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class InitializeStateResult(Structure):
    """Versions 0 to 0."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class InitializeShareGroupStateResponse(Structure):
    """Versions 0 to 0."""

    results: list[InitializeStateResult] = field(default_factory=list)


def _read_partition_data(buffer: memoryview, position: int, version: int) -> tuple[PartitionData, int]:
    partition, state_epoch, start_offset = _INT32_INT32_INT64.unpack_from(buffer, position)
    position += 16
    position = skip_tags(buffer, position)
    return PartitionData(partition=partition, state_epoch=state_epoch, start_offset=start_offset), position


def _write_partition_data(out: bytearray, message: PartitionData, version: int) -> None:
    out += _INT32_INT32_INT64.pack(message.partition, message.state_epoch, message.start_offset)
    out += b"\x00"


def _read_initialize_state_data(buffer: memoryview, position: int, version: int) -> tuple[InitializeStateData, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 16)
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition_data, position = _read_partition_data(buffer, position, version)
        partitions.append(partition_data)
    position = skip_tags(buffer, position)
    return InitializeStateData(topic_id=topic_id, partitions=partitions), position


def _write_initialize_state_data(out: bytearray, message: InitializeStateData, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_data in message.partitions:
        _write_partition_data(out, partition_data, version)
    out += b"\x00"


def _read_initialize_share_group_state_request(
    buffer: memoryview, position: int, version: int
) -> tuple[InitializeShareGroupStateRequest, int]:
    group_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[InitializeStateData] = []
    for _ in range(count):
        initialize_state_data, position = _read_initialize_state_data(buffer, position, version)
        topics.append(initialize_state_data)
    position = skip_tags(buffer, position)
    return InitializeShareGroupStateRequest(group_id=group_id, topics=topics), position


def _write_initialize_share_group_state_request(
    out: bytearray, message: InitializeShareGroupStateRequest, version: int
) -> None:
    write_compact_string(out, message.group_id)
    write_compact_array_length(out, len(message.topics))
    for initialize_state_data in message.topics:
        _write_initialize_state_data(out, initialize_state_data, version)
    out += b"\x00"


def read_initialize_share_group_state_request(
    buffer: memoryview, position: int, version: int
) -> tuple[InitializeShareGroupStateRequest, int]:
    """Read a InitializeShareGroupStateRequest. Raises MalformedRequest."""
    try:
        return _read_initialize_share_group_state_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("InitializeShareGroupStateRequest") from error


def write_initialize_share_group_state_request(
    out: bytearray, message: InitializeShareGroupStateRequest, version: int
) -> None:
    """Append a InitializeShareGroupStateRequest to `out`."""
    _write_initialize_share_group_state_request(out, message, version)


def _read_partition_result(buffer: memoryview, position: int, version: int) -> tuple[PartitionResult, int]:
    partition, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return PartitionResult(partition=partition, error_code=error_code, error_message=error_message), position


def _write_partition_result(out: bytearray, message: PartitionResult, version: int) -> None:
    out += _INT32_INT16.pack(message.partition, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def _read_initialize_state_result(buffer: memoryview, position: int, version: int) -> tuple[InitializeStateResult, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 7)
    partitions: list[PartitionResult] = []
    for _ in range(count):
        partition_result, position = _read_partition_result(buffer, position, version)
        partitions.append(partition_result)
    position = skip_tags(buffer, position)
    return InitializeStateResult(topic_id=topic_id, partitions=partitions), position


def _write_initialize_state_result(out: bytearray, message: InitializeStateResult, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_result in message.partitions:
        _write_partition_result(out, partition_result, version)
    out += b"\x00"


def _read_initialize_share_group_state_response(
    buffer: memoryview, position: int, version: int
) -> tuple[InitializeShareGroupStateResponse, int]:
    count, position = read_compact_array_length(buffer, position, 17)
    results: list[InitializeStateResult] = []
    for _ in range(count):
        initialize_state_result, position = _read_initialize_state_result(buffer, position, version)
        results.append(initialize_state_result)
    position = skip_tags(buffer, position)
    return InitializeShareGroupStateResponse(results=results), position


def _write_initialize_share_group_state_response(
    out: bytearray, message: InitializeShareGroupStateResponse, version: int
) -> None:
    write_compact_array_length(out, len(message.results))
    for initialize_state_result in message.results:
        _write_initialize_state_result(out, initialize_state_result, version)
    out += b"\x00"


def read_initialize_share_group_state_response(
    buffer: memoryview, position: int, version: int
) -> tuple[InitializeShareGroupStateResponse, int]:
    """Read a InitializeShareGroupStateResponse. Raises MalformedRequest."""
    try:
        return _read_initialize_share_group_state_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("InitializeShareGroupStateResponse") from error


def write_initialize_share_group_state_response(
    out: bytearray, message: InitializeShareGroupStateResponse, version: int
) -> None:
    """Append a InitializeShareGroupStateResponse to `out`."""
    _write_initialize_share_group_state_response(out, message, version)
