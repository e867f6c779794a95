"""Messages of find coordinator. Written by tools/generate_messages.py: do not edit."""

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

_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FindCoordinatorRequest(Structure):
    """Versions 0 to 6."""

    key: str = ""  # up to version 3
    key_type: int = 0  # from version 1 on
    coordinator_keys: list[str] = field(default_factory=list)  # from version 4 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Coordinator(Structure):
    """Versions 4 to 6."""

    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FindCoordinatorResponse(Structure):
    """Versions 0 to 6."""

    throttle_time_ms: int = 0  # from version 1 on
    error_code: int = 0  # up to version 3
    error_message: str | None = None  # versions 1 to 3
    node_id: int = 0  # up to version 3
    host: str = ""  # up to version 3
    port: int = 0  # up to version 3
    coordinators: list[Coordinator] = field(default_factory=list)  # from version 4 on


def _read_find_coordinator_request(
    buffer: memoryview, position: int, version: int
) -> tuple[FindCoordinatorRequest, int]:
    flexible = version >= 3
    key: str = ""
    if version <= 3:
        key, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    key_type: int = 0
    if version >= 1:
        (key_type,) = _INT8.unpack_from(buffer, position)
        position += 1
    coordinator_keys: list[str] = []
    if version >= 4:
        count, position = (
            read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
        )
        coordinator_keys = []
        for _ in range(count):
            text, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
            coordinator_keys.append(text)
    if flexible:
        position = skip_tags(buffer, position)
    return FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=coordinator_keys), position


def _write_find_coordinator_request(out: bytearray, message: FindCoordinatorRequest, version: int) -> None:
    flexible = version >= 3
    if version <= 3:
        if flexible:
            write_compact_string(out, message.key)
        else:
            write_string(out, message.key)
    if version >= 1:
        out += _INT8.pack(message.key_type)
    if version >= 4:
        if flexible:
            write_compact_array_length(out, len(message.coordinator_keys))
        else:
            write_array_length(out, len(message.coordinator_keys))
        for text in message.coordinator_keys:
            if flexible:
                write_compact_string(out, text)
            else:
                write_string(out, text)
    if flexible:
        out += b"\x00"


def read_find_coordinator_request(
    buffer: memoryview, position: int, version: int
) -> tuple[FindCoordinatorRequest, int]:
    """Read a FindCoordinatorRequest. Raises MalformedRequest."""
    try:
        return _read_find_coordinator_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("FindCoordinatorRequest") from error


def write_find_coordinator_request(out: bytearray, message: FindCoordinatorRequest, version: int) -> None:
    """Append a FindCoordinatorRequest to `out`."""
    _write_find_coordinator_request(out, message, version)


def _read_coordinator(buffer: memoryview, position: int, version: int) -> tuple[Coordinator, int]:
    key, position = read_compact_string(buffer, position)
    (node_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    host, position = read_compact_string(buffer, position)
    port, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return Coordinator(
        key=key, node_id=node_id, host=host, port=port, error_code=error_code, error_message=error_message
    ), position


def _write_coordinator(out: bytearray, message: Coordinator, version: int) -> None:
    write_compact_string(out, message.key)
    out += _INT32.pack(message.node_id)
    write_compact_string(out, message.host)
    out += _INT32_INT16.pack(message.port, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def _read_find_coordinator_response(
    buffer: memoryview, position: int, version: int
) -> tuple[FindCoordinatorResponse, int]:
    flexible = version >= 3
    throttle_time_ms: int = 0
    if version >= 1:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    error_code: int = 0
    if version <= 3:
        (error_code,) = _INT16.unpack_from(buffer, position)
        position += 2
    error_message: str | None = None
    if 1 <= version <= 3:
        error_message, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    node_id: int = 0
    host: str = ""
    port: int = 0
    if version <= 3:
        (node_id,) = _INT32.unpack_from(buffer, position)
        position += 4
        host, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
        (port,) = _INT32.unpack_from(buffer, position)
        position += 4
    coordinators: list[Coordinator] = []
    if version >= 4:
        count, position = (
            read_compact_array_length(buffer, position, 13) if flexible else read_array_length(buffer, position, 13)
        )
        coordinators = []
        for _ in range(count):
            coordinator, position = _read_coordinator(buffer, position, version)
            coordinators.append(coordinator)
    if flexible:
        position = skip_tags(buffer, position)
    return FindCoordinatorResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        node_id=node_id,
        host=host,
        port=port,
        coordinators=coordinators,
    ), position


def _write_find_coordinator_response(out: bytearray, message: FindCoordinatorResponse, version: int) -> None:
    flexible = version >= 3
    if version >= 1:
        out += _INT32.pack(message.throttle_time_ms)
    if version <= 3:
        out += _INT16.pack(message.error_code)
    if 1 <= version <= 3:
        if flexible:
            write_compact_nullable_string(out, message.error_message)
        else:
            write_nullable_string(out, message.error_message)
    if version <= 3:
        out += _INT32.pack(message.node_id)
        if flexible:
            write_compact_string(out, message.host)
        else:
            write_string(out, message.host)
        out += _INT32.pack(message.port)
    if version >= 4:
        if flexible:
            write_compact_array_length(out, len(message.coordinators))
        else:
            write_array_length(out, len(message.coordinators))
        for coordinator in message.coordinators:
            _write_coordinator(out, coordinator, version)
    if flexible:
        out += b"\x00"


def read_find_coordinator_response(
    buffer: memoryview, position: int, version: int
) -> tuple[FindCoordinatorResponse, int]:
    """Read a FindCoordinatorResponse. Raises MalformedRequest."""
    try:
        return _read_find_coordinator_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("FindCoordinatorResponse") from error


def write_find_coordinator_response(out: bytearray, message: FindCoordinatorResponse, version: int) -> None:
    """Append a FindCoordinatorResponse to `out`."""
    _write_find_coordinator_response(out, message, version)
