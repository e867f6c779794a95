"""Messages of list groups. Written by tools/generate_messages.py: do not edit."""

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
class ListGroupsRequest(Structure):
    """Versions 0 to 5."""

    states_filter: list[str] = field(default_factory=list)  # from version 4 on
    types_filter: list[str] = field(default_factory=list)  # from version 5 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListedGroup(Structure):
    """Versions 0 to 5."""

    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""  # from version 4 on
    group_type: str = ""  # from version 5 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListGroupsResponse(Structure):
    """Versions 0 to 5."""

    throttle_time_ms: int = 0  # from version 1 on
    error_code: int = 0
    groups: list[ListedGroup] = field(default_factory=list)


def _read_list_groups_request(buffer: memoryview, position: int, version: int) -> tuple[ListGroupsRequest, int]:
    flexible = version >= 3
    states_filter: list[str] = []
    if version >= 4:
        count, position = (
            read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
        )
        states_filter = []
        for _ in range(count):
            text, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
            states_filter.append(text)
    types_filter: list[str] = []
    if version >= 5:
        count, position = (
            read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
        )
        types_filter = []
        for _ in range(count):
            text, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
            types_filter.append(text)
    if flexible:
        position = skip_tags(buffer, position)
    return ListGroupsRequest(states_filter=states_filter, types_filter=types_filter), position


def _write_list_groups_request(out: bytearray, message: ListGroupsRequest, version: int) -> None:
    flexible = version >= 3
    if version >= 4:
        if flexible:
            write_compact_array_length(out, len(message.states_filter))
        else:
            write_array_length(out, len(message.states_filter))
        for text in message.states_filter:
            if flexible:
                write_compact_string(out, text)
            else:
                write_string(out, text)
    if version >= 5:
        if flexible:
            write_compact_array_length(out, len(message.types_filter))
        else:
            write_array_length(out, len(message.types_filter))
        for text in message.types_filter:
            if flexible:
                write_compact_string(out, text)
            else:
                write_string(out, text)
    if flexible:
        out += b"\x00"


def read_list_groups_request(buffer: memoryview, position: int, version: int) -> tuple[ListGroupsRequest, int]:
    """Read a ListGroupsRequest. Raises MalformedRequest."""
    try:
        return _read_list_groups_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ListGroupsRequest") from error


def write_list_groups_request(out: bytearray, message: ListGroupsRequest, version: int) -> None:
    """Append a ListGroupsRequest to `out`."""
    _write_list_groups_request(out, message, version)


def _read_listed_group(buffer: memoryview, position: int, version: int) -> tuple[ListedGroup, int]:
    flexible = version >= 3
    group_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    protocol_type, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    group_state: str = ""
    if version >= 4:
        group_state, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    group_type: str = ""
    if version >= 5:
        group_type, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return ListedGroup(
        group_id=group_id, protocol_type=protocol_type, group_state=group_state, group_type=group_type
    ), position


def _write_listed_group(out: bytearray, message: ListedGroup, version: int) -> None:
    flexible = version >= 3
    if flexible:
        write_compact_string(out, message.group_id)
    else:
        write_string(out, message.group_id)
    if flexible:
        write_compact_string(out, message.protocol_type)
    else:
        write_string(out, message.protocol_type)
    if version >= 4:
        if flexible:
            write_compact_string(out, message.group_state)
        else:
            write_string(out, message.group_state)
    if version >= 5:
        if flexible:
            write_compact_string(out, message.group_type)
        else:
            write_string(out, message.group_type)
    if flexible:
        out += b"\x00"


def _read_list_groups_response(buffer: memoryview, position: int, version: int) -> tuple[ListGroupsResponse, int]:
    flexible = version >= 3
    throttle_time_ms: int = 0
    if version >= 1:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    groups: list[ListedGroup] = []
    for _ in range(count):
        listed_group, position = _read_listed_group(buffer, position, version)
        groups.append(listed_group)
    if flexible:
        position = skip_tags(buffer, position)
    return ListGroupsResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, groups=groups), position


def _write_list_groups_response(out: bytearray, message: ListGroupsResponse, version: int) -> None:
    flexible = version >= 3
    if version >= 1:
        out += _INT32.pack(message.throttle_time_ms)
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_array_length(out, len(message.groups))
    else:
        write_array_length(out, len(message.groups))
    for listed_group in message.groups:
        _write_listed_group(out, listed_group, version)
    if flexible:
        out += b"\x00"


def read_list_groups_response(buffer: memoryview, position: int, version: int) -> tuple[ListGroupsResponse, int]:
    """Read a ListGroupsResponse. Raises MalformedRequest."""
    try:
        return _read_list_groups_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ListGroupsResponse") from error


def write_list_groups_response(out: bytearray, message: ListGroupsResponse, version: int) -> None:
    """Append a ListGroupsResponse to `out`."""
    _write_list_groups_response(out, message, version)
