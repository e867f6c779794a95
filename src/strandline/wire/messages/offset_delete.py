"""Messages of offset delete. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_string,
    truncated,
    write_array_length,
    write_string,
)
from strandline.wire.structure import Structure

_INT16_INT32 = Struct(">hi")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetDeleteRequestPartition(Structure):
    """Versions 0 to 0."""

    partition_index: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetDeleteRequestTopic(Structure):
    """Versions 0 to 0."""

    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetDeleteRequest(Structure):
    """Versions 0 to 0."""

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetDeleteResponsePartition(Structure):
    """Versions 0 to 0."""

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetDeleteResponseTopic(Structure):
    """Versions 0 to 0."""

    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetDeleteResponse(Structure):
    """Versions 0 to 0."""

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = field(default_factory=list)


def _read_offset_delete_request_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetDeleteRequestPartition, int]:
    (partition_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    return OffsetDeleteRequestPartition(partition_index=partition_index), position


def _write_offset_delete_request_partition(out: bytearray, message: OffsetDeleteRequestPartition, version: int) -> None:
    out += _INT32.pack(message.partition_index)


def _read_offset_delete_request_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetDeleteRequestTopic, int]:
    name, position = read_string(buffer, position)
    count, position = read_array_length(buffer, position, 4)
    partitions: list[OffsetDeleteRequestPartition] = []
    for _ in range(count):
        offset_delete_request_partition, position = _read_offset_delete_request_partition(buffer, position, version)
        partitions.append(offset_delete_request_partition)
    return OffsetDeleteRequestTopic(name=name, partitions=partitions), position


def _write_offset_delete_request_topic(out: bytearray, message: OffsetDeleteRequestTopic, version: int) -> None:
    write_string(out, message.name)
    write_array_length(out, len(message.partitions))
    for offset_delete_request_partition in message.partitions:
        _write_offset_delete_request_partition(out, offset_delete_request_partition, version)


def _read_offset_delete_request(buffer: memoryview, position: int, version: int) -> tuple[OffsetDeleteRequest, int]:
    group_id, position = read_string(buffer, position)
    count, position = read_array_length(buffer, position, 4)
    topics: list[OffsetDeleteRequestTopic] = []
    for _ in range(count):
        offset_delete_request_topic, position = _read_offset_delete_request_topic(buffer, position, version)
        topics.append(offset_delete_request_topic)
    return OffsetDeleteRequest(group_id=group_id, topics=topics), position


def _write_offset_delete_request(out: bytearray, message: OffsetDeleteRequest, version: int) -> None:
    write_string(out, message.group_id)
    write_array_length(out, len(message.topics))
    for offset_delete_request_topic in message.topics:
        _write_offset_delete_request_topic(out, offset_delete_request_topic, version)


def read_offset_delete_request(buffer: memoryview, position: int, version: int) -> tuple[OffsetDeleteRequest, int]:
    """Read a OffsetDeleteRequest. Raises MalformedRequest."""
    try:
        return _read_offset_delete_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("OffsetDeleteRequest") from error


def write_offset_delete_request(out: bytearray, message: OffsetDeleteRequest, version: int) -> None:
    """Append a OffsetDeleteRequest to `out`."""
    _write_offset_delete_request(out, message, version)


def _read_offset_delete_response_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetDeleteResponsePartition, int]:
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    return OffsetDeleteResponsePartition(partition_index=partition_index, error_code=error_code), position


def _write_offset_delete_response_partition(
    out: bytearray, message: OffsetDeleteResponsePartition, version: int
) -> None:
    out += _INT32_INT16.pack(message.partition_index, message.error_code)


def _read_offset_delete_response_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetDeleteResponseTopic, int]:
    name, position = read_string(buffer, position)
    count, position = read_array_length(buffer, position, 6)
    partitions: list[OffsetDeleteResponsePartition] = []
    for _ in range(count):
        offset_delete_response_partition, position = _read_offset_delete_response_partition(buffer, position, version)
        partitions.append(offset_delete_response_partition)
    return OffsetDeleteResponseTopic(name=name, partitions=partitions), position


def _write_offset_delete_response_topic(out: bytearray, message: OffsetDeleteResponseTopic, version: int) -> None:
    write_string(out, message.name)
    write_array_length(out, len(message.partitions))
    for offset_delete_response_partition in message.partitions:
        _write_offset_delete_response_partition(out, offset_delete_response_partition, version)


def _read_offset_delete_response(buffer: memoryview, position: int, version: int) -> tuple[OffsetDeleteResponse, int]:
    error_code, throttle_time_ms = _INT16_INT32.unpack_from(buffer, position)
    position += 6
    count, position = read_array_length(buffer, position, 4)
    topics: list[OffsetDeleteResponseTopic] = []
    for _ in range(count):
        offset_delete_response_topic, position = _read_offset_delete_response_topic(buffer, position, version)
        topics.append(offset_delete_response_topic)
    return OffsetDeleteResponse(error_code=error_code, throttle_time_ms=throttle_time_ms, topics=topics), position


def _write_offset_delete_response(out: bytearray, message: OffsetDeleteResponse, version: int) -> None:
    out += _INT16_INT32.pack(message.error_code, message.throttle_time_ms)
    write_array_length(out, len(message.topics))
    for offset_delete_response_topic in message.topics:
        _write_offset_delete_response_topic(out, offset_delete_response_topic, version)


def read_offset_delete_response(buffer: memoryview, position: int, version: int) -> tuple[OffsetDeleteResponse, int]:
    """Read a OffsetDeleteResponse. Raises MalformedRequest."""
    try:
        return _read_offset_delete_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("OffsetDeleteResponse") from error


def write_offset_delete_response(out: bytearray, message: OffsetDeleteResponse, version: int) -> None:
    """Append a OffsetDeleteResponse to `out`."""
    _write_offset_delete_response(out, message, version)
