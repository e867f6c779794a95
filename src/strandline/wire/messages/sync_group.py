"""Messages of sync group. Written by tools/generate_messages.py: do not edit."""

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

_INT16 = Struct(">h")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class SyncGroupRequestAssignment(Structure):
    """Versions 0 to 5."""

    member_id: str = ""
    assignment: bytes = b""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class SyncGroupRequest(Structure):
    """Versions 0 to 5."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None  # from version 3 on
    protocol_type: str | None = None  # from version 5 on
    protocol_name: str | None = None  # from version 5 on
    assignments: list[SyncGroupRequestAssignment] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class SyncGroupResponse(Structure):
    """Versions 0 to 5."""

    throttle_time_ms: int = 0  # from version 1 on
    error_code: int = 0
    protocol_type: str | None = None  # from version 5 on
    protocol_name: str | None = None  # from version 5 on
    assignment: bytes = b""


def _read_sync_group_request_assignment(
    buffer: memoryview, position: int, version: int
) -> tuple[SyncGroupRequestAssignment, int]:
    flexible = version >= 4
    member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    assignment, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return SyncGroupRequestAssignment(member_id=member_id, assignment=assignment), position


def _write_sync_group_request_assignment(out: bytearray, message: SyncGroupRequestAssignment, version: int) -> None:
    flexible = version >= 4
    if flexible:
        write_compact_string(out, message.member_id)
    else:
        write_string(out, message.member_id)
    if flexible:
        write_compact_bytes(out, message.assignment)
    else:
        write_bytes(out, message.assignment)
    if flexible:
        out += b"\x00"


def _read_sync_group_request(buffer: memoryview, position: int, version: int) -> tuple[SyncGroupRequest, int]:
    flexible = version >= 4
    group_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (generation_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    group_instance_id: str | None = None
    if version >= 3:
        group_instance_id, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    protocol_type: str | None = None
    protocol_name: str | None = None
    if version >= 5:
        protocol_type, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
        protocol_name, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    assignments: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        sync_group_request_assignment, position = _read_sync_group_request_assignment(buffer, position, version)
        assignments.append(sync_group_request_assignment)
    if flexible:
        position = skip_tags(buffer, position)
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignments=assignments,
    ), position


def _write_sync_group_request(out: bytearray, message: SyncGroupRequest, version: int) -> None:
    flexible = version >= 4
    if flexible:
        write_compact_string(out, message.group_id)
    else:
        write_string(out, message.group_id)
    out += _INT32.pack(message.generation_id)
    if flexible:
        write_compact_string(out, message.member_id)
    else:
        write_string(out, message.member_id)
    if version >= 3:
        if flexible:
            write_compact_nullable_string(out, message.group_instance_id)
        else:
            write_nullable_string(out, message.group_instance_id)
    if version >= 5:
        if flexible:
            write_compact_nullable_string(out, message.protocol_type)
        else:
            write_nullable_string(out, message.protocol_type)
        if flexible:
            write_compact_nullable_string(out, message.protocol_name)
        else:
            write_nullable_string(out, message.protocol_name)
    if flexible:
        write_compact_array_length(out, len(message.assignments))
    else:
        write_array_length(out, len(message.assignments))
    for sync_group_request_assignment in message.assignments:
        _write_sync_group_request_assignment(out, sync_group_request_assignment, version)
    if flexible:
        out += b"\x00"


def read_sync_group_request(buffer: memoryview, position: int, version: int) -> tuple[SyncGroupRequest, int]:
    """Read a SyncGroupRequest. Raises MalformedRequest."""
    try:
        return _read_sync_group_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("SyncGroupRequest") from error


def write_sync_group_request(out: bytearray, message: SyncGroupRequest, version: int) -> None:
    """Append a SyncGroupRequest to `out`."""
    _write_sync_group_request(out, message, version)


def _read_sync_group_response(buffer: memoryview, position: int, version: int) -> tuple[SyncGroupResponse, int]:
    flexible = version >= 4
    throttle_time_ms: int = 0
    if version >= 1:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    protocol_type: str | None = None
    protocol_name: str | None = None
    if version >= 5:
        protocol_type, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
        protocol_name, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    assignment, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return SyncGroupResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignment=assignment,
    ), position


def _write_sync_group_response(out: bytearray, message: SyncGroupResponse, version: int) -> None:
    flexible = version >= 4
    if version >= 1:
        out += _INT32.pack(message.throttle_time_ms)
    out += _INT16.pack(message.error_code)
    if version >= 5:
        if flexible:
            write_compact_nullable_string(out, message.protocol_type)
        else:
            write_nullable_string(out, message.protocol_type)
        if flexible:
            write_compact_nullable_string(out, message.protocol_name)
        else:
            write_nullable_string(out, message.protocol_name)
    if flexible:
        write_compact_bytes(out, message.assignment)
    else:
        write_bytes(out, message.assignment)
    if flexible:
        out += b"\x00"


def read_sync_group_response(buffer: memoryview, position: int, version: int) -> tuple[SyncGroupResponse, int]:
    """Read a SyncGroupResponse. Raises MalformedRequest."""
    try:
        return _read_sync_group_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("SyncGroupResponse") from error


def write_sync_group_response(out: bytearray, message: SyncGroupResponse, version: int) -> None:
    """Append a SyncGroupResponse to `out`."""
    _write_sync_group_response(out, message, version)
