"""Messages of delete records. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_string,
    read_string,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_string,
    write_string,
)
from strandline.wire.structure import Structure

_INT32 = Struct(">i")
_INT32_INT64 = Struct(">iq")
_INT32_INT64_INT16 = Struct(">iqh")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteRecordsPartition(Structure):
    """Versions 0 to 2."""

    partition_index: int = 0
    offset: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteRecordsTopic(Structure):
    """Versions 0 to 2."""

    name: str = ""
    partitions: list[DeleteRecordsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteRecordsRequest(Structure):
    """Versions 0 to 2."""

    topics: list[DeleteRecordsTopic] = field(default_factory=list)
    timeout_ms: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteRecordsPartitionResult(Structure):
    """Versions 0 to 2."""

    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteRecordsTopicResult(Structure):
    """Versions 0 to 2."""

    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteRecordsResponse(Structure):
    """Versions 0 to 2."""

    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = field(default_factory=list)


def _read_delete_records_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteRecordsPartition, int]:
    flexible = version >= 2
    partition_index, offset = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteRecordsPartition(partition_index=partition_index, offset=offset), position


def _write_delete_records_partition(out: bytearray, message: DeleteRecordsPartition, version: int) -> None:
    flexible = version >= 2
    out += _INT32_INT64.pack(message.partition_index, message.offset)
    if flexible:
        out += b"\x00"


def _read_delete_records_topic(buffer: memoryview, position: int, version: int) -> tuple[DeleteRecordsTopic, int]:
    flexible = version >= 2
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 12) if flexible else read_array_length(buffer, position, 12)
    )
    partitions: list[DeleteRecordsPartition] = []
    for _ in range(count):
        delete_records_partition, position = _read_delete_records_partition(buffer, position, version)
        partitions.append(delete_records_partition)
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteRecordsTopic(name=name, partitions=partitions), position


def _write_delete_records_topic(out: bytearray, message: DeleteRecordsTopic, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for delete_records_partition in message.partitions:
        _write_delete_records_partition(out, delete_records_partition, version)
    if flexible:
        out += b"\x00"


def _read_delete_records_request(buffer: memoryview, position: int, version: int) -> tuple[DeleteRecordsRequest, int]:
    flexible = version >= 2
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    topics: list[DeleteRecordsTopic] = []
    for _ in range(count):
        delete_records_topic, position = _read_delete_records_topic(buffer, position, version)
        topics.append(delete_records_topic)
    (timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms), position


def _write_delete_records_request(out: bytearray, message: DeleteRecordsRequest, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for delete_records_topic in message.topics:
        _write_delete_records_topic(out, delete_records_topic, version)
    out += _INT32.pack(message.timeout_ms)
    if flexible:
        out += b"\x00"


def read_delete_records_request(buffer: memoryview, position: int, version: int) -> tuple[DeleteRecordsRequest, int]:
    """Read a DeleteRecordsRequest. Raises MalformedRequest."""
    try:
        return _read_delete_records_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteRecordsRequest") from error


def write_delete_records_request(out: bytearray, message: DeleteRecordsRequest, version: int) -> None:
    """Append a DeleteRecordsRequest to `out`."""
    _write_delete_records_request(out, message, version)


def _read_delete_records_partition_result(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteRecordsPartitionResult, int]:
    flexible = version >= 2
    partition_index, low_watermark, error_code = _INT32_INT64_INT16.unpack_from(buffer, position)
    position += 14
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteRecordsPartitionResult(
        partition_index=partition_index, low_watermark=low_watermark, error_code=error_code
    ), position


def _write_delete_records_partition_result(out: bytearray, message: DeleteRecordsPartitionResult, version: int) -> None:
    flexible = version >= 2
    out += _INT32_INT64_INT16.pack(message.partition_index, message.low_watermark, message.error_code)
    if flexible:
        out += b"\x00"


def _read_delete_records_topic_result(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteRecordsTopicResult, int]:
    flexible = version >= 2
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 14) if flexible else read_array_length(buffer, position, 14)
    )
    partitions: list[DeleteRecordsPartitionResult] = []
    for _ in range(count):
        delete_records_partition_result, position = _read_delete_records_partition_result(buffer, position, version)
        partitions.append(delete_records_partition_result)
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteRecordsTopicResult(name=name, partitions=partitions), position


def _write_delete_records_topic_result(out: bytearray, message: DeleteRecordsTopicResult, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for delete_records_partition_result in message.partitions:
        _write_delete_records_partition_result(out, delete_records_partition_result, version)
    if flexible:
        out += b"\x00"


def _read_delete_records_response(buffer: memoryview, position: int, version: int) -> tuple[DeleteRecordsResponse, int]:
    flexible = version >= 2
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    topics: list[DeleteRecordsTopicResult] = []
    for _ in range(count):
        delete_records_topic_result, position = _read_delete_records_topic_result(buffer, position, version)
        topics.append(delete_records_topic_result)
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteRecordsResponse(throttle_time_ms=throttle_time_ms, topics=topics), position


def _write_delete_records_response(out: bytearray, message: DeleteRecordsResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for delete_records_topic_result in message.topics:
        _write_delete_records_topic_result(out, delete_records_topic_result, version)
    if flexible:
        out += b"\x00"


def read_delete_records_response(buffer: memoryview, position: int, version: int) -> tuple[DeleteRecordsResponse, int]:
    """Read a DeleteRecordsResponse. Raises MalformedRequest."""
    try:
        return _read_delete_records_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteRecordsResponse") from error


def write_delete_records_response(out: bytearray, message: DeleteRecordsResponse, version: int) -> None:
    """Append a DeleteRecordsResponse to `out`."""
    _write_delete_records_response(out, message, version)
