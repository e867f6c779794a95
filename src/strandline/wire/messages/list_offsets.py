"""Messages of list offsets. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_string,
    read_string,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_string,
    write_string,
)
from strandline.wire.structure import Structure

_INT8 = Struct(">b")
_INT32 = Struct(">i")
_INT32_INT16_INT64_INT64 = Struct(">ihqq")
_INT64 = Struct(">q")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListOffsetsPartition(Structure):
    """Versions 1 to 11."""

    partition_index: int = 0
    current_leader_epoch: int = -1  # from version 4 on
    timestamp: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListOffsetsTopic(Structure):
    """Versions 1 to 11."""

    name: str = ""
    partitions: list[ListOffsetsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListOffsetsRequest(Structure):
    """Versions 1 to 11."""

    replica_id: int = 0
    isolation_level: int = 0  # from version 2 on
    topics: list[ListOffsetsTopic] = field(default_factory=list)
    timeout_ms: int = 0  # from version 10 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListOffsetsPartitionResponse(Structure):
    """Versions 1 to 11."""

    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1  # from version 4 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListOffsetsTopicResponse(Structure):
    """Versions 1 to 11."""

    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListOffsetsResponse(Structure):
    """Versions 1 to 11."""

    throttle_time_ms: int = 0  # from version 2 on
    topics: list[ListOffsetsTopicResponse] = field(default_factory=list)


def _read_list_offsets_partition(buffer: memoryview, position: int, version: int) -> tuple[ListOffsetsPartition, int]:
    flexible = version >= 6
    (partition_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    current_leader_epoch: int = -1
    if version >= 4:
        (current_leader_epoch,) = _INT32.unpack_from(buffer, position)
        position += 4
    (timestamp,) = _INT64.unpack_from(buffer, position)
    position += 8
    if flexible:
        position = skip_tags(buffer, position)
    return ListOffsetsPartition(
        partition_index=partition_index, current_leader_epoch=current_leader_epoch, timestamp=timestamp
    ), position


def _write_list_offsets_partition(out: bytearray, message: ListOffsetsPartition, version: int) -> None:
    flexible = version >= 6
    out += _INT32.pack(message.partition_index)
    if version >= 4:
        out += _INT32.pack(message.current_leader_epoch)
    out += _INT64.pack(message.timestamp)
    if flexible:
        out += b"\x00"


def _read_list_offsets_topic(buffer: memoryview, position: int, version: int) -> tuple[ListOffsetsTopic, int]:
    flexible = version >= 6
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 12) if flexible else read_array_length(buffer, position, 12)
    )
    partitions: list[ListOffsetsPartition] = []
    for _ in range(count):
        list_offsets_partition, position = _read_list_offsets_partition(buffer, position, version)
        partitions.append(list_offsets_partition)
    if flexible:
        position = skip_tags(buffer, position)
    return ListOffsetsTopic(name=name, partitions=partitions), position


def _write_list_offsets_topic(out: bytearray, message: ListOffsetsTopic, version: int) -> None:
    flexible = version >= 6
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for list_offsets_partition in message.partitions:
        _write_list_offsets_partition(out, list_offsets_partition, version)
    if flexible:
        out += b"\x00"


def _read_list_offsets_request(buffer: memoryview, position: int, version: int) -> tuple[ListOffsetsRequest, int]:
    flexible = version >= 6
    (replica_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    isolation_level: int = 0
    if version >= 2:
        (isolation_level,) = _INT8.unpack_from(buffer, position)
        position += 1
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    topics: list[ListOffsetsTopic] = []
    for _ in range(count):
        list_offsets_topic, position = _read_list_offsets_topic(buffer, position, version)
        topics.append(list_offsets_topic)
    timeout_ms: int = 0
    if version >= 10:
        (timeout_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    if flexible:
        position = skip_tags(buffer, position)
    return ListOffsetsRequest(
        replica_id=replica_id, isolation_level=isolation_level, topics=topics, timeout_ms=timeout_ms
    ), position


def _write_list_offsets_request(out: bytearray, message: ListOffsetsRequest, version: int) -> None:
    flexible = version >= 6
    out += _INT32.pack(message.replica_id)
    if version >= 2:
        out += _INT8.pack(message.isolation_level)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for list_offsets_topic in message.topics:
        _write_list_offsets_topic(out, list_offsets_topic, version)
    if version >= 10:
        out += _INT32.pack(message.timeout_ms)
    if flexible:
        out += b"\x00"


def read_list_offsets_request(buffer: memoryview, position: int, version: int) -> tuple[ListOffsetsRequest, int]:
    """Read a ListOffsetsRequest. Raises MalformedRequest."""
    try:
        return _read_list_offsets_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ListOffsetsRequest") from error


def write_list_offsets_request(out: bytearray, message: ListOffsetsRequest, version: int) -> None:
    """Append a ListOffsetsRequest to `out`."""
    _write_list_offsets_request(out, message, version)


def _read_list_offsets_partition_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ListOffsetsPartitionResponse, int]:
    flexible = version >= 6
    partition_index, error_code, timestamp, offset = _INT32_INT16_INT64_INT64.unpack_from(buffer, position)
    position += 22
    leader_epoch: int = -1
    if version >= 4:
        (leader_epoch,) = _INT32.unpack_from(buffer, position)
        position += 4
    if flexible:
        position = skip_tags(buffer, position)
    return ListOffsetsPartitionResponse(
        partition_index=partition_index,
        error_code=error_code,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch,
    ), position


def _write_list_offsets_partition_response(out: bytearray, message: ListOffsetsPartitionResponse, version: int) -> None:
    flexible = version >= 6
    out += _INT32_INT16_INT64_INT64.pack(message.partition_index, message.error_code, message.timestamp, message.offset)
    if version >= 4:
        out += _INT32.pack(message.leader_epoch)
    if flexible:
        out += b"\x00"


def _read_list_offsets_topic_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ListOffsetsTopicResponse, int]:
    flexible = version >= 6
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 22) if flexible else read_array_length(buffer, position, 22)
    )
    partitions: list[ListOffsetsPartitionResponse] = []
    for _ in range(count):
        list_offsets_partition_response, position = _read_list_offsets_partition_response(buffer, position, version)
        partitions.append(list_offsets_partition_response)
    if flexible:
        position = skip_tags(buffer, position)
    return ListOffsetsTopicResponse(name=name, partitions=partitions), position


def _write_list_offsets_topic_response(out: bytearray, message: ListOffsetsTopicResponse, version: int) -> None:
    flexible = version >= 6
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for list_offsets_partition_response in message.partitions:
        _write_list_offsets_partition_response(out, list_offsets_partition_response, version)
    if flexible:
        out += b"\x00"


def _read_list_offsets_response(buffer: memoryview, position: int, version: int) -> tuple[ListOffsetsResponse, int]:
    flexible = version >= 6
    throttle_time_ms: int = 0
    if version >= 2:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    topics: list[ListOffsetsTopicResponse] = []
    for _ in range(count):
        list_offsets_topic_response, position = _read_list_offsets_topic_response(buffer, position, version)
        topics.append(list_offsets_topic_response)
    if flexible:
        position = skip_tags(buffer, position)
    return ListOffsetsResponse(throttle_time_ms=throttle_time_ms, topics=topics), position


def _write_list_offsets_response(out: bytearray, message: ListOffsetsResponse, version: int) -> None:
    flexible = version >= 6
    if version >= 2:
        out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for list_offsets_topic_response in message.topics:
        _write_list_offsets_topic_response(out, list_offsets_topic_response, version)
    if flexible:
        out += b"\x00"


def read_list_offsets_response(buffer: memoryview, position: int, version: int) -> tuple[ListOffsetsResponse, int]:
    """Read a ListOffsetsResponse. Raises MalformedRequest."""
    try:
        return _read_list_offsets_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ListOffsetsResponse") from error


def write_list_offsets_response(out: bytearray, message: ListOffsetsResponse, version: int) -> None:
    """Append a ListOffsetsResponse to `out`."""
    _write_list_offsets_response(out, message, version)
