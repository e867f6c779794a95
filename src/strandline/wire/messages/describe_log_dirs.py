"""Messages of describe log dirs. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_compact_string,
    read_nullable_array_length,
    read_numbers,
    read_string,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_numbers,
    write_compact_string,
    write_numbers,
    write_string,
)
from strandline.wire.structure import Structure

_BOOL = Struct(">?")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT64_INT64_BOOL = Struct(">iqq?")
_INT64_INT64 = Struct(">qq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribableLogDirTopic(Structure):
    """Versions 1 to 5."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeLogDirsRequest(Structure):
    """Versions 1 to 5."""

    topics: list[DescribableLogDirTopic] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeLogDirsPartition(Structure):
    """Versions 1 to 5."""

    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeLogDirsTopic(Structure):
    """Versions 1 to 5."""

    name: str = ""
    partitions: list[DescribeLogDirsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeLogDirsResult(Structure):
    """Versions 1 to 5."""

    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = field(default_factory=list)
    total_bytes: int = -1  # from version 4 on
    usable_bytes: int = -1  # from version 4 on
    is_cordoned: bool = False  # from version 5 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeLogDirsResponse(Structure):
    """Versions 1 to 5."""

    throttle_time_ms: int = 0
    error_code: int = 0  # from version 3 on
    results: list[DescribeLogDirsResult] = field(default_factory=list)


def _read_describable_log_dir_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribableLogDirTopic, int]:
    flexible = version >= 2
    topic, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    partitions, position = read_numbers(buffer, position, count, "i")
    if flexible:
        position = skip_tags(buffer, position)
    return DescribableLogDirTopic(topic=topic, partitions=partitions), position


def _write_describable_log_dir_topic(out: bytearray, message: DescribableLogDirTopic, version: int) -> None:
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


def _read_describe_log_dirs_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeLogDirsRequest, int]:
    flexible = version >= 2
    count, position = (
        read_compact_nullable_array_length(buffer, position, 2)
        if flexible
        else read_nullable_array_length(buffer, position, 2)
    )
    topics: list[DescribableLogDirTopic] | None = None
    if count >= 0:
        topics = []
        for _ in range(count):
            describable_log_dir_topic, position = _read_describable_log_dir_topic(buffer, position, version)
            topics.append(describable_log_dir_topic)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeLogDirsRequest(topics=topics), position


def _write_describe_log_dirs_request(out: bytearray, message: DescribeLogDirsRequest, version: int) -> None:
    flexible = version >= 2
    if message.topics is None:
        if flexible:
            write_compact_array_length(out, -1)
        else:
            write_array_length(out, -1)
    else:
        if flexible:
            write_compact_array_length(out, len(message.topics))
        else:
            write_array_length(out, len(message.topics))
        for describable_log_dir_topic in message.topics:
            _write_describable_log_dir_topic(out, describable_log_dir_topic, version)
    if flexible:
        out += b"\x00"


def read_describe_log_dirs_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeLogDirsRequest, int]:
    """Read a DescribeLogDirsRequest. Raises MalformedRequest."""
    try:
        return _read_describe_log_dirs_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeLogDirsRequest") from error


def write_describe_log_dirs_request(out: bytearray, message: DescribeLogDirsRequest, version: int) -> None:
    """Append a DescribeLogDirsRequest to `out`."""
    _write_describe_log_dirs_request(out, message, version)


def _read_describe_log_dirs_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeLogDirsPartition, int]:
    flexible = version >= 2
    partition_index, partition_size, offset_lag, is_future_key = _INT32_INT64_INT64_BOOL.unpack_from(buffer, position)
    position += 21
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeLogDirsPartition(
        partition_index=partition_index,
        partition_size=partition_size,
        offset_lag=offset_lag,
        is_future_key=is_future_key,
    ), position


def _write_describe_log_dirs_partition(out: bytearray, message: DescribeLogDirsPartition, version: int) -> None:
    flexible = version >= 2
    out += _INT32_INT64_INT64_BOOL.pack(
        message.partition_index, message.partition_size, message.offset_lag, message.is_future_key
    )
    if flexible:
        out += b"\x00"


def _read_describe_log_dirs_topic(buffer: memoryview, position: int, version: int) -> tuple[DescribeLogDirsTopic, int]:
    flexible = version >= 2
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 21) if flexible else read_array_length(buffer, position, 21)
    )
    partitions: list[DescribeLogDirsPartition] = []
    for _ in range(count):
        describe_log_dirs_partition, position = _read_describe_log_dirs_partition(buffer, position, version)
        partitions.append(describe_log_dirs_partition)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeLogDirsTopic(name=name, partitions=partitions), position


def _write_describe_log_dirs_topic(out: bytearray, message: DescribeLogDirsTopic, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for describe_log_dirs_partition in message.partitions:
        _write_describe_log_dirs_partition(out, describe_log_dirs_partition, version)
    if flexible:
        out += b"\x00"


def _read_describe_log_dirs_result(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeLogDirsResult, int]:
    flexible = version >= 2
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    log_dir, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    topics: list[DescribeLogDirsTopic] = []
    for _ in range(count):
        describe_log_dirs_topic, position = _read_describe_log_dirs_topic(buffer, position, version)
        topics.append(describe_log_dirs_topic)
    total_bytes: int = -1
    usable_bytes: int = -1
    if version >= 4:
        total_bytes, usable_bytes = _INT64_INT64.unpack_from(buffer, position)
        position += 16
    is_cordoned: bool = False
    if version >= 5:
        (is_cordoned,) = _BOOL.unpack_from(buffer, position)
        position += 1
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeLogDirsResult(
        error_code=error_code,
        log_dir=log_dir,
        topics=topics,
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=is_cordoned,
    ), position


def _write_describe_log_dirs_result(out: bytearray, message: DescribeLogDirsResult, version: int) -> None:
    flexible = version >= 2
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_string(out, message.log_dir)
    else:
        write_string(out, message.log_dir)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for describe_log_dirs_topic in message.topics:
        _write_describe_log_dirs_topic(out, describe_log_dirs_topic, version)
    if version >= 4:
        out += _INT64_INT64.pack(message.total_bytes, message.usable_bytes)
    if version >= 5:
        out += _BOOL.pack(message.is_cordoned)
    if flexible:
        out += b"\x00"


def _read_describe_log_dirs_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeLogDirsResponse, int]:
    flexible = version >= 2
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    error_code: int = 0
    if version >= 3:
        (error_code,) = _INT16.unpack_from(buffer, position)
        position += 2
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    results: list[DescribeLogDirsResult] = []
    for _ in range(count):
        describe_log_dirs_result, position = _read_describe_log_dirs_result(buffer, position, version)
        results.append(describe_log_dirs_result)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeLogDirsResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, results=results), position


def _write_describe_log_dirs_response(out: bytearray, message: DescribeLogDirsResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT32.pack(message.throttle_time_ms)
    if version >= 3:
        out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_array_length(out, len(message.results))
    else:
        write_array_length(out, len(message.results))
    for describe_log_dirs_result in message.results:
        _write_describe_log_dirs_result(out, describe_log_dirs_result, version)
    if flexible:
        out += b"\x00"


def read_describe_log_dirs_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeLogDirsResponse, int]:
    """Read a DescribeLogDirsResponse. Raises MalformedRequest."""
    try:
        return _read_describe_log_dirs_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeLogDirsResponse") from error


def write_describe_log_dirs_response(out: bytearray, message: DescribeLogDirsResponse, version: int) -> None:
    """Append a DescribeLogDirsResponse to `out`."""
    _write_describe_log_dirs_response(out, message, version)
