"""Messages of heartbeat. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from strandline.compiled.attributes import mypyc_attr
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    skip_tags,
    truncated,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)
from strandline.wire.structure import Structure

_INT16 = Struct(">h")
_INT32 = Struct(">i")


@mypyc_attr(native_class=False)
@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class HeartbeatRequest(Structure):
    """Versions 0 to 4."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None  # from version 3 on


@mypyc_attr(native_class=False)
@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class HeartbeatResponse(Structure):
    """Versions 0 to 4."""

    throttle_time_ms: int = 0  # from version 1 on
    error_code: int = 0


def _read_heartbeat_request(buffer: memoryview, position: int, version: int) -> tuple[HeartbeatRequest, int]:
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
    if flexible:
        position = skip_tags(buffer, position)
    return HeartbeatRequest(
        group_id=group_id, generation_id=generation_id, member_id=member_id, group_instance_id=group_instance_id
    ), position


def _write_heartbeat_request(out: bytearray, message: HeartbeatRequest, version: int) -> None:
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
    if flexible:
        out += b"\x00"


def read_heartbeat_request(buffer: memoryview, position: int, version: int) -> tuple[HeartbeatRequest, int]:
    """Read a HeartbeatRequest. Raises MalformedRequest."""
    try:
        return _read_heartbeat_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("HeartbeatRequest") from error


def write_heartbeat_request(out: bytearray, message: HeartbeatRequest, version: int) -> None:
    """Append a HeartbeatRequest to `out`."""
    _write_heartbeat_request(out, message, version)


def _read_heartbeat_response(buffer: memoryview, position: int, version: int) -> tuple[HeartbeatResponse, int]:
    flexible = version >= 4
    throttle_time_ms: int = 0
    if version >= 1:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    if flexible:
        position = skip_tags(buffer, position)
    return HeartbeatResponse(throttle_time_ms=throttle_time_ms, error_code=error_code), position


def _write_heartbeat_response(out: bytearray, message: HeartbeatResponse, version: int) -> None:
    flexible = version >= 4
    if version >= 1:
        out += _INT32.pack(message.throttle_time_ms)
    out += _INT16.pack(message.error_code)
    if flexible:
        out += b"\x00"


def read_heartbeat_response(buffer: memoryview, position: int, version: int) -> tuple[HeartbeatResponse, int]:
    """Read a HeartbeatResponse. Raises MalformedRequest."""
    try:
        return _read_heartbeat_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("HeartbeatResponse") from error


def write_heartbeat_response(out: bytearray, message: HeartbeatResponse, version: int) -> None:
    """Append a HeartbeatResponse to `out`."""
    _write_heartbeat_response(out, message, version)
