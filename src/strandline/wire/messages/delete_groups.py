"""Messages of delete groups. Written by tools/generate_messages.py: do not edit."""

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

_INT16 = Struct(">h")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteGroupsRequest(Structure):
    """Versions 0 to 2."""

    groups_names: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeletableGroupResult(Structure):
    """Versions 0 to 2."""

    group_id: str = ""
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteGroupsResponse(Structure):
    """Versions 0 to 2."""

    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = field(default_factory=list)


def _read_delete_groups_request(buffer: memoryview, position: int, version: int) -> tuple[DeleteGroupsRequest, int]:
    flexible = version >= 2
    count, position = (
        read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
    )
    groups_names: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
        groups_names.append(text)
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteGroupsRequest(groups_names=groups_names), position


def _write_delete_groups_request(out: bytearray, message: DeleteGroupsRequest, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_array_length(out, len(message.groups_names))
    else:
        write_array_length(out, len(message.groups_names))
    for text in message.groups_names:
        if flexible:
            write_compact_string(out, text)
        else:
            write_string(out, text)
    if flexible:
        out += b"\x00"


def read_delete_groups_request(buffer: memoryview, position: int, version: int) -> tuple[DeleteGroupsRequest, int]:
    """Read a DeleteGroupsRequest. Raises MalformedRequest."""
    try:
        return _read_delete_groups_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteGroupsRequest") from error


def write_delete_groups_request(out: bytearray, message: DeleteGroupsRequest, version: int) -> None:
    """Append a DeleteGroupsRequest to `out`."""
    _write_delete_groups_request(out, message, version)


def _read_deletable_group_result(buffer: memoryview, position: int, version: int) -> tuple[DeletableGroupResult, int]:
    flexible = version >= 2
    group_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    if flexible:
        position = skip_tags(buffer, position)
    return DeletableGroupResult(group_id=group_id, error_code=error_code), position


def _write_deletable_group_result(out: bytearray, message: DeletableGroupResult, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.group_id)
    else:
        write_string(out, message.group_id)
    out += _INT16.pack(message.error_code)
    if flexible:
        out += b"\x00"


def _read_delete_groups_response(buffer: memoryview, position: int, version: int) -> tuple[DeleteGroupsResponse, int]:
    flexible = version >= 2
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 3) if flexible else read_array_length(buffer, position, 3)
    )
    results: list[DeletableGroupResult] = []
    for _ in range(count):
        deletable_group_result, position = _read_deletable_group_result(buffer, position, version)
        results.append(deletable_group_result)
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteGroupsResponse(throttle_time_ms=throttle_time_ms, results=results), position


def _write_delete_groups_response(out: bytearray, message: DeleteGroupsResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.results))
    else:
        write_array_length(out, len(message.results))
    for deletable_group_result in message.results:
        _write_deletable_group_result(out, deletable_group_result, version)
    if flexible:
        out += b"\x00"


def read_delete_groups_response(buffer: memoryview, position: int, version: int) -> tuple[DeleteGroupsResponse, int]:
    """Read a DeleteGroupsResponse. Raises MalformedRequest."""
    try:
        return _read_delete_groups_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteGroupsResponse") from error


def write_delete_groups_response(out: bytearray, message: DeleteGroupsResponse, version: int) -> None:
    """Append a DeleteGroupsResponse to `out`."""
    _write_delete_groups_response(out, message, version)
