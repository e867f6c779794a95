"""Messages of share group describe. Written by tools/generate_messages.py: do not edit."""

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

_BOOL = Struct(">?")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT32 = Struct(">ii")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ShareGroupDescribeRequest(Structure):
    """Versions 1 to 1."""

    group_ids: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicPartitions(Structure):
    """Versions 1 to 1."""

    topic_id: UUID = ZERO_UUID
    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Assignment(Structure):
    """Versions 1 to 1."""

    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Member(Structure):
    """Versions 1 to 1."""

    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)
    assignment: Assignment = field(default_factory=Assignment)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribedGroup(Structure):
    """Versions 1 to 1."""

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = field(default_factory=list)
    authorized_operations: int = -2147483648


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ShareGroupDescribeResponse(Structure):
    """Versions 1 to 1."""

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)


def _read_share_group_describe_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ShareGroupDescribeRequest, int]:
    count, position = read_compact_array_length(buffer, position, 1)
    group_ids: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        group_ids.append(text)
    (include_authorized_operations,) = _BOOL.unpack_from(buffer, position)
    position += 1
    position = skip_tags(buffer, position)
    return ShareGroupDescribeRequest(
        group_ids=group_ids, include_authorized_operations=include_authorized_operations
    ), position


def _write_share_group_describe_request(out: bytearray, message: ShareGroupDescribeRequest, version: int) -> None:
    write_compact_array_length(out, len(message.group_ids))
    for text in message.group_ids:
        write_compact_string(out, text)
    out += _BOOL.pack(message.include_authorized_operations)
    out += b"\x00"


def read_share_group_describe_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ShareGroupDescribeRequest, int]:
    """Read a ShareGroupDescribeRequest. Raises MalformedRequest."""
    try:
        return _read_share_group_describe_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ShareGroupDescribeRequest") from error


def write_share_group_describe_request(out: bytearray, message: ShareGroupDescribeRequest, version: int) -> None:
    """Append a ShareGroupDescribeRequest to `out`."""
    _write_share_group_describe_request(out, message, version)


def _read_topic_partitions(buffer: memoryview, position: int, version: int) -> tuple[TopicPartitions, int]:
    topic_id, position = read_uuid(buffer, position)
    topic_name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partitions, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return TopicPartitions(topic_id=topic_id, topic_name=topic_name, partitions=partitions), position


def _write_topic_partitions(out: bytearray, message: TopicPartitions, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_string(out, message.topic_name)
    write_compact_numbers(out, message.partitions, "i")
    out += b"\x00"


def _read_assignment(buffer: memoryview, position: int, version: int) -> tuple[Assignment, int]:
    count, position = read_compact_array_length(buffer, position, 18)
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


def _read_member(buffer: memoryview, position: int, version: int) -> tuple[Member, int]:
    member_id, position = read_compact_string(buffer, position)
    rack_id, position = read_compact_nullable_string(buffer, position)
    (member_epoch,) = _INT32.unpack_from(buffer, position)
    position += 4
    client_id, position = read_compact_string(buffer, position)
    client_host, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 1)
    subscribed_topic_names: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        subscribed_topic_names.append(text)
    assignment, position = _read_assignment(buffer, position, version)
    position = skip_tags(buffer, position)
    return Member(
        member_id=member_id,
        rack_id=rack_id,
        member_epoch=member_epoch,
        client_id=client_id,
        client_host=client_host,
        subscribed_topic_names=subscribed_topic_names,
        assignment=assignment,
    ), position


def _write_member(out: bytearray, message: Member, version: int) -> None:
    write_compact_string(out, message.member_id)
    write_compact_nullable_string(out, message.rack_id)
    out += _INT32.pack(message.member_epoch)
    write_compact_string(out, message.client_id)
    write_compact_string(out, message.client_host)
    write_compact_array_length(out, len(message.subscribed_topic_names))
    for text in message.subscribed_topic_names:
        write_compact_string(out, text)
    _write_assignment(out, message.assignment, version)
    out += b"\x00"


def _read_described_group(buffer: memoryview, position: int, version: int) -> tuple[DescribedGroup, int]:
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = read_compact_nullable_string(buffer, position)
    group_id, position = read_compact_string(buffer, position)
    group_state, position = read_compact_string(buffer, position)
    group_epoch, assignment_epoch = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    assignor_name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 10)
    members: list[Member] = []
    for _ in range(count):
        member, position = _read_member(buffer, position, version)
        members.append(member)
    (authorized_operations,) = _INT32.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return DescribedGroup(
        error_code=error_code,
        error_message=error_message,
        group_id=group_id,
        group_state=group_state,
        group_epoch=group_epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=assignor_name,
        members=members,
        authorized_operations=authorized_operations,
    ), position


def _write_described_group(out: bytearray, message: DescribedGroup, version: int) -> None:
    out += _INT16.pack(message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_string(out, message.group_id)
    write_compact_string(out, message.group_state)
    out += _INT32_INT32.pack(message.group_epoch, message.assignment_epoch)
    write_compact_string(out, message.assignor_name)
    write_compact_array_length(out, len(message.members))
    for member in message.members:
        _write_member(out, member, version)
    out += _INT32.pack(message.authorized_operations)
    out += b"\x00"


def _read_share_group_describe_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ShareGroupDescribeResponse, int]:
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 19)
    groups: list[DescribedGroup] = []
    for _ in range(count):
        described_group, position = _read_described_group(buffer, position, version)
        groups.append(described_group)
    position = skip_tags(buffer, position)
    return ShareGroupDescribeResponse(throttle_time_ms=throttle_time_ms, groups=groups), position


def _write_share_group_describe_response(out: bytearray, message: ShareGroupDescribeResponse, version: int) -> None:
    out += _INT32.pack(message.throttle_time_ms)
    write_compact_array_length(out, len(message.groups))
    for described_group in message.groups:
        _write_described_group(out, described_group, version)
    out += b"\x00"


def read_share_group_describe_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ShareGroupDescribeResponse, int]:
    """Read a ShareGroupDescribeResponse. Raises MalformedRequest."""
    try:
        return _read_share_group_describe_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ShareGroupDescribeResponse") from error


def write_share_group_describe_response(out: bytearray, message: ShareGroupDescribeResponse, version: int) -> None:
    """Append a ShareGroupDescribeResponse to `out`."""
    _write_share_group_describe_response(out, message, version)
