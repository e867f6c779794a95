"""Messages of read share group state. Written by tools/generate_messages.py: do not edit."""

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
_INT32_INT32 = Struct(">ii")
_INT32_INT64 = Struct(">iq")
_INT64_INT64_INT8_INT16 = Struct(">qqbh")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionData(Structure):
    """Versions 0 to 0."""

    partition: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReadStateData(Structure):
    """Versions 0 to 0."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReadShareGroupStateRequest(Structure):
    """Versions 0 to 0."""

    group_id: str = ""
    topics: list[ReadStateData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class StateBatch(Structure):
    """Versions 0 to 0."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionResult(Structure):
    """Versions 0 to 0."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReadStateResult(Structure):
    """Versions 0 to 0."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReadShareGroupStateResponse(Structure):
    """Versions 0 to 0."""

    results: list[ReadStateResult] = field(default_factory=list)


def _read_partition_data(buffer: memoryview, position: int, version: int) -> tuple[PartitionData, int]:
    partition, leader_epoch = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    position = skip_tags(buffer, position)
    return PartitionData(partition=partition, leader_epoch=leader_epoch), position


def _write_partition_data(out: bytearray, message: PartitionData, version: int) -> None:
    out += _INT32_INT32.pack(message.partition, message.leader_epoch)
    out += b"\x00"


def _read_read_state_data(buffer: memoryview, position: int, version: int) -> tuple[ReadStateData, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 8)
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition_data, position = _read_partition_data(buffer, position, version)
        partitions.append(partition_data)
    position = skip_tags(buffer, position)
    return ReadStateData(topic_id=topic_id, partitions=partitions), position


def _write_read_state_data(out: bytearray, message: ReadStateData, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_data in message.partitions:
        _write_partition_data(out, partition_data, version)
    out += b"\x00"


def _read_read_share_group_state_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ReadShareGroupStateRequest, int]:
    group_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[ReadStateData] = []
    for _ in range(count):
        read_state_data, position = _read_read_state_data(buffer, position, version)
        topics.append(read_state_data)
    position = skip_tags(buffer, position)
    return ReadShareGroupStateRequest(group_id=group_id, topics=topics), position


def _write_read_share_group_state_request(out: bytearray, message: ReadShareGroupStateRequest, version: int) -> None:
    write_compact_string(out, message.group_id)
    write_compact_array_length(out, len(message.topics))
    for read_state_data in message.topics:
        _write_read_state_data(out, read_state_data, version)
    out += b"\x00"


def read_read_share_group_state_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ReadShareGroupStateRequest, int]:
    """Read a ReadShareGroupStateRequest. Raises MalformedRequest."""
    try:
        return _read_read_share_group_state_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ReadShareGroupStateRequest") from error


def write_read_share_group_state_request(out: bytearray, message: ReadShareGroupStateRequest, version: int) -> None:
    """Append a ReadShareGroupStateRequest to `out`."""
    _write_read_share_group_state_request(out, message, version)


def _read_state_batch(buffer: memoryview, position: int, version: int) -> tuple[StateBatch, int]:
    first_offset, last_offset, delivery_state, delivery_count = _INT64_INT64_INT8_INT16.unpack_from(buffer, position)
    position += 19
    position = skip_tags(buffer, position)
    return StateBatch(
        first_offset=first_offset, last_offset=last_offset, delivery_state=delivery_state, delivery_count=delivery_count
    ), position


def _write_state_batch(out: bytearray, message: StateBatch, version: int) -> None:
    out += _INT64_INT64_INT8_INT16.pack(
        message.first_offset, message.last_offset, message.delivery_state, message.delivery_count
    )
    out += b"\x00"


def _read_partition_result(buffer: memoryview, position: int, version: int) -> tuple[PartitionResult, int]:
    partition, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    state_epoch, start_offset = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    count, position = read_compact_array_length(buffer, position, 19)
    state_batches: list[StateBatch] = []
    for _ in range(count):
        state_batch, position = _read_state_batch(buffer, position, version)
        state_batches.append(state_batch)
    position = skip_tags(buffer, position)
    return PartitionResult(
        partition=partition,
        error_code=error_code,
        error_message=error_message,
        state_epoch=state_epoch,
        start_offset=start_offset,
        state_batches=state_batches,
    ), position


def _write_partition_result(out: bytearray, message: PartitionResult, version: int) -> None:
    out += _INT32_INT16.pack(message.partition, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += _INT32_INT64.pack(message.state_epoch, message.start_offset)
    write_compact_array_length(out, len(message.state_batches))
    for state_batch in message.state_batches:
        _write_state_batch(out, state_batch, version)
    out += b"\x00"


def _read_read_state_result(buffer: memoryview, position: int, version: int) -> tuple[ReadStateResult, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 20)
    partitions: list[PartitionResult] = []
    for _ in range(count):
        partition_result, position = _read_partition_result(buffer, position, version)
        partitions.append(partition_result)
    position = skip_tags(buffer, position)
    return ReadStateResult(topic_id=topic_id, partitions=partitions), position


def _write_read_state_result(out: bytearray, message: ReadStateResult, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_result in message.partitions:
        _write_partition_result(out, partition_result, version)
    out += b"\x00"


def _read_read_share_group_state_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ReadShareGroupStateResponse, int]:
    count, position = read_compact_array_length(buffer, position, 17)
    results: list[ReadStateResult] = []
    for _ in range(count):
        read_state_result, position = _read_read_state_result(buffer, position, version)
        results.append(read_state_result)
    position = skip_tags(buffer, position)
    return ReadShareGroupStateResponse(results=results), position


def _write_read_share_group_state_response(out: bytearray, message: ReadShareGroupStateResponse, version: int) -> None:
    write_compact_array_length(out, len(message.results))
    for read_state_result in message.results:
        _write_read_state_result(out, read_state_result, version)
    out += b"\x00"


def read_read_share_group_state_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ReadShareGroupStateResponse, int]:
    """Read a ReadShareGroupStateResponse. Raises MalformedRequest."""
    try:
        return _read_read_share_group_state_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ReadShareGroupStateResponse") from error


def write_read_share_group_state_response(out: bytearray, message: ReadShareGroupStateResponse, version: int) -> None:
    """Append a ReadShareGroupStateResponse to `out`."""
    _write_read_share_group_state_response(out, message, version)
