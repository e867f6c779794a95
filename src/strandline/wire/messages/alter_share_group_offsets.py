"""Messages of alter share group offsets. Written by tools/generate_messages.py: do not edit."""

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
_INT32_INT64 = Struct(">iq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterShareGroupOffsetsRequestPartition(Structure):
    """Versions 0 to 0."""

    partition_index: int = 0
    start_offset: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterShareGroupOffsetsRequestTopic(Structure):
    """Versions 0 to 0."""

    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterShareGroupOffsetsRequest(Structure):
    """Versions 0 to 0."""

    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterShareGroupOffsetsResponsePartition(Structure):
    """Versions 0 to 0."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterShareGroupOffsetsResponseTopic(Structure):
    """Versions 0 to 0."""

    topic_name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterShareGroupOffsetsResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(default_factory=list)


def _read_alter_share_group_offsets_request_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterShareGroupOffsetsRequestPartition, int]:
    partition_index, start_offset = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    position = skip_tags(buffer, position)
    return AlterShareGroupOffsetsRequestPartition(partition_index=partition_index, start_offset=start_offset), position


def _write_alter_share_group_offsets_request_partition(
    out: bytearray, message: AlterShareGroupOffsetsRequestPartition, version: int
) -> None:
    out += _INT32_INT64.pack(message.partition_index, message.start_offset)
    out += b"\x00"


def _read_alter_share_group_offsets_request_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterShareGroupOffsetsRequestTopic, int]:
    topic_name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 12)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = []
    for _ in range(count):
        alter_share_group_offsets_request_partition, position = _read_alter_share_group_offsets_request_partition(
            buffer, position, version
        )
        partitions.append(alter_share_group_offsets_request_partition)
    position = skip_tags(buffer, position)
    return AlterShareGroupOffsetsRequestTopic(topic_name=topic_name, partitions=partitions), position


def _write_alter_share_group_offsets_request_topic(
    out: bytearray, message: AlterShareGroupOffsetsRequestTopic, version: int
) -> None:
    write_compact_string(out, message.topic_name)
    write_compact_array_length(out, len(message.partitions))
    for alter_share_group_offsets_request_partition in message.partitions:
        _write_alter_share_group_offsets_request_partition(out, alter_share_group_offsets_request_partition, version)
    out += b"\x00"


def _read_alter_share_group_offsets_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterShareGroupOffsetsRequest, int]:
    group_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[AlterShareGroupOffsetsRequestTopic] = []
    for _ in range(count):
        alter_share_group_offsets_request_topic, position = _read_alter_share_group_offsets_request_topic(
            buffer, position, version
        )
        topics.append(alter_share_group_offsets_request_topic)
    position = skip_tags(buffer, position)
    return AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics), position


def _write_alter_share_group_offsets_request(
    out: bytearray, message: AlterShareGroupOffsetsRequest, version: int
) -> None:
    write_compact_string(out, message.group_id)
    write_compact_array_length(out, len(message.topics))
    for alter_share_group_offsets_request_topic in message.topics:
        _write_alter_share_group_offsets_request_topic(out, alter_share_group_offsets_request_topic, version)
    out += b"\x00"


def read_alter_share_group_offsets_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterShareGroupOffsetsRequest, int]:
    """Read a AlterShareGroupOffsetsRequest. Raises MalformedRequest."""
    try:
        return _read_alter_share_group_offsets_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterShareGroupOffsetsRequest") from error


def write_alter_share_group_offsets_request(
    out: bytearray, message: AlterShareGroupOffsetsRequest, version: int
) -> None:
    """Append a AlterShareGroupOffsetsRequest to `out`."""
    _write_alter_share_group_offsets_request(out, message, version)


def _read_alter_share_group_offsets_response_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterShareGroupOffsetsResponsePartition, int]:
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=partition_index, error_code=error_code, error_message=error_message
    ), position


def _write_alter_share_group_offsets_response_partition(
    out: bytearray, message: AlterShareGroupOffsetsResponsePartition, version: int
) -> None:
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def _read_alter_share_group_offsets_response_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterShareGroupOffsetsResponseTopic, int]:
    topic_name, position = read_compact_string(buffer, position)
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 7)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = []
    for _ in range(count):
        alter_share_group_offsets_response_partition, position = _read_alter_share_group_offsets_response_partition(
            buffer, position, version
        )
        partitions.append(alter_share_group_offsets_response_partition)
    position = skip_tags(buffer, position)
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic_name, topic_id=topic_id, partitions=partitions
    ), position


def _write_alter_share_group_offsets_response_topic(
    out: bytearray, message: AlterShareGroupOffsetsResponseTopic, version: int
) -> None:
    write_compact_string(out, message.topic_name)
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for alter_share_group_offsets_response_partition in message.partitions:
        _write_alter_share_group_offsets_response_partition(out, alter_share_group_offsets_response_partition, version)
    out += b"\x00"


def _read_alter_share_group_offsets_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterShareGroupOffsetsResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 18)
    responses: list[AlterShareGroupOffsetsResponseTopic] = []
    for _ in range(count):
        alter_share_group_offsets_response_topic, position = _read_alter_share_group_offsets_response_topic(
            buffer, position, version
        )
        responses.append(alter_share_group_offsets_response_topic)
    position = skip_tags(buffer, position)
    return AlterShareGroupOffsetsResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, error_message=error_message, responses=responses
    ), position


def _write_alter_share_group_offsets_response(
    out: bytearray, message: AlterShareGroupOffsetsResponse, version: int
) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_array_length(out, len(message.responses))
    for alter_share_group_offsets_response_topic in message.responses:
        _write_alter_share_group_offsets_response_topic(out, alter_share_group_offsets_response_topic, version)
    out += b"\x00"


def read_alter_share_group_offsets_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterShareGroupOffsetsResponse, int]:
    """Read a AlterShareGroupOffsetsResponse. Raises MalformedRequest."""
    try:
        return _read_alter_share_group_offsets_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterShareGroupOffsetsResponse") from error


def write_alter_share_group_offsets_response(
    out: bytearray, message: AlterShareGroupOffsetsResponse, version: int
) -> None:
    """Append a AlterShareGroupOffsetsResponse to `out`."""
    _write_alter_share_group_offsets_response(out, message, version)
