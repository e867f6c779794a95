"""Messages of describe producers. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
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
_INT64_INT32_INT32_INT64_INT32_INT64 = Struct(">qiiqiq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicRequest(Structure):
    """Versions 0 to 0."""

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeProducersRequest(Structure):
    """Versions 0 to 0."""

    topics: list[TopicRequest] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ProducerState(Structure):
    """Versions 0 to 0."""

    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionResponse(Structure):
    """Versions 0 to 0."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicResponse(Structure):
    """Versions 0 to 0."""

    name: str = ""
    partitions: list[PartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeProducersResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    topics: list[TopicResponse] = field(default_factory=list)


def _read_topic_request(buffer: memoryview, position: int, version: int) -> tuple[TopicRequest, int]:
    name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partition_indexes, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return TopicRequest(name=name, partition_indexes=partition_indexes), position


def _write_topic_request(out: bytearray, message: TopicRequest, version: int) -> None:
    write_compact_string(out, message.name)
    write_compact_numbers(out, message.partition_indexes, "i")
    out += b"\x00"


def _read_describe_producers_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeProducersRequest, int]:
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[TopicRequest] = []
    for _ in range(count):
        topic_request, position = _read_topic_request(buffer, position, version)
        topics.append(topic_request)
    position = skip_tags(buffer, position)
    return DescribeProducersRequest(topics=topics), position


def _write_describe_producers_request(out: bytearray, message: DescribeProducersRequest, version: int) -> None:
    write_compact_array_length(out, len(message.topics))
    for topic_request in message.topics:
        _write_topic_request(out, topic_request, version)
    out += b"\x00"


def read_describe_producers_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeProducersRequest, int]:
    """Read a DescribeProducersRequest. Raises MalformedRequest."""
    try:
        return _read_describe_producers_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeProducersRequest") from error


def write_describe_producers_request(out: bytearray, message: DescribeProducersRequest, version: int) -> None:
    """Append a DescribeProducersRequest to `out`."""
    _write_describe_producers_request(out, message, version)


def _read_producer_state(buffer: memoryview, position: int, version: int) -> tuple[ProducerState, int]:
    producer_id, producer_epoch, last_sequence, last_timestamp, coordinator_epoch, current_txn_start_offset = (
        _INT64_INT32_INT32_INT64_INT32_INT64.unpack_from(buffer, position)
    )
    position += 36
    position = skip_tags(buffer, position)
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        last_sequence=last_sequence,
        last_timestamp=last_timestamp,
        coordinator_epoch=coordinator_epoch,
        current_txn_start_offset=current_txn_start_offset,
    ), position


def _write_producer_state(out: bytearray, message: ProducerState, version: int) -> None:
    out += _INT64_INT32_INT32_INT64_INT32_INT64.pack(
        message.producer_id,
        message.producer_epoch,
        message.last_sequence,
        message.last_timestamp,
        message.coordinator_epoch,
        message.current_txn_start_offset,
    )
    out += b"\x00"


def _read_partition_response(buffer: memoryview, position: int, version: int) -> tuple[PartitionResponse, int]:
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 36)
    active_producers: list[ProducerState] = []
    for _ in range(count):
        producer_state, position = _read_producer_state(buffer, position, version)
        active_producers.append(producer_state)
    position = skip_tags(buffer, position)
    return PartitionResponse(
        partition_index=partition_index,
        error_code=error_code,
        error_message=error_message,
        active_producers=active_producers,
    ), position


def _write_partition_response(out: bytearray, message: PartitionResponse, version: int) -> None:
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_array_length(out, len(message.active_producers))
    for producer_state in message.active_producers:
        _write_producer_state(out, producer_state, version)
    out += b"\x00"


def _read_topic_response(buffer: memoryview, position: int, version: int) -> tuple[TopicResponse, int]:
    name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 8)
    partitions: list[PartitionResponse] = []
    for _ in range(count):
        partition_response, position = _read_partition_response(buffer, position, version)
        partitions.append(partition_response)
    position = skip_tags(buffer, position)
    return TopicResponse(name=name, partitions=partitions), position


def _write_topic_response(out: bytearray, message: TopicResponse, version: int) -> None:
    write_compact_string(out, message.name)
    write_compact_array_length(out, len(message.partitions))
    for partition_response in message.partitions:
        _write_partition_response(out, partition_response, version)
    out += b"\x00"


def _read_describe_producers_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeProducersResponse, int]:
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[TopicResponse] = []
    for _ in range(count):
        topic_response, position = _read_topic_response(buffer, position, version)
        topics.append(topic_response)
    position = skip_tags(buffer, position)
    return DescribeProducersResponse(throttle_time_ms=throttle_time_ms, topics=topics), position


def _write_describe_producers_response(out: bytearray, message: DescribeProducersResponse, version: int) -> None:
    out += _INT32.pack(message.throttle_time_ms)
    write_compact_array_length(out, len(message.topics))
    for topic_response in message.topics:
        _write_topic_response(out, topic_response, version)
    out += b"\x00"


def read_describe_producers_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeProducersResponse, int]:
    """Read a DescribeProducersResponse. Raises MalformedRequest."""
    try:
        return _read_describe_producers_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeProducersResponse") from error


def write_describe_producers_response(out: bytearray, message: DescribeProducersResponse, version: int) -> None:
    """Append a DescribeProducersResponse to `out`."""
    _write_describe_producers_response(out, message, version)
