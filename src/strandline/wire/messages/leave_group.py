"""Messages of leave group. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)
from strandline.wire.structure import Structure

_INT16 = Struct(">h")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class MemberIdentity(Structure):
    """Versions 3 to 5."""

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None  # from version 5 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class LeaveGroupRequest(Structure):
    """Versions 0 to 5."""

    group_id: str = ""
    member_id: str = ""  # up to version 2
    members: list[MemberIdentity] = field(default_factory=list)  # from version 3 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class MemberResponse(Structure):
    """Versions 3 to 5."""

    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class LeaveGroupResponse(Structure):
    """Versions 0 to 5."""

    throttle_time_ms: int = 0  # from version 1 on
    error_code: int = 0
    members: list[MemberResponse] = field(default_factory=list)  # from version 3 on


def _read_member_identity(buffer: memoryview, position: int, version: int) -> tuple[MemberIdentity, int]:
    flexible = version >= 4
    member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    group_instance_id, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    reason: str | None = None
    if version >= 5:
        reason, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    if flexible:
        position = skip_tags(buffer, position)
    return MemberIdentity(member_id=member_id, group_instance_id=group_instance_id, reason=reason), position


def _write_member_identity(out: bytearray, message: MemberIdentity, version: int) -> None:
    flexible = version >= 4
    if flexible:
        write_compact_string(out, message.member_id)
    else:
        write_string(out, message.member_id)
    if flexible:
        write_compact_nullable_string(out, message.group_instance_id)
    else:
        write_nullable_string(out, message.group_instance_id)
    if version >= 5:
        if flexible:
            write_compact_nullable_string(out, message.reason)
        else:
            write_nullable_string(out, message.reason)
    if flexible:
        out += b"\x00"


def _read_leave_group_request(buffer: memoryview, position: int, version: int) -> tuple[LeaveGroupRequest, int]:
    flexible = version >= 4
    group_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    member_id: str = ""
    if version <= 2:
        member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    members: list[MemberIdentity] = []
    if version >= 3:
        count, position = (
            read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
        )
        members = []
        for _ in range(count):
            member_identity, position = _read_member_identity(buffer, position, version)
            members.append(member_identity)
    if flexible:
        position = skip_tags(buffer, position)
    return LeaveGroupRequest(group_id=group_id, member_id=member_id, members=members), position


def _write_leave_group_request(out: bytearray, message: LeaveGroupRequest, version: int) -> None:
    flexible = version >= 4
    if flexible:
        write_compact_string(out, message.group_id)
    else:
        write_string(out, message.group_id)
    if version <= 2:
        if flexible:
            write_compact_string(out, message.member_id)
        else:
            write_string(out, message.member_id)
    if version >= 3:
        if flexible:
            write_compact_array_length(out, len(message.members))
        else:
            write_array_length(out, len(message.members))
        for member_identity in message.members:
            _write_member_identity(out, member_identity, version)
    if flexible:
        out += b"\x00"


def read_leave_group_request(buffer: memoryview, position: int, version: int) -> tuple[LeaveGroupRequest, int]:
    """Read a LeaveGroupRequest. Raises MalformedRequest."""
    try:
        return _read_leave_group_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("LeaveGroupRequest") from error


def write_leave_group_request(out: bytearray, message: LeaveGroupRequest, version: int) -> None:
    """Append a LeaveGroupRequest to `out`."""
    _write_leave_group_request(out, message, version)


def _read_member_response(buffer: memoryview, position: int, version: int) -> tuple[MemberResponse, int]:
    flexible = version >= 4
    member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    group_instance_id, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    if flexible:
        position = skip_tags(buffer, position)
    return MemberResponse(member_id=member_id, group_instance_id=group_instance_id, error_code=error_code), position


def _write_member_response(out: bytearray, message: MemberResponse, version: int) -> None:
    flexible = version >= 4
    if flexible:
        write_compact_string(out, message.member_id)
    else:
        write_string(out, message.member_id)
    if flexible:
        write_compact_nullable_string(out, message.group_instance_id)
    else:
        write_nullable_string(out, message.group_instance_id)
    out += _INT16.pack(message.error_code)
    if flexible:
        out += b"\x00"


def _read_leave_group_response(buffer: memoryview, position: int, version: int) -> tuple[LeaveGroupResponse, int]:
    flexible = version >= 4
    throttle_time_ms: int = 0
    if version >= 1:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    members: list[MemberResponse] = []
    if version >= 3:
        count, position = (
            read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
        )
        members = []
        for _ in range(count):
            member_response, position = _read_member_response(buffer, position, version)
            members.append(member_response)
    if flexible:
        position = skip_tags(buffer, position)
    return LeaveGroupResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, members=members), position


def _write_leave_group_response(out: bytearray, message: LeaveGroupResponse, version: int) -> None:
    flexible = version >= 4
    if version >= 1:
        out += _INT32.pack(message.throttle_time_ms)
    out += _INT16.pack(message.error_code)
    if version >= 3:
        if flexible:
            write_compact_array_length(out, len(message.members))
        else:
            write_array_length(out, len(message.members))
        for member_response in message.members:
            _write_member_response(out, member_response, version)
    if flexible:
        out += b"\x00"


def read_leave_group_response(buffer: memoryview, position: int, version: int) -> tuple[LeaveGroupResponse, int]:
    """Read a LeaveGroupResponse. Raises MalformedRequest."""
    try:
        return _read_leave_group_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("LeaveGroupResponse") from error


def write_leave_group_response(out: bytearray, message: LeaveGroupResponse, version: int) -> None:
    """Append a LeaveGroupResponse to `out`."""
    _write_leave_group_response(out, message, version)
