"""Messages of alter partition. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_numbers,
    read_uuid,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_numbers,
)
from strandline.wire.structure import Structure

_INT8_INT32 = Struct(">bi")
_INT32_INT16 = Struct(">ih")
_INT32_INT16_INT32_INT32 = Struct(">ihii")
_INT32_INT32 = Struct(">ii")
_INT32_INT64 = Struct(">iq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class BrokerState(Structure):
    """Versions 3 to 3."""

    broker_id: int = 0
    broker_epoch: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class RequestPartitionData(Structure):
    """Versions 2 to 3."""

    partition_index: int = 0
    leader_epoch: int = 0
    new_isr: list[int] = field(default_factory=list)  # up to version 2
    new_isr_with_epochs: list[BrokerState] = field(default_factory=list)  # from version 3 on
    leader_recovery_state: int = 0
    partition_epoch: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class RequestTopicData(Structure):
    """Versions 2 to 3."""

    topic_id: UUID = ZERO_UUID
    partitions: list[RequestPartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterPartitionRequest(Structure):
    """Versions 2 to 3."""

    broker_id: int = 0
    broker_epoch: int = -1
    topics: list[RequestTopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ResponsePartitionData(Structure):
    """Versions 2 to 3."""

    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: list[int] = field(default_factory=list)
    leader_recovery_state: int = 0
    partition_epoch: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ResponseTopicData(Structure):
    """Versions 2 to 3."""

    topic_id: UUID = ZERO_UUID
    partitions: list[ResponsePartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterPartitionResponse(Structure):
    """Versions 2 to 3."""

    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[ResponseTopicData] = field(default_factory=list)


def _read_broker_state(buffer: memoryview, position: int, version: int) -> tuple[BrokerState, int]:
    broker_id, broker_epoch = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    position = skip_tags(buffer, position)
    return BrokerState(broker_id=broker_id, broker_epoch=broker_epoch), position


def _write_broker_state(out: bytearray, message: BrokerState, version: int) -> None:
    out += _INT32_INT64.pack(message.broker_id, message.broker_epoch)
    out += b"\x00"


def _read_request_partition_data(buffer: memoryview, position: int, version: int) -> tuple[RequestPartitionData, int]:
    partition_index, leader_epoch = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    new_isr: list[int] = []
    if version <= 2:
        count, position = read_compact_array_length(buffer, position, 4)
        new_isr, position = read_numbers(buffer, position, count, "i")
    new_isr_with_epochs: list[BrokerState] = []
    if version >= 3:
        count, position = read_compact_array_length(buffer, position, 12)
        new_isr_with_epochs = []
        for _ in range(count):
            broker_state, position = _read_broker_state(buffer, position, version)
            new_isr_with_epochs.append(broker_state)
    leader_recovery_state, partition_epoch = _INT8_INT32.unpack_from(buffer, position)
    position += 5
    position = skip_tags(buffer, position)
    return RequestPartitionData(
        partition_index=partition_index,
        leader_epoch=leader_epoch,
        new_isr=new_isr,
        new_isr_with_epochs=new_isr_with_epochs,
        leader_recovery_state=leader_recovery_state,
        partition_epoch=partition_epoch,
    ), position


def _write_request_partition_data(out: bytearray, message: RequestPartitionData, version: int) -> None:
    out += _INT32_INT32.pack(message.partition_index, message.leader_epoch)
    if version <= 2:
        write_compact_numbers(out, message.new_isr, "i")
    if version >= 3:
        write_compact_array_length(out, len(message.new_isr_with_epochs))
        for broker_state in message.new_isr_with_epochs:
            _write_broker_state(out, broker_state, version)
    out += _INT8_INT32.pack(message.leader_recovery_state, message.partition_epoch)
    out += b"\x00"


def _read_request_topic_data(buffer: memoryview, position: int, version: int) -> tuple[RequestTopicData, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 13)
    partitions: list[RequestPartitionData] = []
    for _ in range(count):
        request_partition_data, position = _read_request_partition_data(buffer, position, version)
        partitions.append(request_partition_data)
    position = skip_tags(buffer, position)
    return RequestTopicData(topic_id=topic_id, partitions=partitions), position


def _write_request_topic_data(out: bytearray, message: RequestTopicData, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for request_partition_data in message.partitions:
        _write_request_partition_data(out, request_partition_data, version)
    out += b"\x00"


def _read_alter_partition_request(buffer: memoryview, position: int, version: int) -> tuple[AlterPartitionRequest, int]:
    broker_id, broker_epoch = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[RequestTopicData] = []
    for _ in range(count):
        request_topic_data, position = _read_request_topic_data(buffer, position, version)
        topics.append(request_topic_data)
    position = skip_tags(buffer, position)
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=topics), position


def _write_alter_partition_request(out: bytearray, message: AlterPartitionRequest, version: int) -> None:
    out += _INT32_INT64.pack(message.broker_id, message.broker_epoch)
    write_compact_array_length(out, len(message.topics))
    for request_topic_data in message.topics:
        _write_request_topic_data(out, request_topic_data, version)
    out += b"\x00"


def read_alter_partition_request(buffer: memoryview, position: int, version: int) -> tuple[AlterPartitionRequest, int]:
    """Read a AlterPartitionRequest. Raises MalformedRequest."""
    try:
        return _read_alter_partition_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterPartitionRequest") from error


def write_alter_partition_request(out: bytearray, message: AlterPartitionRequest, version: int) -> None:
    """Append a AlterPartitionRequest to `out`."""
    _write_alter_partition_request(out, message, version)


def _read_response_partition_data(buffer: memoryview, position: int, version: int) -> tuple[ResponsePartitionData, int]:
    partition_index, error_code, leader_id, leader_epoch = _INT32_INT16_INT32_INT32.unpack_from(buffer, position)
    position += 14
    count, position = read_compact_array_length(buffer, position, 4)
    isr, position = read_numbers(buffer, position, count, "i")
    leader_recovery_state, partition_epoch = _INT8_INT32.unpack_from(buffer, position)
    position += 5
    position = skip_tags(buffer, position)
    return ResponsePartitionData(
        partition_index=partition_index,
        error_code=error_code,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        isr=isr,
        leader_recovery_state=leader_recovery_state,
        partition_epoch=partition_epoch,
    ), position


def _write_response_partition_data(out: bytearray, message: ResponsePartitionData, version: int) -> None:
    out += _INT32_INT16_INT32_INT32.pack(
        message.partition_index, message.error_code, message.leader_id, message.leader_epoch
    )
    write_compact_numbers(out, message.isr, "i")
    out += _INT8_INT32.pack(message.leader_recovery_state, message.partition_epoch)
    out += b"\x00"


def _read_response_topic_data(buffer: memoryview, position: int, version: int) -> tuple[ResponseTopicData, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 20)
    partitions: list[ResponsePartitionData] = []
    for _ in range(count):
        response_partition_data, position = _read_response_partition_data(buffer, position, version)
        partitions.append(response_partition_data)
    position = skip_tags(buffer, position)
    return ResponseTopicData(topic_id=topic_id, partitions=partitions), position


def _write_response_topic_data(out: bytearray, message: ResponseTopicData, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for response_partition_data in message.partitions:
        _write_response_partition_data(out, response_partition_data, version)
    out += b"\x00"


def _read_alter_partition_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterPartitionResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[ResponseTopicData] = []
    for _ in range(count):
        response_topic_data, position = _read_response_topic_data(buffer, position, version)
        topics.append(response_topic_data)
    position = skip_tags(buffer, position)
    return AlterPartitionResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, topics=topics), position


def _write_alter_partition_response(out: bytearray, message: AlterPartitionResponse, version: int) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_array_length(out, len(message.topics))
    for response_topic_data in message.topics:
        _write_response_topic_data(out, response_topic_data, version)
    out += b"\x00"


def read_alter_partition_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterPartitionResponse, int]:
    """Read a AlterPartitionResponse. Raises MalformedRequest."""
    try:
        return _read_alter_partition_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterPartitionResponse") from error


def write_alter_partition_response(out: bytearray, message: AlterPartitionResponse, version: int) -> None:
    """Append a AlterPartitionResponse to `out`."""
    _write_alter_partition_response(out, message, version)
