"""Messages of delete topics. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    null_error,
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

_INT16 = Struct(">h")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteTopicState(Structure):
    """Versions 6 to 6."""

    name: str | None = None
    topic_id: UUID = ZERO_UUID


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteTopicsRequest(Structure):
    """Versions 1 to 6."""

    topic_names: list[str] = field(default_factory=list)  # up to version 5
    topics: list[DeleteTopicState] = field(default_factory=list)  # from version 6 on
    timeout_ms: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeletableTopicResult(Structure):
    """Versions 1 to 6."""

    name: str | None = ""
    topic_id: UUID = ZERO_UUID  # from version 6 on
    error_code: int = 0
    error_message: str | None = None  # from version 5 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteTopicsResponse(Structure):
    """Versions 1 to 6."""

    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = field(default_factory=list)


def _read_delete_topic_state(buffer: memoryview, position: int, version: int) -> tuple[DeleteTopicState, int]:
    name, position = read_compact_nullable_string(buffer, position)
    topic_id, position = read_uuid(buffer, position)
    position = skip_tags(buffer, position)
    return DeleteTopicState(name=name, topic_id=topic_id), position


def _write_delete_topic_state(out: bytearray, message: DeleteTopicState, version: int) -> None:
    write_compact_nullable_string(out, message.name)
    out += message.topic_id.bytes
    out += b"\x00"


def _read_delete_topics_request(buffer: memoryview, position: int, version: int) -> tuple[DeleteTopicsRequest, int]:
    flexible = version >= 4
    topic_names: list[str] = []
    if version <= 5:
        count, position = (
            read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
        )
        topic_names = []
        for _ in range(count):
            text, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
            topic_names.append(text)
    topics: list[DeleteTopicState] = []
    if version >= 6:
        count, position = (
            read_compact_array_length(buffer, position, 17) if flexible else read_array_length(buffer, position, 17)
        )
        topics = []
        for _ in range(count):
            delete_topic_state, position = _read_delete_topic_state(buffer, position, version)
            topics.append(delete_topic_state)
    (timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteTopicsRequest(topic_names=topic_names, topics=topics, timeout_ms=timeout_ms), position


def _write_delete_topics_request(out: bytearray, message: DeleteTopicsRequest, version: int) -> None:
    flexible = version >= 4
    if version <= 5:
        if flexible:
            write_compact_array_length(out, len(message.topic_names))
        else:
            write_array_length(out, len(message.topic_names))
        for text in message.topic_names:
            if flexible:
                write_compact_string(out, text)
            else:
                write_string(out, text)
    if version >= 6:
        if flexible:
            write_compact_array_length(out, len(message.topics))
        else:
            write_array_length(out, len(message.topics))
        for delete_topic_state in message.topics:
            _write_delete_topic_state(out, delete_topic_state, version)
    out += _INT32.pack(message.timeout_ms)
    if flexible:
        out += b"\x00"


def read_delete_topics_request(buffer: memoryview, position: int, version: int) -> tuple[DeleteTopicsRequest, int]:
    """Read a DeleteTopicsRequest. Raises MalformedRequest."""
    try:
        return _read_delete_topics_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteTopicsRequest") from error


def write_delete_topics_request(out: bytearray, message: DeleteTopicsRequest, version: int) -> None:
    """Append a DeleteTopicsRequest to `out`."""
    _write_delete_topics_request(out, message, version)


def _read_deletable_topic_result(buffer: memoryview, position: int, version: int) -> tuple[DeletableTopicResult, int]:
    flexible = version >= 4
    name, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if name is None and version < 6:
        raise null_error("name")
    topic_id: UUID = ZERO_UUID
    if version >= 6:
        topic_id, position = read_uuid(buffer, position)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message: str | None = None
    if version >= 5:
        error_message, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    if flexible:
        position = skip_tags(buffer, position)
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error_code, error_message=error_message
    ), position


def _write_deletable_topic_result(out: bytearray, message: DeletableTopicResult, version: int) -> None:
    flexible = version >= 4
    if message.name is None and version < 6:
        raise null_error("name")
    if flexible:
        write_compact_nullable_string(out, message.name)
    else:
        write_nullable_string(out, message.name)
    if version >= 6:
        out += message.topic_id.bytes
    out += _INT16.pack(message.error_code)
    if version >= 5:
        if flexible:
            write_compact_nullable_string(out, message.error_message)
        else:
            write_nullable_string(out, message.error_message)
    if flexible:
        out += b"\x00"


def _read_delete_topics_response(buffer: memoryview, position: int, version: int) -> tuple[DeleteTopicsResponse, int]:
    flexible = version >= 4
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 3) if flexible else read_array_length(buffer, position, 3)
    )
    responses: list[DeletableTopicResult] = []
    for _ in range(count):
        deletable_topic_result, position = _read_deletable_topic_result(buffer, position, version)
        responses.append(deletable_topic_result)
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteTopicsResponse(throttle_time_ms=throttle_time_ms, responses=responses), position


def _write_delete_topics_response(out: bytearray, message: DeleteTopicsResponse, version: int) -> None:
    flexible = version >= 4
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.responses))
    else:
        write_array_length(out, len(message.responses))
    for deletable_topic_result in message.responses:
        _write_deletable_topic_result(out, deletable_topic_result, version)
    if flexible:
        out += b"\x00"


def read_delete_topics_response(buffer: memoryview, position: int, version: int) -> tuple[DeleteTopicsResponse, int]:
    """Read a DeleteTopicsResponse. Raises MalformedRequest."""
    try:
        return _read_delete_topics_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteTopicsResponse") from error


def write_delete_topics_response(out: bytearray, message: DeleteTopicsResponse, version: int) -> None:
    """Append a DeleteTopicsResponse to `out`."""
    _write_delete_topics_response(out, message, version)
