"""Messages of write share group state. Written by tools/generate_messages.py: do not edit."""

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
_INT32_INT32_INT32_INT64 = Struct(">iiiq")
_INT64_INT64_INT8_INT16 = Struct(">qqbh")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class StateBatch(Structure):
    """Versions 0 to 1."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionData(Structure):
    """Versions 0 to 1."""

    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1  # from version 1 on
    state_batches: list[StateBatch] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WriteStateData(Structure):
    """Versions 0 to 1."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WriteShareGroupStateRequest(Structure):
    """Versions 0 to 1."""

    group_id: str = ""
    topics: list[WriteStateData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionResult(Structure):
    """Versions 0 to 1."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WriteStateResult(Structure):
    """Versions 0 to 1."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WriteShareGroupStateResponse(Structure):
    """Versions 0 to 1."""

    results: list[WriteStateResult] = field(default_factory=list)


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


def _read_partition_data(buffer: memoryview, position: int, version: int) -> tuple[PartitionData, int]:
    partition, state_epoch, leader_epoch, start_offset = _INT32_INT32_INT32_INT64.unpack_from(buffer, position)
    position += 20
    delivery_complete_count: int = -1
    if version >= 1:
        (delivery_complete_count,) = _INT32.unpack_from(buffer, position)
        position += 4
    count, position = read_compact_array_length(buffer, position, 19)
    state_batches: list[StateBatch] = []
    for _ in range(count):
        state_batch, position = _read_state_batch(buffer, position, version)
        state_batches.append(state_batch)
    position = skip_tags(buffer, position)
    return PartitionData(
        partition=partition,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        state_batches=state_batches,
    ), position


def _write_partition_data(out: bytearray, message: PartitionData, version: int) -> None:
    out += _INT32_INT32_INT32_INT64.pack(
        message.partition, message.state_epoch, message.leader_epoch, message.start_offset
    )
    if version >= 1:
        out += _INT32.pack(message.delivery_complete_count)
    write_compact_array_length(out, len(message.state_batches))
    for state_batch in message.state_batches:
        _write_state_batch(out, state_batch, version)
    out += b"\x00"


def _read_write_state_data(buffer: memoryview, position: int, version: int) -> tuple[WriteStateData, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 21)
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition_data, position = _read_partition_data(buffer, position, version)
        partitions.append(partition_data)
    position = skip_tags(buffer, position)
    return WriteStateData(topic_id=topic_id, partitions=partitions), position


def _write_write_state_data(out: bytearray, message: WriteStateData, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_data in message.partitions:
        _write_partition_data(out, partition_data, version)
    out += b"\x00"


def _read_write_share_group_state_request(
    buffer: memoryview, position: int, version: int
) -> tuple[WriteShareGroupStateRequest, int]:
    group_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[WriteStateData] = []
    for _ in range(count):
        write_state_data, position = _read_write_state_data(buffer, position, version)
        topics.append(write_state_data)
    position = skip_tags(buffer, position)
    return WriteShareGroupStateRequest(group_id=group_id, topics=topics), position


def _write_write_share_group_state_request(out: bytearray, message: WriteShareGroupStateRequest, version: int) -> None:
    write_compact_string(out, message.group_id)
    write_compact_array_length(out, len(message.topics))
    for write_state_data in message.topics:
        _write_write_state_data(out, write_state_data, version)
    out += b"\x00"


def read_write_share_group_state_request(
    buffer: memoryview, position: int, version: int
) -> tuple[WriteShareGroupStateRequest, int]:
    """Read a WriteShareGroupStateRequest. Raises MalformedRequest."""
    try:
        return _read_write_share_group_state_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("WriteShareGroupStateRequest") from error


def write_write_share_group_state_request(out: bytearray, message: WriteShareGroupStateRequest, version: int) -> None:
    """Append a WriteShareGroupStateRequest to `out`."""
    _write_write_share_group_state_request(out, message, version)


def _read_partition_result(buffer: memoryview, position: int, version: int) -> tuple[PartitionResult, int]:
    partition, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return PartitionResult(partition=partition, error_code=error_code, error_message=error_message), position


def _write_partition_result(out: bytearray, message: PartitionResult, version: int) -> None:
    out += _INT32_INT16.pack(message.partition, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def _read_write_state_result(buffer: memoryview, position: int, version: int) -> tuple[WriteStateResult, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 7)
    partitions: list[PartitionResult] = []
    for _ in range(count):
        partition_result, position = _read_partition_result(buffer, position, version)
        partitions.append(partition_result)
    position = skip_tags(buffer, position)
    return WriteStateResult(topic_id=topic_id, partitions=partitions), position


def _write_write_state_result(out: bytearray, message: WriteStateResult, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_result in message.partitions:
        _write_partition_result(out, partition_result, version)
    out += b"\x00"


def _read_write_share_group_state_response(
    buffer: memoryview, position: int, version: int
) -> tuple[WriteShareGroupStateResponse, int]:
    count, position = read_compact_array_length(buffer, position, 17)
    results: list[WriteStateResult] = []
    for _ in range(count):
        write_state_result, position = _read_write_state_result(buffer, position, version)
        results.append(write_state_result)
    position = skip_tags(buffer, position)
    return WriteShareGroupStateResponse(results=results), position


def _write_write_share_group_state_response(
    out: bytearray, message: WriteShareGroupStateResponse, version: int
) -> None:
    write_compact_array_length(out, len(message.results))
    for write_state_result in message.results:
        _write_write_state_result(out, write_state_result, version)
    out += b"\x00"


def read_write_share_group_state_response(
    buffer: memoryview, position: int, version: int
) -> tuple[WriteShareGroupStateResponse, int]:
    """Read a WriteShareGroupStateResponse. Raises MalformedRequest."""
    try:
        return _read_write_share_group_state_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("WriteShareGroupStateResponse") from error


def write_write_share_group_state_response(out: bytearray, message: WriteShareGroupStateResponse, version: int) -> None:
    """Append a WriteShareGroupStateResponse to `out`."""
    _write_write_share_group_state_response(out, message, version)
