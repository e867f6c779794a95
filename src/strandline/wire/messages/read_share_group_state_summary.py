"""Messages of read share group state summary. Written by tools/generate_messages.py: do not edit."""

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

_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT32 = Struct(">ii")
_INT32_INT32_INT64 = Struct(">iiq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionData(Structure):
    """Versions 0 to 1."""

    partition: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReadStateSummaryData(Structure):
    """Versions 0 to 1."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReadShareGroupStateSummaryRequest(Structure):
    """Versions 0 to 1."""

    group_id: str = ""
    topics: list[ReadStateSummaryData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionResult(Structure):
    """Versions 0 to 1."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1  # from version 1 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReadStateSummaryResult(Structure):
    """Versions 0 to 1."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReadShareGroupStateSummaryResponse(Structure):
    """Versions 0 to 1."""

    results: list[ReadStateSummaryResult] = field(default_factory=list)


def _read_partition_data(buffer: memoryview, position: int, version: int) -> tuple[PartitionData, int]:
    partition, leader_epoch = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    position = skip_tags(buffer, position)
    return PartitionData(partition=partition, leader_epoch=leader_epoch), position


def _write_partition_data(out: bytearray, message: PartitionData, version: int) -> None:
    out += _INT32_INT32.pack(message.partition, message.leader_epoch)
    out += b"\x00"


def _read_read_state_summary_data(buffer: memoryview, position: int, version: int) -> tuple[ReadStateSummaryData, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 8)
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition_data, position = _read_partition_data(buffer, position, version)
        partitions.append(partition_data)
    position = skip_tags(buffer, position)
    return ReadStateSummaryData(topic_id=topic_id, partitions=partitions), position


def _write_read_state_summary_data(out: bytearray, message: ReadStateSummaryData, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_data in message.partitions:
        _write_partition_data(out, partition_data, version)
    out += b"\x00"


def _read_read_share_group_state_summary_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ReadShareGroupStateSummaryRequest, int]:
    group_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[ReadStateSummaryData] = []
    for _ in range(count):
        read_state_summary_data, position = _read_read_state_summary_data(buffer, position, version)
        topics.append(read_state_summary_data)
    position = skip_tags(buffer, position)
    return ReadShareGroupStateSummaryRequest(group_id=group_id, topics=topics), position


def _write_read_share_group_state_summary_request(
    out: bytearray, message: ReadShareGroupStateSummaryRequest, version: int
) -> None:
    write_compact_string(out, message.group_id)
    write_compact_array_length(out, len(message.topics))
    for read_state_summary_data in message.topics:
        _write_read_state_summary_data(out, read_state_summary_data, version)
    out += b"\x00"


def read_read_share_group_state_summary_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ReadShareGroupStateSummaryRequest, int]:
    """Read a ReadShareGroupStateSummaryRequest. Raises MalformedRequest."""
    try:
        return _read_read_share_group_state_summary_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ReadShareGroupStateSummaryRequest") from error


def write_read_share_group_state_summary_request(
    out: bytearray, message: ReadShareGroupStateSummaryRequest, version: int
) -> None:
    """Append a ReadShareGroupStateSummaryRequest to `out`."""
    _write_read_share_group_state_summary_request(out, message, version)


def _read_partition_result(buffer: memoryview, position: int, version: int) -> tuple[PartitionResult, int]:
    partition, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    state_epoch, leader_epoch, start_offset = _INT32_INT32_INT64.unpack_from(buffer, position)
    position += 16
    delivery_complete_count: int = -1
    if version >= 1:
        (delivery_complete_count,) = _INT32.unpack_from(buffer, position)
        position += 4
    position = skip_tags(buffer, position)
    return PartitionResult(
        partition=partition,
        error_code=error_code,
        error_message=error_message,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
    ), position


def _write_partition_result(out: bytearray, message: PartitionResult, version: int) -> None:
    out += _INT32_INT16.pack(message.partition, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += _INT32_INT32_INT64.pack(message.state_epoch, message.leader_epoch, message.start_offset)
    if version >= 1:
        out += _INT32.pack(message.delivery_complete_count)
    out += b"\x00"


def _read_read_state_summary_result(
    buffer: memoryview, position: int, version: int
) -> tuple[ReadStateSummaryResult, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 23)
    partitions: list[PartitionResult] = []
    for _ in range(count):
        partition_result, position = _read_partition_result(buffer, position, version)
        partitions.append(partition_result)
    position = skip_tags(buffer, position)
    return ReadStateSummaryResult(topic_id=topic_id, partitions=partitions), position


def _write_read_state_summary_result(out: bytearray, message: ReadStateSummaryResult, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_result in message.partitions:
        _write_partition_result(out, partition_result, version)
    out += b"\x00"


def _read_read_share_group_state_summary_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ReadShareGroupStateSummaryResponse, int]:
    count, position = read_compact_array_length(buffer, position, 17)
    results: list[ReadStateSummaryResult] = []
    for _ in range(count):
        read_state_summary_result, position = _read_read_state_summary_result(buffer, position, version)
        results.append(read_state_summary_result)
    position = skip_tags(buffer, position)
    return ReadShareGroupStateSummaryResponse(results=results), position


def _write_read_share_group_state_summary_response(
    out: bytearray, message: ReadShareGroupStateSummaryResponse, version: int
) -> None:
    write_compact_array_length(out, len(message.results))
    for read_state_summary_result in message.results:
        _write_read_state_summary_result(out, read_state_summary_result, version)
    out += b"\x00"


def read_read_share_group_state_summary_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ReadShareGroupStateSummaryResponse, int]:
    """Read a ReadShareGroupStateSummaryResponse. Raises MalformedRequest."""
    try:
        return _read_read_share_group_state_summary_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ReadShareGroupStateSummaryResponse") from error


def write_read_share_group_state_summary_response(
    out: bytearray, message: ReadShareGroupStateSummaryResponse, version: int
) -> None:
    """Append a ReadShareGroupStateSummaryResponse to `out`."""
    _write_read_share_group_state_summary_response(out, message, version)
