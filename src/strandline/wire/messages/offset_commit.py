"""Messages of offset commit. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    read_uuid,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)
from strandline.wire.structure import Structure

_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT64 = Struct(">iq")
_INT64 = Struct(">q")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetCommitRequestPartition(Structure):
    """Versions 2 to 10."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1  # from version 6 on
    committed_metadata: str | None = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetCommitRequestTopic(Structure):
    """Versions 2 to 10."""

    name: str = ""  # up to version 9
    topic_id: UUID = ZERO_UUID  # from version 10 on
    partitions: list[OffsetCommitRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetCommitRequest(Structure):
    """Versions 2 to 10."""

    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    retention_time_ms: int = -1  # up to version 4
    group_instance_id: str | None = None  # from version 7 on
    topics: list[OffsetCommitRequestTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetCommitResponsePartition(Structure):
    """Versions 2 to 10."""

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetCommitResponseTopic(Structure):
    """Versions 2 to 10."""

    name: str = ""  # up to version 9
    topic_id: UUID = ZERO_UUID  # from version 10 on
    partitions: list[OffsetCommitResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetCommitResponse(Structure):
    """Versions 2 to 10."""

    throttle_time_ms: int = 0  # from version 3 on
    topics: list[OffsetCommitResponseTopic] = field(default_factory=list)


def _read_offset_commit_request_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetCommitRequestPartition, int]:
    flexible = version >= 8
    partition_index, committed_offset = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    committed_leader_epoch: int = -1
    if version >= 6:
        (committed_leader_epoch,) = _INT32.unpack_from(buffer, position)
        position += 4
    committed_metadata, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetCommitRequestPartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        committed_metadata=committed_metadata,
    ), position


def _write_offset_commit_request_partition(out: bytearray, message: OffsetCommitRequestPartition, version: int) -> None:
    flexible = version >= 8
    out += _INT32_INT64.pack(message.partition_index, message.committed_offset)
    if version >= 6:
        out += _INT32.pack(message.committed_leader_epoch)
    if flexible:
        write_compact_nullable_string(out, message.committed_metadata)
    else:
        write_nullable_string(out, message.committed_metadata)
    if flexible:
        out += b"\x00"


def _read_offset_commit_request_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetCommitRequestTopic, int]:
    flexible = version >= 8
    name: str = ""
    if version <= 9:
        name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    topic_id: UUID = ZERO_UUID
    if version >= 10:
        topic_id, position = read_uuid(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 13) if flexible else read_array_length(buffer, position, 13)
    )
    partitions: list[OffsetCommitRequestPartition] = []
    for _ in range(count):
        offset_commit_request_partition, position = _read_offset_commit_request_partition(buffer, position, version)
        partitions.append(offset_commit_request_partition)
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=partitions), position


def _write_offset_commit_request_topic(out: bytearray, message: OffsetCommitRequestTopic, version: int) -> None:
    flexible = version >= 8
    if version <= 9:
        if flexible:
            write_compact_string(out, message.name)
        else:
            write_string(out, message.name)
    if version >= 10:
        out += message.topic_id.bytes
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for offset_commit_request_partition in message.partitions:
        _write_offset_commit_request_partition(out, offset_commit_request_partition, version)
    if flexible:
        out += b"\x00"


def _read_offset_commit_request(buffer: memoryview, position: int, version: int) -> tuple[OffsetCommitRequest, int]:
    flexible = version >= 8
    group_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (generation_id_or_member_epoch,) = _INT32.unpack_from(buffer, position)
    position += 4
    member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    retention_time_ms: int = -1
    if version <= 4:
        (retention_time_ms,) = _INT64.unpack_from(buffer, position)
        position += 8
    group_instance_id: str | None = None
    if version >= 7:
        group_instance_id, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    count, position = (
        read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
    )
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        offset_commit_request_topic, position = _read_offset_commit_request_topic(buffer, position, version)
        topics.append(offset_commit_request_topic)
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id_or_member_epoch,
        member_id=member_id,
        retention_time_ms=retention_time_ms,
        group_instance_id=group_instance_id,
        topics=topics,
    ), position


