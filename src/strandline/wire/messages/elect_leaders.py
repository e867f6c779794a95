"""Messages of elect leaders. Written by tools/generate_messages.py: do not edit."""

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

_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicPartitions(Structure):
    """Versions 0 to 2."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ElectLeadersRequest(Structure):
    """Versions 0 to 2."""

    election_type: int = 0  # from version 1 on
    topic_partitions: list[TopicPartitions] | None = field(default_factory=list)
    timeout_ms: int = 60000


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionResult(Structure):
    """Versions 0 to 2."""

    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReplicaElectionResult(Structure):
    """Versions 0 to 2."""

    topic: str = ""
    partition_result: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ElectLeadersResponse(Structure):
    """Versions 0 to 2."""

    throttle_time_ms: int = 0
    error_code: int = 0  # from version 1 on
    replica_election_results: list[ReplicaElectionResult] = field(default_factory=list)


def _read_topic_partitions(buffer: memoryview, position: int, version: int) -> tuple[TopicPartitions, int]:
    flexible = version >= 2
    topic, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    partitions, position = read_numbers(buffer, position, count, "i")
    if flexible:
        position = skip_tags(buffer, position)
    return TopicPartitions(topic=topic, partitions=partitions), position


def _write_topic_partitions(out: bytearray, message: TopicPartitions, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.topic)
    else:
        write_string(out, message.topic)
    if flexible:
        write_compact_numbers(out, message.partitions, "i")
    else:
        write_numbers(out, message.partitions, "i")
    if flexible:
        out += b"\x00"


def _read_elect_leaders_request(buffer: memoryview, position: int, version: int) -> tuple[ElectLeadersRequest, int]:
    flexible = version >= 2
    election_type: int = 0
    if version >= 1:
        (election_type,) = _INT8.unpack_from(buffer, position)
        position += 1
    count, position = (
        read_compact_nullable_array_length(buffer, position, 2)
        if flexible
        else read_nullable_array_length(buffer, position, 2)
    )
    topic_partitions: list[TopicPartitions] | None = None
    if count >= 0:
        topic_partitions = []
        for _ in range(count):
            topic_partitions_, position = _read_topic_partitions(buffer, position, version)
            topic_partitions.append(topic_partitions_)
    (timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    if flexible:
        position = skip_tags(buffer, position)
    return ElectLeadersRequest(
        election_type=election_type, topic_partitions=topic_partitions, timeout_ms=timeout_ms
    ), position


def _write_elect_leaders_request(out: bytearray, message: ElectLeadersRequest, version: int) -> None:
    flexible = version >= 2
    if version >= 1:
        out += _INT8.pack(message.election_type)
    if message.topic_partitions is None:
        if flexible:
            write_compact_array_length(out, -1)
        else:
            write_array_length(out, -1)
    else:
        if flexible:
            write_compact_array_length(out, len(message.topic_partitions))
        else:
            write_array_length(out, len(message.topic_partitions))
        for topic_partitions_ in message.topic_partitions:
            _write_topic_partitions(out, topic_partitions_, version)
    out += _INT32.pack(message.timeout_ms)
    if flexible:
        out += b"\x00"


def read_elect_leaders_request(buffer: memoryview, position: int, version: int) -> tuple[ElectLeadersRequest, int]:
    """Read a ElectLeadersRequest. Raises MalformedRequest."""
    try:
        return _read_elect_leaders_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ElectLeadersRequest") from error


def write_elect_leaders_request(out: bytearray, message: ElectLeadersRequest, version: int) -> None:
    """Append a ElectLeadersRequest to `out`."""
    _write_elect_leaders_request(out, message, version)


def _read_partition_result(buffer: memoryview, position: int, version: int) -> tuple[PartitionResult, int]:
    flexible = version >= 2
    partition_id, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return PartitionResult(partition_id=partition_id, error_code=error_code, error_message=error_message), position


def _write_partition_result(out: bytearray, message: PartitionResult, version: int) -> None:
    flexible = version >= 2
    out += _INT32_INT16.pack(message.partition_id, message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    if flexible:
        out += b"\x00"


def _read_replica_election_result(buffer: memoryview, position: int, version: int) -> tuple[ReplicaElectionResult, int]:
    flexible = version >= 2
    topic, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 7) if flexible else read_array_length(buffer, position, 7)
    )
    partition_result: list[PartitionResult] = []
    for _ in range(count):
        partition_result_, position = _read_partition_result(buffer, position, version)
        partition_result.append(partition_result_)
    if flexible:
        position = skip_tags(buffer, position)
    return ReplicaElectionResult(topic=topic, partition_result=partition_result), position


def _write_replica_election_result(out: bytearray, message: ReplicaElectionResult, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.topic)
    else:
        write_string(out, message.topic)
    if flexible:
        write_compact_array_length(out, len(message.partition_result))
    else:
        write_array_length(out, len(message.partition_result))
    for partition_result_ in message.partition_result:
        _write_partition_result(out, partition_result_, version)
    if flexible:
        out += b"\x00"


def _read_elect_leaders_response(buffer: memoryview, position: int, version: int) -> tuple[ElectLeadersResponse, int]:
    flexible = version >= 2
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    error_code: int = 0
    if version >= 1:
        (error_code,) = _INT16.unpack_from(buffer, position)
        position += 2
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    replica_election_results: list[ReplicaElectionResult] = []
    for _ in range(count):
        replica_election_result, position = _read_replica_election_result(buffer, position, version)
        replica_election_results.append(replica_election_result)
    if flexible:
        position = skip_tags(buffer, position)
    return ElectLeadersResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, replica_election_results=replica_election_results
    ), position


def _write_elect_leaders_response(out: bytearray, message: ElectLeadersResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT32.pack(message.throttle_time_ms)
    if version >= 1:
        out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_array_length(out, len(message.replica_election_results))
    else:
        write_array_length(out, len(message.replica_election_results))
    for replica_election_result in message.replica_election_results:
        _write_replica_election_result(out, replica_election_result, version)
    if flexible:
        out += b"\x00"


def read_elect_leaders_response(buffer: memoryview, position: int, version: int) -> tuple[ElectLeadersResponse, int]:
    """Read a ElectLeadersResponse. Raises MalformedRequest."""
    try:
        return _read_elect_leaders_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ElectLeadersResponse") from error


def write_elect_leaders_response(out: bytearray, message: ElectLeadersResponse, version: int) -> None:
    """Append a ElectLeadersResponse to `out`."""
    _write_elect_leaders_response(out, message, version)
