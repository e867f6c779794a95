"""Messages of join group. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    null_error,
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
_INT16_INT32 = Struct(">hi")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class JoinGroupRequestProtocol(Structure):
    """Versions 0 to 9."""

    name: str = ""
    metadata: bytes = b""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class JoinGroupRequest(Structure):
    """Versions 0 to 9."""

    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1  # from version 1 on
    member_id: str = ""
    group_instance_id: str | None = None  # from version 5 on
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = field(default_factory=list)
    reason: str | None = None  # from version 8 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class JoinGroupResponseMember(Structure):
    """Versions 0 to 9."""

    member_id: str = ""
    group_instance_id: str | None = None  # from version 5 on
    metadata: bytes = b""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class JoinGroupResponse(Structure):
    """Versions 0 to 9."""

    throttle_time_ms: int = 0  # from version 2 on
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None  # from version 7 on
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False  # from version 9 on
    member_id: str = ""
    members: list[JoinGroupResponseMember] = field(default_factory=list)


def _read_join_group_request_protocol(
    buffer: memoryview, position: int, version: int
) -> tuple[JoinGroupRequestProtocol, int]:
    flexible = version >= 6
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    metadata, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return JoinGroupRequestProtocol(name=name, metadata=metadata), position


def _write_join_group_request_protocol(out: bytearray, message: JoinGroupRequestProtocol, version: int) -> None:
    flexible = version >= 6
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_bytes(out, message.metadata)
    else:
        write_bytes(out, message.metadata)
    if flexible:
        out += b"\x00"


def _read_join_group_request(buffer: memoryview, position: int, version: int) -> tuple[JoinGroupRequest, int]:
    flexible = version >= 6
    group_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (session_timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    rebalance_timeout_ms: int = -1
    if version >= 1:
        (rebalance_timeout_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    group_instance_id: str | None = None
    if version >= 5:
        group_instance_id, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    protocol_type, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        join_group_request_protocol, position = _read_join_group_request_protocol(buffer, position, version)
        protocols.append(join_group_request_protocol)
    reason: str | None = None
    if version >= 8:
        reason, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    if flexible:
        position = skip_tags(buffer, position)
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocols=protocols,
        reason=reason,
    ), position


def _write_join_group_request(out: bytearray, message: JoinGroupRequest, version: int) -> None:
    flexible = version >= 6
    if flexible:
        write_compact_string(out, message.group_id)
    else:
        write_string(out, message.group_id)
    out += _INT32.pack(message.session_timeout_ms)
    if version >= 1:
        out += _INT32.pack(message.rebalance_timeout_ms)
    if flexible:
        write_compact_string(out, message.member_id)
    else:
        write_string(out, message.member_id)
    if version >= 5:
        if flexible:
            write_compact_nullable_string(out, message.group_instance_id)
        else:
            write_nullable_string(out, message.group_instance_id)
    if flexible:
        write_compact_string(out, message.protocol_type)
    else:
        write_string(out, message.protocol_type)
    if flexible:
        write_compact_array_length(out, len(message.protocols))
    else:
        write_array_length(out, len(message.protocols))
    for join_group_request_protocol in message.protocols:
        _write_join_group_request_protocol(out, join_group_request_protocol, version)
    if version >= 8:
        if flexible:
            write_compact_nullable_string(out, message.reason)
        else:
            write_nullable_string(out, message.reason)
    if flexible:
        out += b"\x00"


def read_join_group_request(buffer: memoryview, position: int, version: int) -> tuple[JoinGroupRequest, int]:
    """Read a JoinGroupRequest. Raises MalformedRequest."""
    try:
        return _read_join_group_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("JoinGroupRequest") from error


def write_join_group_request(out: bytearray, message: JoinGroupRequest, version: int) -> None:
    """Append a JoinGroupRequest to `out`."""
    _write_join_group_request(out, message, version)


def _read_join_group_response_member(
    buffer: memoryview, position: int, version: int
) -> tuple[JoinGroupResponseMember, int]:
    flexible = version >= 6
    member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    group_instance_id: str | None = None
    if version >= 5:
        group_instance_id, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    metadata, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return JoinGroupResponseMember(
        member_id=member_id, group_instance_id=group_instance_id, metadata=metadata
    ), position


def _write_join_group_response_member(out: bytearray, message: JoinGroupResponseMember, version: int) -> None:
    flexible = version >= 6
    if flexible:
        write_compact_string(out, message.member_id)
    else:
        write_string(out, message.member_id)
    if version >= 5:
        if flexible:
            write_compact_nullable_string(out, message.group_instance_id)
        else:
            write_nullable_string(out, message.group_instance_id)
    if flexible:
        write_compact_bytes(out, message.metadata)
    else:
        write_bytes(out, message.metadata)
    if flexible:
        out += b"\x00"


def _read_join_group_response(buffer: memoryview, position: int, version: int) -> tuple[JoinGroupResponse, int]:
    flexible = version >= 6
    throttle_time_ms: int = 0
    if version >= 2:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    error_code, generation_id = _INT16_INT32.unpack_from(buffer, position)
    position += 6
    protocol_type: str | None = None
    if version >= 7:
        protocol_type, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    protocol_name, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if protocol_name is None and version < 7:
        raise null_error("protocol_name")
    leader, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    skip_assignment: bool = False
    if version >= 9:
        (skip_assignment,) = _BOOL.unpack_from(buffer, position)
        position += 1
    member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    members: list[JoinGroupResponseMember] = []
    for _ in range(count):
        join_group_response_member, position = _read_join_group_response_member(buffer, position, version)
        members.append(join_group_response_member)
    if flexible:
        position = skip_tags(buffer, position)
    return JoinGroupResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        generation_id=generation_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        leader=leader,
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    ), position


def _write_join_group_response(out: bytearray, message: JoinGroupResponse, version: int) -> None:
    flexible = version >= 6
    if version >= 2:
        out += _INT32.pack(message.throttle_time_ms)
    out += _INT16_INT32.pack(message.error_code, message.generation_id)
    if version >= 7:
        if flexible:
            write_compact_nullable_string(out, message.protocol_type)
        else:
            write_nullable_string(out, message.protocol_type)
    if message.protocol_name is None and version < 7:
        raise null_error("protocol_name")
    if flexible:
        write_compact_nullable_string(out, message.protocol_name)
    else:
        write_nullable_string(out, message.protocol_name)
    if flexible:
        write_compact_string(out, message.leader)
    else:
        write_string(out, message.leader)
    if version >= 9:
        out += _BOOL.pack(message.skip_assignment)
    if flexible:
        write_compact_string(out, message.member_id)
    else:
        write_string(out, message.member_id)
    if flexible:
        write_compact_array_length(out, len(message.members))
    else:
        write_array_length(out, len(message.members))
    for join_group_response_member in message.members:
        _write_join_group_response_member(out, join_group_response_member, version)
    if flexible:
        out += b"\x00"


def read_join_group_response(buffer: memoryview, position: int, version: int) -> tuple[JoinGroupResponse, int]:
    """Read a JoinGroupResponse. Raises MalformedRequest."""
    try:
        return _read_join_group_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("JoinGroupResponse") from error


def write_join_group_response(out: bytearray, message: JoinGroupResponse, version: int) -> None:
    """Append a JoinGroupResponse to `out`."""
    _write_join_group_response(out, message, version)