def _write_offset_commit_request(out: bytearray, message: OffsetCommitRequest, version: int) -> None:
    flexible = version >= 8
    if flexible:
        write_compact_string(out, message.group_id)
    else:
        write_string(out, message.group_id)
    out += _INT32.pack(message.generation_id_or_member_epoch)
    if flexible:
        write_compact_string(out, message.member_id)
    else:
        write_string(out, message.member_id)
    if version <= 4:
        out += _INT64.pack(message.retention_time_ms)
    if version >= 7:
        if flexible:
            write_compact_nullable_string(out, message.group_instance_id)
        else:
            write_nullable_string(out, message.group_instance_id)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for offset_commit_request_topic in message.topics:
        _write_offset_commit_request_topic(out, offset_commit_request_topic, version)
    if flexible:
        out += b"\x00"


def read_offset_commit_request(buffer: memoryview, position: int, version: int) -> tuple[OffsetCommitRequest, int]:
    """Read a OffsetCommitRequest. Raises MalformedRequest."""
    try:
        return _read_offset_commit_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("OffsetCommitRequest") from error


def write_offset_commit_request(out: bytearray, message: OffsetCommitRequest, version: int) -> None:
    """Append a OffsetCommitRequest to `out`."""
    _write_offset_commit_request(out, message, version)


def _read_offset_commit_response_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetCommitResponsePartition, int]:
    flexible = version >= 8
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetCommitResponsePartition(partition_index=partition_index, error_code=error_code), position


def _write_offset_commit_response_partition(
    out: bytearray, message: OffsetCommitResponsePartition, version: int
) -> None:
    flexible = version >= 8
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    if flexible:
        out += b"\x00"


def _read_offset_commit_response_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetCommitResponseTopic, int]:
    flexible = version >= 8
    name: str = ""
    if version <= 9:
        name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    topic_id: UUID = ZERO_UUID
    if version >= 10:
        topic_id, position = read_uuid(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 6) if flexible else read_array_length(buffer, position, 6)
    )
    partitions: list[OffsetCommitResponsePartition] = []
    for _ in range(count):
        offset_commit_response_partition, position = _read_offset_commit_response_partition(buffer, position, version)
        partitions.append(offset_commit_response_partition)
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=partitions), position


def _write_offset_commit_response_topic(out: bytearray, message: OffsetCommitResponseTopic, version: int) -> None:
    flexible = version >= 8
    if version <= 9:
        if flexible:
            write_compact_string(out, message.name)
        else:
            write_string(out, message.name)
    if version >= 10:
        out += message.topic_id.bytes
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for offset_commit_response_partition in message.partitions:
        _write_offset_commit_response_partition(out, offset_commit_response_partition, version)
    if flexible:
        out += b"\x00"


def _read_offset_commit_response(buffer: memoryview, position: int, version: int) -> tuple[OffsetCommitResponse, int]:
    flexible = version >= 8
    throttle_time_ms: int = 0
    if version >= 3:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    count, position = (
        read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
    )
    topics: list[OffsetCommitResponseTopic] = []
    for _ in range(count):
        offset_commit_response_topic, position = _read_offset_commit_response_topic(buffer, position, version)
        topics.append(offset_commit_response_topic)
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetCommitResponse(throttle_time_ms=throttle_time_ms, topics=topics), position


def _write_offset_commit_response(out: bytearray, message: OffsetCommitResponse, version: int) -> None:
    flexible = version >= 8
    if version >= 3:
        out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for offset_commit_response_topic in message.topics:
        _write_offset_commit_response_topic(out, offset_commit_response_topic, version)
    if flexible:
        out += b"\x00"


def read_offset_commit_response(buffer: memoryview, position: int, version: int) -> tuple[OffsetCommitResponse, int]:
    """Read a OffsetCommitResponse. Raises MalformedRequest."""
    try:
        return _read_offset_commit_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("OffsetCommitResponse") from error


def write_offset_commit_response(out: bytearray, message: OffsetCommitResponse, version: int) -> None:
    """Append a OffsetCommitResponse to `out`."""
    _write_offset_commit_response(out, message, version)
