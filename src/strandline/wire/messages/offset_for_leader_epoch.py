"""Messages of offset for leader epoch. Written by tools/generate_messages.py: do not edit."""

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

_INT16_INT32_INT32_INT64 = Struct(">hiiq")
_INT32 = Struct(">i")
_INT32_INT32_INT32 = Struct(">iii")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetForLeaderPartition(Structure):
    """Versions 2 to 4."""

    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetForLeaderTopic(Structure):
    """Versions 2 to 4."""

    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetForLeaderEpochRequest(Structure):
    """Versions 2 to 4."""

    replica_id: int = -2  # from version 3 on
    topics: list[OffsetForLeaderTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class EpochEndOffset(Structure):
    """Versions 2 to 4."""

    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetForLeaderTopicResult(Structure):
    """Versions 2 to 4."""

    topic: str = ""
    partitions: list[EpochEndOffset] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetForLeaderEpochResponse(Structure):
    """Versions 2 to 4."""

    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = field(default_factory=list)


def _read_offset_for_leader_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetForLeaderPartition, int]:
    flexible = version >= 4
    partition, current_leader_epoch, leader_epoch = _INT32_INT32_INT32.unpack_from(buffer, position)
    position += 12
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current_leader_epoch, leader_epoch=leader_epoch
    ), position


def _write_offset_for_leader_partition(out: bytearray, message: OffsetForLeaderPartition, version: int) -> None:
    flexible = version >= 4
    out += _INT32_INT32_INT32.pack(message.partition, message.current_leader_epoch, message.leader_epoch)
    if flexible:
        out += b"\x00"


def _read_offset_for_leader_topic(buffer: memoryview, position: int, version: int) -> tuple[OffsetForLeaderTopic, int]:
    flexible = version >= 4
    topic, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 12) if flexible else read_array_length(buffer, position, 12)
    )
    partitions: list[OffsetForLeaderPartition] = []
    for _ in range(count):
        offset_for_leader_partition, position = _read_offset_for_leader_partition(buffer, position, version)
        partitions.append(offset_for_leader_partition)
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetForLeaderTopic(topic=topic, partitions=partitions), position


def _write_offset_for_leader_topic(out: bytearray, message: OffsetForLeaderTopic, version: int) -> None:
    flexible = version >= 4
    if flexible:
        write_compact_string(out, message.topic)
    else:
        write_string(out, message.topic)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for offset_for_leader_partition in message.partitions:
        _write_offset_for_leader_partition(out, offset_for_leader_partition, version)
    if flexible:
        out += b"\x00"


def _read_offset_for_leader_epoch_request(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetForLeaderEpochRequest, int]:
    flexible = version >= 4
    replica_id: int = -2
    if version >= 3:
        (replica_id,) = _INT32.unpack_from(buffer, position)
        position += 4
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    topics: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        offset_for_leader_topic, position = _read_offset_for_leader_topic(buffer, position, version)
        topics.append(offset_for_leader_topic)
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetForLeaderEpochRequest(replica_id=replica_id, topics=topics), position


def _write_offset_for_leader_epoch_request(out: bytearray, message: OffsetForLeaderEpochRequest, version: int) -> None:
    flexible = version >= 4
    if version >= 3:
        out += _INT32.pack(message.replica_id)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for offset_for_leader_topic in message.topics:
        _write_offset_for_leader_topic(out, offset_for_leader_topic, version)
    if flexible:
        out += b"\x00"


def read_offset_for_leader_epoch_request(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetForLeaderEpochRequest, int]:
    """Read a OffsetForLeaderEpochRequest. Raises MalformedRequest."""
    try:
        return _read_offset_for_leader_epoch_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("OffsetForLeaderEpochRequest") from error


def write_offset_for_leader_epoch_request(out: bytearray, message: OffsetForLeaderEpochRequest, version: int) -> None:
    """Append a OffsetForLeaderEpochRequest to `out`."""
    _write_offset_for_leader_epoch_request(out, message, version)


def _read_epoch_end_offset(buffer: memoryview, position: int, version: int) -> tuple[EpochEndOffset, int]:
    flexible = version >= 4
    error_code, partition, leader_epoch, end_offset = _INT16_INT32_INT32_INT64.unpack_from(buffer, position)
    position += 18
    if flexible:
        position = skip_tags(buffer, position)
    return EpochEndOffset(
        error_code=error_code, partition=partition, leader_epoch=leader_epoch, end_offset=end_offset
    ), position


def _write_epoch_end_offset(out: bytearray, message: EpochEndOffset, version: int) -> None:
    flexible = version >= 4
    out += _INT16_INT32_INT32_INT64.pack(
        message.error_code, message.partition, message.leader_epoch, message.end_offset
    )
    if flexible:
        out += b"\x00"


def _read_offset_for_leader_topic_result(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetForLeaderTopicResult, int]:
    flexible = version >= 4
    topic, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 18) if flexible else read_array_length(buffer, position, 18)
    )
    partitions: list[EpochEndOffset] = []
    for _ in range(count):
        epoch_end_offset, position = _read_epoch_end_offset(buffer, position, version)
        partitions.append(epoch_end_offset)
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetForLeaderTopicResult(topic=topic, partitions=partitions), position


def _write_offset_for_leader_topic_result(out: bytearray, message: OffsetForLeaderTopicResult, version: int) -> None:
    flexible = version >= 4
    if flexible:
        write_compact_string(out, message.topic)
    else:
        write_string(out, message.topic)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for epoch_end_offset in message.partitions:
        _write_epoch_end_offset(out, epoch_end_offset, version)
    if flexible:
        out += b"\x00"


def _read_offset_for_leader_epoch_response(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetForLeaderEpochResponse, int]:
    flexible = version >= 4
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    topics: list[OffsetForLeaderTopicResult] = []
    for _ in range(count):
        offset_for_leader_topic_result, position = _read_offset_for_leader_topic_result(buffer, position, version)
        topics.append(offset_for_leader_topic_result)
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetForLeaderEpochResponse(throttle_time_ms=throttle_time_ms, topics=topics), position


def _write_offset_for_leader_epoch_response(
    out: bytearray, message: OffsetForLeaderEpochResponse, version: int
) -> None:
    flexible = version >= 4
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for offset_for_leader_topic_result in message.topics:
        _write_offset_for_leader_topic_result(out, offset_for_leader_topic_result, version)
    if flexible:
        out += b"\x00"


def read_offset_for_leader_epoch_response(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetForLeaderEpochResponse, int]:
    """Read a OffsetForLeaderEpochResponse. Raises MalformedRequest."""
    try:
        return _read_offset_for_leader_epoch_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("OffsetForLeaderEpochResponse") from error


def write_offset_for_leader_epoch_response(out: bytearray, message: OffsetForLeaderEpochResponse, version: int) -> None:
    """Append a OffsetForLeaderEpochResponse to `out`."""
    _write_offset_for_leader_epoch_response(out, message, version)
