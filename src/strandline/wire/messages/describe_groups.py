"""Messages of describe groups. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_bytes,
    read_compact_array_length,
    read_compact_bytes,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    skip_tags,
    truncated,
    write_array_length,
    write_bytes,
    write_compact_array_length,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)
from strandline.wire.structure import Structure

_BOOL = Struct(">?")
_INT16 = Struct(">h")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeGroupsRequest(Structure):
    """Versions 0 to 6."""

    groups: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False  # from version 3 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribedGroupMember(Structure):
    """Versions 0 to 6."""

    member_id: str = ""
    group_instance_id: str | None = None  # from version 4 on
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribedGroup(Structure):
    """Versions 0 to 6."""

    error_code: int = 0
    error_message: str | None = None  # from version 6 on
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(default_factory=list)
    authorized_operations: int = -2147483648  # from version 3 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeGroupsResponse(Structure):
    """Versions 0 to 6."""

    throttle_time_ms: int = 0  # from version 1 on
    groups: list[DescribedGroup] = field(default_factory=list)


def _read_describe_groups_request(buffer: memoryview, position: int, version: int) -> tuple[DescribeGroupsRequest, int]:
    flexible = version >= 5
    count, position = (
        read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
    )
    groups: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
        groups.append(text)
    include_authorized_operations: bool = False
    if version >= 3:
        (include_authorized_operations,) = _BOOL.unpack_from(buffer, position)
        position += 1
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeGroupsRequest(groups=groups, include_authorized_operations=include_authorized_operations), position


def _write_describe_groups_request(out: bytearray, message: DescribeGroupsRequest, version: int) -> None:
    flexible = version >= 5
    if flexible:
        write_compact_array_length(out, len(message.groups))
    else:
        write_array_length(out, len(message.groups))
    for text in message.groups:
        if flexible:
            write_compact_string(out, text)
        else:
            write_string(out, text)
    if version >= 3:
        out += _BOOL.pack(message.include_authorized_operations)
    if flexible:
        out += b"\x00"


def read_describe_groups_request(buffer: memoryview, position: int, version: int) -> tuple[DescribeGroupsRequest, int]:
    """Read a DescribeGroupsRequest. Raises MalformedRequest."""
    try:
        return _read_describe_groups_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeGroupsRequest") from error


def write_describe_groups_request(out: bytearray, message: DescribeGroupsRequest, version: int) -> None:
    """Append a DescribeGroupsRequest to `out`."""
    _write_describe_groups_request(out, message, version)


def _read_described_group_member(buffer: memoryview, position: int, version: int) -> tuple[DescribedGroupMember, int]:
    flexible = version >= 5
    member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    group_instance_id: str | None = None
    if version >= 4:
        group_instance_id, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    client_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    client_host, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    member_metadata, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    member_assignment, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribedGroupMember(
        member_id=member_id,
        group_instance_id=group_instance_id,
        client_id=client_id,
        client_host=client_host,
        member_metadata=member_metadata,
        member_assignment=member_assignment,
    ), position


def _write_described_group_member(out: bytearray, message: DescribedGroupMember, version: int) -> None:
    flexible = version >= 5
    if flexible:
        write_compact_string(out, message.member_id)
    else:
        write_string(out, message.member_id)
    if version >= 4:
        if flexible:
            write_compact_nullable_string(out, message.group_instance_id)
        else:
            write_nullable_string(out, message.group_instance_id)
    if flexible:
        write_compact_string(out, message.client_id)
    else:
        write_string(out, message.client_id)
    if flexible:
        write_compact_string(out, message.client_host)
    else:
        write_string(out, message.client_host)
    if flexible:
        write_compact_bytes(out, message.member_metadata)
    else:
        write_bytes(out, message.member_metadata)
    if flexible:
        write_compact_bytes(out, message.member_assignment)
    else:
        write_bytes(out, message.member_assignment)
    if flexible:
        out += b"\x00"


def _read_described_group(buffer: memoryview, position: int, version: int) -> tuple[DescribedGroup, int]:
    flexible = version >= 5
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message: str | None = None
    if version >= 6:
        error_message, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    group_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    group_state, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    protocol_type, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    protocol_data, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 5) if flexible else read_array_length(buffer, position, 5)
    )
    members: list[DescribedGroupMember] = []
    for _ in range(count):
        described_group_member, position = _read_described_group_member(buffer, position, version)
        members.append(described_group_member)
    authorized_operations: int = -2147483648
    if version >= 3:
        (authorized_operations,) = _INT32.unpack_from(buffer, position)
        position += 4
    if flexible:
        position = skip_tags(buffer, position)
    return DescribedGroup(
        error_code=error_code,
        error_message=error_message,
        group_id=group_id,
        group_state=group_state,
        protocol_type=protocol_type,
        protocol_data=protocol_data,
        members=members,
        authorized_operations=authorized_operations,
    ), position


def _write_described_group(out: bytearray, message: DescribedGroup, version: int) -> None:
    flexible = version >= 5
    out += _INT16.pack(message.error_code)
    if version >= 6:
        if flexible:
            write_compact_nullable_string(out, message.error_message)
        else:
            write_nullable_string(out, message.error_message)
    if flexible:
        write_compact_string(out, message.group_id)
    else:
        write_string(out, message.group_id)
    if flexible:
        write_compact_string(out, message.group_state)
    else:
        write_string(out, message.group_state)
    if flexible:
        write_compact_string(out, message.protocol_type)
    else:
        write_string(out, message.protocol_type)
    if flexible:
        write_compact_string(out, message.protocol_data)
    else:
        write_string(out, message.protocol_data)
    if flexible:
        write_compact_array_length(out, len(message.members))
    else:
        write_array_length(out, len(message.members))
    for described_group_member in message.members:
        _write_described_group_member(out, described_group_member, version)
    if version >= 3:
        out += _INT32.pack(message.authorized_operations)
    if flexible:
        out += b"\x00"


def _read_describe_groups_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeGroupsResponse, int]:
    flexible = version >= 5
    throttle_time_ms: int = 0
    if version >= 1:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    count, position = (
        read_compact_array_length(buffer, position, 7) if flexible else read_array_length(buffer, position, 7)
    )
    groups: list[DescribedGroup] = []
    for _ in range(count):
        described_group, position = _read_described_group(buffer, position, version)
        groups.append(described_group)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeGroupsResponse(throttle_time_ms=throttle_time_ms, groups=groups), position


def _write_describe_groups_response(out: bytearray, message: DescribeGroupsResponse, version: int) -> None:
    flexible = version >= 5
    if version >= 1:
        out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.groups))
    else:
        write_array_length(out, len(message.groups))
    for described_group in message.groups:
        _write_described_group(out, described_group, version)
    if flexible:
        out += b"\x00"


def read_describe_groups_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeGroupsResponse, int]:
    """Read a DescribeGroupsResponse. Raises MalformedRequest."""
    try:
        return _read_describe_groups_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeGroupsResponse") from error


def write_describe_groups_response(out: bytearray, message: DescribeGroupsResponse, version: int) -> None:
    """Append a DescribeGroupsResponse to `out`."""
    _write_describe_groups_response(out, message, version)
