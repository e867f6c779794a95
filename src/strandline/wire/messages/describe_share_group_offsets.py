"""Messages of describe share group offsets. Written by tools/generate_messages.py: do not edit."""

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

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT64_INT32 = Struct(">iqi")
_INT64 = Struct(">q")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeShareGroupOffsetsRequestTopic(Structure):
    """Versions 0 to 1."""

    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeShareGroupOffsetsRequestGroup(Structure):
    """Versions 0 to 1."""

    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeShareGroupOffsetsRequest(Structure):
    """Versions 0 to 1."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeShareGroupOffsetsResponsePartition(Structure):
    """Versions 0 to 1."""

    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1  # from version 1 on
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeShareGroupOffsetsResponseTopic(Structure):
    """Versions 0 to 1."""

    topic_name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeShareGroupOffsetsResponseGroup(Structure):
    """Versions 0 to 1."""

    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(default_factory=list)
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeShareGroupOffsetsResponse(Structure):
    """Versions 0 to 1."""

    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(default_factory=list)


def _read_describe_share_group_offsets_request_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeShareGroupOffsetsRequestTopic, int]:
    topic_name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partitions, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return DescribeShareGroupOffsetsRequestTopic(topic_name=topic_name, partitions=partitions), position


def _write_describe_share_group_offsets_request_topic(
    out: bytearray, message: DescribeShareGroupOffsetsRequestTopic, version: int
) -> None:
    write_compact_string(out, message.topic_name)
    write_compact_numbers(out, message.partitions, "i")
    out += b"\x00"


def _read_describe_share_group_offsets_request_group(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeShareGroupOffsetsRequestGroup, int]:
    group_id, position = read_compact_string(buffer, position)
    count, position = read_compact_nullable_array_length(buffer, position, 2)
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = None
    if count >= 0:
        topics = []
        for _ in range(count):
            describe_share_group_offsets_request_topic, position = _read_describe_share_group_offsets_request_topic(
                buffer, position, version
            )
            topics.append(describe_share_group_offsets_request_topic)
    position = skip_tags(buffer, position)
    return DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics), position


def _write_describe_share_group_offsets_request_group(
    out: bytearray, message: DescribeShareGroupOffsetsRequestGroup, version: int
) -> None:
    write_compact_string(out, message.group_id)
    if message.topics is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.topics))
        for describe_share_group_offsets_request_topic in message.topics:
            _write_describe_share_group_offsets_request_topic(out, describe_share_group_offsets_request_topic, version)
    out += b"\x00"


def _read_describe_share_group_offsets_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeShareGroupOffsetsRequest, int]:
    count, position = read_compact_array_length(buffer, position, 2)
    groups: list[DescribeShareGroupOffsetsRequestGroup] = []
    for _ in range(count):
        describe_share_group_offsets_request_group, position = _read_describe_share_group_offsets_request_group(
            buffer, position, version
        )
        groups.append(describe_share_group_offsets_request_group)
    position = skip_tags(buffer, position)
    return DescribeShareGroupOffsetsRequest(groups=groups), position


def _write_describe_share_group_offsets_request(
    out: bytearray, message: DescribeShareGroupOffsetsRequest, version: int
) -> None:
    write_compact_array_length(out, len(message.groups))
    for describe_share_group_offsets_request_group in message.groups:
        _write_describe_share_group_offsets_request_group(out, describe_share_group_offsets_request_group, version)
    out += b"\x00"


def read_describe_share_group_offsets_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeShareGroupOffsetsRequest, int]:
    """Read a DescribeShareGroupOffsetsRequest. Raises MalformedRequest."""
    try:
        return _read_describe_share_group_offsets_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeShareGroupOffsetsRequest") from error


def write_describe_share_group_offsets_request(
    out: bytearray, message: DescribeShareGroupOffsetsRequest, version: int
) -> None:
    """Append a DescribeShareGroupOffsetsRequest to `out`."""
    _write_describe_share_group_offsets_request(out, message, version)


def _read_describe_share_group_offsets_response_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeShareGroupOffsetsResponsePartition, int]:
    partition_index, start_offset, leader_epoch = _INT32_INT64_INT32.unpack_from(buffer, position)
    position += 16
    lag: int = -1
    if version >= 1:
        (lag,) = _INT64.unpack_from(buffer, position)
        position += 8
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=partition_index,
        start_offset=start_offset,
        leader_epoch=leader_epoch,
        lag=lag,
        error_code=error_code,
        error_message=error_message,
    ), position


def _write_describe_share_group_offsets_response_partition(
    out: bytearray, message: DescribeShareGroupOffsetsResponsePartition, version: int
) -> None:
    out += _INT32_INT64_INT32.pack(message.partition_index, message.start_offset, message.leader_epoch)
    if version >= 1:
        out += _INT64.pack(message.lag)
    out += _INT16.pack(message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def _read_describe_share_group_offsets_response_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeShareGroupOffsetsResponseTopic, int]:
    topic_name, position = read_compact_string(buffer, position)
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 19)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
    for _ in range(count):
        describe_share_group_offsets_response_partition, position = (
            _read_describe_share_group_offsets_response_partition(buffer, position, version)
        )
        partitions.append(describe_share_group_offsets_response_partition)
    position = skip_tags(buffer, position)
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic_name, topic_id=topic_id, partitions=partitions
    ), position


def _write_describe_share_group_offsets_response_topic(
    out: bytearray, message: DescribeShareGroupOffsetsResponseTopic, version: int
) -> None:
    write_compact_string(out, message.topic_name)
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for describe_share_group_offsets_response_partition in message.partitions:
        _write_describe_share_group_offsets_response_partition(
            out, describe_share_group_offsets_response_partition, version
        )
    out += b"\x00"


def _read_describe_share_group_offsets_response_group(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeShareGroupOffsetsResponseGroup, int]:
    group_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 18)
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    for _ in range(count):
        describe_share_group_offsets_response_topic, position = _read_describe_share_group_offsets_response_topic(
            buffer, position, version
        )
        topics.append(describe_share_group_offsets_response_topic)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, topics=topics, error_code=error_code, error_message=error_message
    ), position


def _write_describe_share_group_offsets_response_group(
    out: bytearray, message: DescribeShareGroupOffsetsResponseGroup, version: int
) -> None:
    write_compact_string(out, message.group_id)
    write_compact_array_length(out, len(message.topics))
    for describe_share_group_offsets_response_topic in message.topics:
        _write_describe_share_group_offsets_response_topic(out, describe_share_group_offsets_response_topic, version)
    out += _INT16.pack(message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def _read_describe_share_group_offsets_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeShareGroupOffsetsResponse, int]:
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 5)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    for _ in range(count):
        describe_share_group_offsets_response_group, position = _read_describe_share_group_offsets_response_group(
            buffer, position, version
        )
        groups.append(describe_share_group_offsets_response_group)
    position = skip_tags(buffer, position)
    return DescribeShareGroupOffsetsResponse(throttle_time_ms=throttle_time_ms, groups=groups), position


def _write_describe_share_group_offsets_response(
    out: bytearray, message: DescribeShareGroupOffsetsResponse, version: int
) -> None:
    out += _INT32.pack(message.throttle_time_ms)
    write_compact_array_length(out, len(message.groups))
    for describe_share_group_offsets_response_group in message.groups:
        _write_describe_share_group_offsets_response_group(out, describe_share_group_offsets_response_group, version)
    out += b"\x00"


def read_describe_share_group_offsets_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeShareGroupOffsetsResponse, int]:
    """Read a DescribeShareGroupOffsetsResponse. Raises MalformedRequest."""
    try:
        return _read_describe_share_group_offsets_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeShareGroupOffsetsResponse") from error


def write_describe_share_group_offsets_response(
    out: bytearray, message: DescribeShareGroupOffsetsResponse, version: int
) -> None:
    """Append a DescribeShareGroupOffsetsResponse to `out`."""
    _write_describe_share_group_offsets_response(out, message, version)
