"""Messages of list partition reassignments. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)
from strandline.wire.structure import Structure

_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListPartitionReassignmentsTopics(Structure):
    """Versions 0 to 0."""

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListPartitionReassignmentsRequest(Structure):
    """Versions 0 to 0."""

    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OngoingPartitionReassignment(Structure):
    """Versions 0 to 0."""

    partition_index: int = 0
    replicas: list[int] = field(default_factory=list)
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OngoingTopicReassignment(Structure):
    """Versions 0 to 0."""

    name: str = ""
    partitions: list[OngoingPartitionReassignment] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListPartitionReassignmentsResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    topics: list[OngoingTopicReassignment] = field(default_factory=list)


def _read_list_partition_reassignments_topics(
    buffer: memoryview, position: int, version: int
) -> tuple[ListPartitionReassignmentsTopics, int]:
    name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partition_indexes, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return ListPartitionReassignmentsTopics(name=name, partition_indexes=partition_indexes), position


def _write_list_partition_reassignments_topics(
    out: bytearray, message: ListPartitionReassignmentsTopics, version: int
) -> None:
    write_compact_string(out, message.name)
    write_compact_numbers(out, message.partition_indexes, "i")
    out += b"\x00"


def _read_list_partition_reassignments_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ListPartitionReassignmentsRequest, int]:
    (timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_nullable_array_length(buffer, position, 2)
    topics: list[ListPartitionReassignmentsTopics] | None = None
    if count >= 0:
        topics = []
        for _ in range(count):
            list_partition_reassignments_topics, position = _read_list_partition_reassignments_topics(
                buffer, position, version
            )
            topics.append(list_partition_reassignments_topics)
    position = skip_tags(buffer, position)
    return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics), position


def _write_list_partition_reassignments_request(
    out: bytearray, message: ListPartitionReassignmentsRequest, version: int
) -> None:
    out += _INT32.pack(message.timeout_ms)
    if message.topics is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.topics))
        for list_partition_reassignments_topics in message.topics:
            _write_list_partition_reassignments_topics(out, list_partition_reassignments_topics, version)
    out += b"\x00"


def read_list_partition_reassignments_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ListPartitionReassignmentsRequest, int]:
    """Read a ListPartitionReassignmentsRequest. Raises MalformedRequest."""
    try:
        return _read_list_partition_reassignments_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ListPartitionReassignmentsRequest") from error


def write_list_partition_reassignments_request(
    out: bytearray, message: ListPartitionReassignmentsRequest, version: int
) -> None:
    """Append a ListPartitionReassignmentsRequest to `out`."""
    _write_list_partition_reassignments_request(out, message, version)


def _read_ongoing_partition_reassignment(
    buffer: memoryview, position: int, version: int
) -> tuple[OngoingPartitionReassignment, int]:
    (partition_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 4)
    replicas, position = read_numbers(buffer, position, count, "i")
    count, position = read_compact_array_length(buffer, position, 4)
    adding_replicas, position = read_numbers(buffer, position, count, "i")
    count, position = read_compact_array_length(buffer, position, 4)
    removing_replicas, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return OngoingPartitionReassignment(
        partition_index=partition_index,
        replicas=replicas,
        adding_replicas=adding_replicas,
        removing_replicas=removing_replicas,
    ), position


def _write_ongoing_partition_reassignment(out: bytearray, message: OngoingPartitionReassignment, version: int) -> None:
    out += _INT32.pack(message.partition_index)
    write_compact_numbers(out, message.replicas, "i")
    write_compact_numbers(out, message.adding_replicas, "i")
    write_compact_numbers(out, message.removing_replicas, "i")
    out += b"\x00"


def _read_ongoing_topic_reassignment(
    buffer: memoryview, position: int, version: int
) -> tuple[OngoingTopicReassignment, int]:
    name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 7)
    partitions: list[OngoingPartitionReassignment] = []
    for _ in range(count):
        ongoing_partition_reassignment, position = _read_ongoing_partition_reassignment(buffer, position, version)
        partitions.append(ongoing_partition_reassignment)
    position = skip_tags(buffer, position)
    return OngoingTopicReassignment(name=name, partitions=partitions), position


def _write_ongoing_topic_reassignment(out: bytearray, message: OngoingTopicReassignment, version: int) -> None:
    write_compact_string(out, message.name)
    write_compact_array_length(out, len(message.partitions))
    for ongoing_partition_reassignment in message.partitions:
        _write_ongoing_partition_reassignment(out, ongoing_partition_reassignment, version)
    out += b"\x00"


def _read_list_partition_reassignments_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ListPartitionReassignmentsResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[OngoingTopicReassignment] = []
    for _ in range(count):
        ongoing_topic_reassignment, position = _read_ongoing_topic_reassignment(buffer, position, version)
        topics.append(ongoing_topic_reassignment)
    position = skip_tags(buffer, position)
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, error_message=error_message, topics=topics
    ), position


def _write_list_partition_reassignments_response(
    out: bytearray, message: ListPartitionReassignmentsResponse, version: int
) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_array_length(out, len(message.topics))
    for ongoing_topic_reassignment in message.topics:
        _write_ongoing_topic_reassignment(out, ongoing_topic_reassignment, version)
    out += b"\x00"


def read_list_partition_reassignments_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ListPartitionReassignmentsResponse, int]:
    """Read a ListPartitionReassignmentsResponse. Raises MalformedRequest."""
    try:
        return _read_list_partition_reassignments_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ListPartitionReassignmentsResponse") from error


def write_list_partition_reassignments_response(
    out: bytearray, message: ListPartitionReassignmentsResponse, version: int
) -> None:
    """Append a ListPartitionReassignmentsResponse to `out`."""
    _write_list_partition_reassignments_response(out, message, version)
