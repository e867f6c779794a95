"""Messages of consumer group heartbeat. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_uuid,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)
from strandline.wire.structure import Structure

_INT8 = Struct(">b")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT32 = Struct(">ii")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicPartitions(Structure):
    """Versions 0 to 1."""

    topic_id: UUID = ZERO_UUID
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ConsumerGroupHeartbeatRequest(Structure):
    """Versions 0 to 1."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None  # from version 1 on
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Assignment(Structure):
    """Versions 0 to 1."""

    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ConsumerGroupHeartbeatResponse(Structure):
    """Versions 0 to 1."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


def _read_topic_partitions(buffer: memoryview, position: int, version: int) -> tuple[TopicPartitions, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partitions, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return TopicPartitions(topic_id=topic_id, partitions=partitions), position


def _write_topic_partitions(out: bytearray, message: TopicPartitions, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_numbers(out, message.partitions, "i")
    out += b"\x00"


def _read_consumer_group_heartbeat_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    group_id, position = read_compact_string(buffer, position)
    member_id, position = read_compact_string(buffer, position)
    (member_epoch,) = _INT32.unpack_from(buffer, position)
    position += 4
    instance_id, position = read_compact_nullable_string(buffer, position)
    rack_id, position = read_compact_nullable_string(buffer, position)
    (rebalance_timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_nullable_array_length(buffer, position, 1)
    subscribed_topic_names: list[str] | None = None
    if count >= 0:
        subscribed_topic_names = []
        for _ in range(count):
            text, position = read_compact_string(buffer, position)
            subscribed_topic_names.append(text)
    subscribed_topic_regex: str | None = None
    if version >= 1:
        subscribed_topic_regex, position = read_compact_nullable_string(buffer, position)
    server_assignor, position = read_compact_nullable_string(buffer, position)
    count, position = read_compact_nullable_array_length(buffer, position, 17)
    topic_partitions: list[TopicPartitions] | None = None
    if count >= 0:
        topic_partitions = []
        for _ in range(count):
            topic_partitions_, position = _read_topic_partitions(buffer, position, version)
            topic_partitions.append(topic_partitions_)
    position = skip_tags(buffer, position)
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=member_epoch,
        instance_id=instance_id,
        rack_id=rack_id,
        rebalance_timeout_ms=rebalance_timeout_ms,
        subscribed_topic_names=subscribed_topic_names,
        subscribed_topic_regex=subscribed_topic_regex,
        server_assignor=server_assignor,
        topic_partitions=topic_partitions,
    ), position


def _write_consumer_group_heartbeat_request(
    out: bytearray, message: ConsumerGroupHeartbeatRequest, version: int
) -> None:
    write_compact_string(out, message.group_id)
    write_compact_string(out, message.member_id)
    out += _INT32.pack(message.member_epoch)
    write_compact_nullable_string(out, message.instance_id)
    write_compact_nullable_string(out, message.rack_id)
    out += _INT32.pack(message.rebalance_timeout_ms)
    if message.subscribed_topic_names is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.subscribed_topic_names))
        for text in message.subscribed_topic_names:
            write_compact_string(out, text)
    if version >= 1:
        write_compact_nullable_string(out, message.subscribed_topic_regex)
    write_compact_nullable_string(out, message.server_assignor)
    if message.topic_partitions is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.topic_partitions))
        for topic_partitions_ in message.topic_partitions:
            _write_topic_partitions(out, topic_partitions_, version)
    out += b"\x00"


def read_consumer_group_heartbeat_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    """Read a ConsumerGroupHeartbeatRequest. Raises MalformedRequest."""
    try:
        return _read_consumer_group_heartbeat_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ConsumerGroupHeartbeatRequest") from error


def write_consumer_group_heartbeat_request(
    out: bytearray, message: ConsumerGroupHeartbeatRequest, version: int
) -> None:
    """Append a ConsumerGroupHeartbeatRequest to `out`."""
    _write_consumer_group_heartbeat_request(out, message, version)


def _read_assignment(buffer: memoryview, position: int, version: int) -> tuple[Assignment, int]:
    count, position = read_compact_array_length(buffer, position, 17)
    topic_partitions: list[TopicPartitions] = []
    for _ in range(count):
        topic_partitions_, position = _read_topic_partitions(buffer, position, version)
        topic_partitions.append(topic_partitions_)
    position = skip_tags(buffer, position)
    return Assignment(topic_partitions=topic_partitions), position


def _write_assignment(out: bytearray, message: Assignment, version: int) -> None:
    write_compact_array_length(out, len(message.topic_partitions))
    for topic_partitions_ in message.topic_partitions:
        _write_topic_partitions(out, topic_partitions_, version)
    out += b"\x00"


def _read_consumer_group_heartbeat_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ConsumerGroupHeartbeatResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    member_id, position = read_compact_nullable_string(buffer, position)
    member_epoch, heartbeat_interval_ms = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    assignment: Assignment | None = None
    (marker,) = _INT8.unpack_from(buffer, position)
    position += 1
    if marker >= 0:
        assignment, position = _read_assignment(buffer, position, version)
    position = skip_tags(buffer, position)
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
        assignment=assignment,
    ), position


def _write_consumer_group_heartbeat_response(
    out: bytearray, message: ConsumerGroupHeartbeatResponse, version: int
) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_nullable_string(out, message.member_id)
    out += _INT32_INT32.pack(message.member_epoch, message.heartbeat_interval_ms)
    if message.assignment is None:
        out += b"\xff"
    else:
        out += b"\x01"
        _write_assignment(out, message.assignment, version)
    out += b"\x00"


def read_consumer_group_heartbeat_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ConsumerGroupHeartbeatResponse, int]:
    """Read a ConsumerGroupHeartbeatResponse. Raises MalformedRequest."""
    try:
        return _read_consumer_group_heartbeat_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ConsumerGroupHeartbeatResponse") from error


def write_consumer_group_heartbeat_response(
    out: bytearray, message: ConsumerGroupHeartbeatResponse, version: int
) -> None:
    """Append a ConsumerGroupHeartbeatResponse to `out`."""
    _write_consumer_group_heartbeat_response(out, message, version)
