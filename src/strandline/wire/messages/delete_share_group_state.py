"""Messages of delete share group state. Written by tools/generate_messages.py: do not edit."""

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

_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionData(Structure):
    """Versions 0 to 0."""

    partition: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteStateData(Structure):
    """Versions 0 to 0."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteShareGroupStateRequest(Structure):
    """Versions 0 to 0."""

    group_id: str = ""
    topics: list[DeleteStateData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionResult(Structure):
    """Versions 0 to 0."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteStateResult(Structure):
    """Versions 0 to 0."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteShareGroupStateResponse(Structure):
    """Versions 0 to 0."""

    results: list[DeleteStateResult] = field(default_factory=list)


def _read_partition_data(buffer: memoryview, position: int, version: int) -> tuple[PartitionData, int]:
    (partition,) = _INT32.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return PartitionData(partition=partition), position


def _write_partition_data(out: bytearray, message: PartitionData, version: int) -> None:
    out += _INT32.pack(message.partition)
    out += b"\x00"


def _read_delete_state_data(buffer: memoryview, position: int, version: int) -> tuple[DeleteStateData, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition_data, position = _read_partition_data(buffer, position, version)
        partitions.append(partition_data)
    position = skip_tags(buffer, position)
    return DeleteStateData(topic_id=topic_id, partitions=partitions), position


def _write_delete_state_data(out: bytearray, message: DeleteStateData, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_data in message.partitions:
        _write_partition_data(out, partition_data, version)
    out += b"\x00"


def _read_delete_share_group_state_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteShareGroupStateRequest, int]:
    group_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[DeleteStateData] = []
    for _ in range(count):
        delete_state_data, position = _read_delete_state_data(buffer, position, version)
        topics.append(delete_state_data)
    position = skip_tags(buffer, position)
    return DeleteShareGroupStateRequest(group_id=group_id, topics=topics), position


def _write_delete_share_group_state_request(
    out: bytearray, message: DeleteShareGroupStateRequest, version: int
) -> None:
    write_compact_string(out, message.group_id)
    write_compact_array_length(out, len(message.topics))
    for delete_state_data in message.topics:
        _write_delete_state_data(out, delete_state_data, version)
    out += b"\x00"


def read_delete_share_group_state_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteShareGroupStateRequest, int]:
    """Read a DeleteShareGroupStateRequest. Raises MalformedRequest."""
    try:
        return _read_delete_share_group_state_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteShareGroupStateRequest") from error


def write_delete_share_group_state_request(out: bytearray, message: DeleteShareGroupStateRequest, version: int) -> None:
    """Append a DeleteShareGroupStateRequest to `out`."""
    _write_delete_share_group_state_request(out, message, version)


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


def _read_delete_state_result(buffer: memoryview, position: int, version: int) -> tuple[DeleteStateResult, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 7)
    partitions: list[PartitionResult] = []
    for _ in range(count):
        partition_result, position = _read_partition_result(buffer, position, version)
        partitions.append(partition_result)
    position = skip_tags(buffer, position)
    return DeleteStateResult(topic_id=topic_id, partitions=partitions), position


def _write_delete_state_result(out: bytearray, message: DeleteStateResult, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_result in message.partitions:
        _write_partition_result(out, partition_result, version)
    out += b"\x00"


def _read_delete_share_group_state_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteShareGroupStateResponse, int]:
    count, position = read_compact_array_length(buffer, position, 17)
    results: list[DeleteStateResult] = []
    for _ in range(count):
        delete_state_result, position = _read_delete_state_result(buffer, position, version)
        results.append(delete_state_result)
    position = skip_tags(buffer, position)
    return DeleteShareGroupStateResponse(results=results), position


def _write_delete_share_group_state_response(
    out: bytearray, message: DeleteShareGroupStateResponse, version: int
) -> None:
    write_compact_array_length(out, len(message.results))
    for delete_state_result in message.results:
        _write_delete_state_result(out, delete_state_result, version)
    out += b"\x00"


def read_delete_share_group_state_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteShareGroupStateResponse, int]:
    """Read a DeleteShareGroupStateResponse. Raises MalformedRequest."""
    try:
        return _read_delete_share_group_state_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteShareGroupStateResponse") from error


def write_delete_share_group_state_response(
    out: bytearray, message: DeleteShareGroupStateResponse, version: int
) -> None:
    """Append a DeleteShareGroupStateResponse to `out`."""
    _write_delete_share_group_state_response(out, message, version)
