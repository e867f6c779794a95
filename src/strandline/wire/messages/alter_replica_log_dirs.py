"""Messages of alter replica log dirs. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_string,
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

_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterReplicaLogDirTopic(Structure):
    """Versions 1 to 2."""

    name: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterReplicaLogDir(Structure):
    """Versions 1 to 2."""

    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterReplicaLogDirsRequest(Structure):
    """Versions 1 to 2."""

    dirs: list[AlterReplicaLogDir] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterReplicaLogDirPartitionResult(Structure):
    """Versions 1 to 2."""

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterReplicaLogDirTopicResult(Structure):
    """Versions 1 to 2."""

    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterReplicaLogDirsResponse(Structure):
    """Versions 1 to 2."""

    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirTopicResult] = field(default_factory=list)


def _read_alter_replica_log_dir_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterReplicaLogDirTopic, int]:
    flexible = version >= 2
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    partitions, position = read_numbers(buffer, position, count, "i")
    if flexible:
        position = skip_tags(buffer, position)
    return AlterReplicaLogDirTopic(name=name, partitions=partitions), position


def _write_alter_replica_log_dir_topic(out: bytearray, message: AlterReplicaLogDirTopic, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_numbers(out, message.partitions, "i")
    else:
        write_numbers(out, message.partitions, "i")
    if flexible:
        out += b"\x00"


def _read_alter_replica_log_dir(buffer: memoryview, position: int, version: int) -> tuple[AlterReplicaLogDir, int]:
    flexible = version >= 2
    path, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    topics: list[AlterReplicaLogDirTopic] = []
    for _ in range(count):
        alter_replica_log_dir_topic, position = _read_alter_replica_log_dir_topic(buffer, position, version)
        topics.append(alter_replica_log_dir_topic)
    if flexible:
        position = skip_tags(buffer, position)
    return AlterReplicaLogDir(path=path, topics=topics), position


def _write_alter_replica_log_dir(out: bytearray, message: AlterReplicaLogDir, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.path)
    else:
        write_string(out, message.path)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for alter_replica_log_dir_topic in message.topics:
        _write_alter_replica_log_dir_topic(out, alter_replica_log_dir_topic, version)
    if flexible:
        out += b"\x00"


def _read_alter_replica_log_dirs_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterReplicaLogDirsRequest, int]:
    flexible = version >= 2
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    dirs: list[AlterReplicaLogDir] = []
    for _ in range(count):
        alter_replica_log_dir, position = _read_alter_replica_log_dir(buffer, position, version)
        dirs.append(alter_replica_log_dir)
    if flexible:
        position = skip_tags(buffer, position)
    return AlterReplicaLogDirsRequest(dirs=dirs), position


def _write_alter_replica_log_dirs_request(out: bytearray, message: AlterReplicaLogDirsRequest, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_array_length(out, len(message.dirs))
    else:
        write_array_length(out, len(message.dirs))
    for alter_replica_log_dir in message.dirs:
        _write_alter_replica_log_dir(out, alter_replica_log_dir, version)
    if flexible:
        out += b"\x00"


def read_alter_replica_log_dirs_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterReplicaLogDirsRequest, int]:
    """Read a AlterReplicaLogDirsRequest. Raises MalformedRequest."""
    try:
        return _read_alter_replica_log_dirs_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterReplicaLogDirsRequest") from error


def write_alter_replica_log_dirs_request(out: bytearray, message: AlterReplicaLogDirsRequest, version: int) -> None:
    """Append a AlterReplicaLogDirsRequest to `out`."""
    _write_alter_replica_log_dirs_request(out, message, version)


def _read_alter_replica_log_dir_partition_result(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterReplicaLogDirPartitionResult, int]:
    flexible = version >= 2
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    if flexible:
        position = skip_tags(buffer, position)
    return AlterReplicaLogDirPartitionResult(partition_index=partition_index, error_code=error_code), position


def _write_alter_replica_log_dir_partition_result(
    out: bytearray, message: AlterReplicaLogDirPartitionResult, version: int
) -> None:
    flexible = version >= 2
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    if flexible:
        out += b"\x00"


def _read_alter_replica_log_dir_topic_result(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterReplicaLogDirTopicResult, int]:
    flexible = version >= 2
    topic_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 6) if flexible else read_array_length(buffer, position, 6)
    )
    partitions: list[AlterReplicaLogDirPartitionResult] = []
    for _ in range(count):
        alter_replica_log_dir_partition_result, position = _read_alter_replica_log_dir_partition_result(
            buffer, position, version
        )
        partitions.append(alter_replica_log_dir_partition_result)
    if flexible:
        position = skip_tags(buffer, position)
    return AlterReplicaLogDirTopicResult(topic_name=topic_name, partitions=partitions), position


def _write_alter_replica_log_dir_topic_result(
    out: bytearray, message: AlterReplicaLogDirTopicResult, version: int
) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.topic_name)
    else:
        write_string(out, message.topic_name)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for alter_replica_log_dir_partition_result in message.partitions:
        _write_alter_replica_log_dir_partition_result(out, alter_replica_log_dir_partition_result, version)
    if flexible:
        out += b"\x00"


def _read_alter_replica_log_dirs_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterReplicaLogDirsResponse, int]:
    flexible = version >= 2
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    results: list[AlterReplicaLogDirTopicResult] = []
    for _ in range(count):
        alter_replica_log_dir_topic_result, position = _read_alter_replica_log_dir_topic_result(
            buffer, position, version
        )
        results.append(alter_replica_log_dir_topic_result)
    if flexible:
        position = skip_tags(buffer, position)
    return AlterReplicaLogDirsResponse(throttle_time_ms=throttle_time_ms, results=results), position


def _write_alter_replica_log_dirs_response(out: bytearray, message: AlterReplicaLogDirsResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.results))
    else:
        write_array_length(out, len(message.results))
    for alter_replica_log_dir_topic_result in message.results:
        _write_alter_replica_log_dir_topic_result(out, alter_replica_log_dir_topic_result, version)
    if flexible:
        out += b"\x00"


def read_alter_replica_log_dirs_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterReplicaLogDirsResponse, int]:
    """Read a AlterReplicaLogDirsResponse. Raises MalformedRequest."""
    try:
        return _read_alter_replica_log_dirs_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterReplicaLogDirsResponse") from error


def write_alter_replica_log_dirs_response(out: bytearray, message: AlterReplicaLogDirsResponse, version: int) -> None:
    """Append a AlterReplicaLogDirsResponse to `out`."""
    _write_alter_replica_log_dirs_response(out, message, version)
