"""Messages of delete share group offsets. Written by tools/generate_messages.py: do not edit."""

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

_INT16 = Struct(">h")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteShareGroupOffsetsRequestTopic(Structure):
    """Versions 0 to 0."""

    topic_name: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteShareGroupOffsetsRequest(Structure):
    """Versions 0 to 0."""

    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteShareGroupOffsetsResponseTopic(Structure):
    """Versions 0 to 0."""

    topic_name: str = ""
    topic_id: UUID = ZERO_UUID
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteShareGroupOffsetsResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(default_factory=list)


def _read_delete_share_group_offsets_request_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteShareGroupOffsetsRequestTopic, int]:
    topic_name, position = read_compact_string(buffer, position)
    position = skip_tags(buffer, position)
    return DeleteShareGroupOffsetsRequestTopic(topic_name=topic_name), position


def _write_delete_share_group_offsets_request_topic(
    out: bytearray, message: DeleteShareGroupOffsetsRequestTopic, version: int
) -> None:
    write_compact_string(out, message.topic_name)
    out += b"\x00"


def _read_delete_share_group_offsets_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteShareGroupOffsetsRequest, int]:
    group_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 1)
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []
    for _ in range(count):
        delete_share_group_offsets_request_topic, position = _read_delete_share_group_offsets_request_topic(
            buffer, position, version
        )
        topics.append(delete_share_group_offsets_request_topic)
    position = skip_tags(buffer, position)
    return DeleteShareGroupOffsetsRequest(group_id=group_id, topics=topics), position


def _write_delete_share_group_offsets_request(
    out: bytearray, message: DeleteShareGroupOffsetsRequest, version: int
) -> None:
    write_compact_string(out, message.group_id)
    write_compact_array_length(out, len(message.topics))
    for delete_share_group_offsets_request_topic in message.topics:
        _write_delete_share_group_offsets_request_topic(out, delete_share_group_offsets_request_topic, version)
    out += b"\x00"


def read_delete_share_group_offsets_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteShareGroupOffsetsRequest, int]:
    """Read a DeleteShareGroupOffsetsRequest. Raises MalformedRequest."""
    try:
        return _read_delete_share_group_offsets_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteShareGroupOffsetsRequest") from error


def write_delete_share_group_offsets_request(
    out: bytearray, message: DeleteShareGroupOffsetsRequest, version: int
) -> None:
    """Append a DeleteShareGroupOffsetsRequest to `out`."""
    _write_delete_share_group_offsets_request(out, message, version)


def _read_delete_share_group_offsets_response_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteShareGroupOffsetsResponseTopic, int]:
    topic_name, position = read_compact_string(buffer, position)
    topic_id, position = read_uuid(buffer, position)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic_name, topic_id=topic_id, error_code=error_code, error_message=error_message
    ), position


def _write_delete_share_group_offsets_response_topic(
    out: bytearray, message: DeleteShareGroupOffsetsResponseTopic, version: int
) -> None:
    write_compact_string(out, message.topic_name)
    out += message.topic_id.bytes
    out += _INT16.pack(message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def _read_delete_share_group_offsets_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteShareGroupOffsetsResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 20)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
    for _ in range(count):
        delete_share_group_offsets_response_topic, position = _read_delete_share_group_offsets_response_topic(
            buffer, position, version
        )
        responses.append(delete_share_group_offsets_response_topic)
    position = skip_tags(buffer, position)
    return DeleteShareGroupOffsetsResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, error_message=error_message, responses=responses
    ), position


def _write_delete_share_group_offsets_response(
    out: bytearray, message: DeleteShareGroupOffsetsResponse, version: int
) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_array_length(out, len(message.responses))
    for delete_share_group_offsets_response_topic in message.responses:
        _write_delete_share_group_offsets_response_topic(out, delete_share_group_offsets_response_topic, version)
    out += b"\x00"


def read_delete_share_group_offsets_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteShareGroupOffsetsResponse, int]:
    """Read a DeleteShareGroupOffsetsResponse. Raises MalformedRequest."""
    try:
        return _read_delete_share_group_offsets_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteShareGroupOffsetsResponse") from error


def write_delete_share_group_offsets_response(
    out: bytearray, message: DeleteShareGroupOffsetsResponse, version: int
) -> None:
    """Append a DeleteShareGroupOffsetsResponse to `out`."""
    _write_delete_share_group_offsets_response(out, message, version)
