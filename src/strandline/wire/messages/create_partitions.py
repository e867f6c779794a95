"""Messages of create partitions. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_array_length,
    read_nullable_string,
    read_numbers,
    read_string,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
    write_nullable_string,
    write_numbers,
    write_string,
)
from strandline.wire.structure import Structure

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_BOOL = Struct(">i?")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatePartitionsAssignment(Structure):
    """Versions 0 to 3."""

    broker_ids: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatePartitionsTopic(Structure):
    """Versions 0 to 3."""

    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatePartitionsRequest(Structure):
    """Versions 0 to 3."""

    topics: list[CreatePartitionsTopic] = field(default_factory=list)
    timeout_ms: int = 0
    validate_only: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatePartitionsTopicResult(Structure):
    """Versions 0 to 3."""

    name: str = ""
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatePartitionsResponse(Structure):
    """Versions 0 to 3."""

    throttle_time_ms: int = 0
    results: list[CreatePartitionsTopicResult] = field(default_factory=list)


def _read_create_partitions_assignment(
    buffer: memoryview, position: int, version: int
) -> tuple[CreatePartitionsAssignment, int]:
    flexible = version >= 2
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    broker_ids, position = read_numbers(buffer, position, count, "i")
    if flexible:
        position = skip_tags(buffer, position)
    return CreatePartitionsAssignment(broker_ids=broker_ids), position


def _write_create_partitions_assignment(out: bytearray, message: CreatePartitionsAssignment, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_numbers(out, message.broker_ids, "i")
    else:
        write_numbers(out, message.broker_ids, "i")
    if flexible:
        out += b"\x00"


def _read_create_partitions_topic(buffer: memoryview, position: int, version: int) -> tuple[CreatePartitionsTopic, int]:
    flexible = version >= 2
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (count_,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_nullable_array_length(buffer, position, 1)
        if flexible
        else read_nullable_array_length(buffer, position, 1)
    )
    assignments: list[CreatePartitionsAssignment] | None = None
    if count >= 0:
        assignments = []
        for _ in range(count):
            create_partitions_assignment, position = _read_create_partitions_assignment(buffer, position, version)
            assignments.append(create_partitions_assignment)
    if flexible:
        position = skip_tags(buffer, position)
    return CreatePartitionsTopic(name=name, count=count_, assignments=assignments), position


def _write_create_partitions_topic(out: bytearray, message: CreatePartitionsTopic, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    out += _INT32.pack(message.count)
    if message.assignments is None:
        if flexible:
            write_compact_array_length(out, -1)
        else:
            write_array_length(out, -1)
    else:
        if flexible:
            write_compact_array_length(out, len(message.assignments))
        else:
            write_array_length(out, len(message.assignments))
        for create_partitions_assignment in message.assignments:
            _write_create_partitions_assignment(out, create_partitions_assignment, version)
    if flexible:
        out += b"\x00"


def _read_create_partitions_request(
    buffer: memoryview, position: int, version: int
) -> tuple[CreatePartitionsRequest, int]:
    flexible = version >= 2
    count, position = (
        read_compact_array_length(buffer, position, 6) if flexible else read_array_length(buffer, position, 6)
    )
    topics: list[CreatePartitionsTopic] = []
    for _ in range(count):
        create_partitions_topic, position = _read_create_partitions_topic(buffer, position, version)
        topics.append(create_partitions_topic)
    timeout_ms, validate_only = _INT32_BOOL.unpack_from(buffer, position)
    position += 5
    if flexible:
        position = skip_tags(buffer, position)
    return CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only), position


def _write_create_partitions_request(out: bytearray, message: CreatePartitionsRequest, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for create_partitions_topic in message.topics:
        _write_create_partitions_topic(out, create_partitions_topic, version)
    out += _INT32_BOOL.pack(message.timeout_ms, message.validate_only)
    if flexible:
        out += b"\x00"


def read_create_partitions_request(
    buffer: memoryview, position: int, version: int
) -> tuple[CreatePartitionsRequest, int]:
    """Read a CreatePartitionsRequest. Raises MalformedRequest."""
    try:
        return _read_create_partitions_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("CreatePartitionsRequest") from error


def write_create_partitions_request(out: bytearray, message: CreatePartitionsRequest, version: int) -> None:
    """Append a CreatePartitionsRequest to `out`."""
    _write_create_partitions_request(out, message, version)


def _read_create_partitions_topic_result(
    buffer: memoryview, position: int, version: int
) -> tuple[CreatePartitionsTopicResult, int]:
    flexible = version >= 2
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return CreatePartitionsTopicResult(name=name, error_code=error_code, error_message=error_message), position


def _write_create_partitions_topic_result(out: bytearray, message: CreatePartitionsTopicResult, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    if flexible:
        out += b"\x00"


def _read_create_partitions_response(
    buffer: memoryview, position: int, version: int
) -> tuple[CreatePartitionsResponse, int]:
    flexible = version >= 2
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    results: list[CreatePartitionsTopicResult] = []
    for _ in range(count):
        create_partitions_topic_result, position = _read_create_partitions_topic_result(buffer, position, version)
        results.append(create_partitions_topic_result)
    if flexible:
        position = skip_tags(buffer, position)
    return CreatePartitionsResponse(throttle_time_ms=throttle_time_ms, results=results), position


def _write_create_partitions_response(out: bytearray, message: CreatePartitionsResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.results))
    else:
        write_array_length(out, len(message.results))
    for create_partitions_topic_result in message.results:
        _write_create_partitions_topic_result(out, create_partitions_topic_result, version)
    if flexible:
        out += b"\x00"


def read_create_partitions_response(
    buffer: memoryview, position: int, version: int
) -> tuple[CreatePartitionsResponse, int]:
    """Read a CreatePartitionsResponse. Raises MalformedRequest."""
    try:
        return _read_create_partitions_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("CreatePartitionsResponse") from error


def write_create_partitions_response(out: bytearray, message: CreatePartitionsResponse, version: int) -> None:
    """Append a CreatePartitionsResponse to `out`."""
    _write_create_partitions_response(out, message, version)
