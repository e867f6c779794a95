"""Messages of delete acls. Written by tools/generate_messages.py: do not edit."""

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
_INT8_INT8 = Struct(">bb")
_INT16 = Struct(">h")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteAclsFilter(Structure):
    """Versions 1 to 3."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteAclsRequest(Structure):
    """Versions 1 to 3."""

    filters: list[DeleteAclsFilter] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteAclsMatchingAcl(Structure):
    """Versions 1 to 3."""

    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteAclsFilterResult(Structure):
    """Versions 1 to 3."""

    error_code: int = 0
    error_message: str | None = None
    matching_acls: list[DeleteAclsMatchingAcl] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DeleteAclsResponse(Structure):
    """Versions 1 to 3."""

    throttle_time_ms: int = 0
    filter_results: list[DeleteAclsFilterResult] = field(default_factory=list)


def _read_delete_acls_filter(buffer: memoryview, position: int, version: int) -> tuple[DeleteAclsFilter, int]:
    flexible = version >= 2
    (resource_type_filter,) = _INT8.unpack_from(buffer, position)
    position += 1
    resource_name_filter, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    (pattern_type_filter,) = _INT8.unpack_from(buffer, position)
    position += 1
    principal_filter, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    host_filter, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    operation, permission_type = _INT8_INT8.unpack_from(buffer, position)
    position += 2
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteAclsFilter(
        resource_type_filter=resource_type_filter,
        resource_name_filter=resource_name_filter,
        pattern_type_filter=pattern_type_filter,
        principal_filter=principal_filter,
        host_filter=host_filter,
        operation=operation,
        permission_type=permission_type,
    ), position


def _write_delete_acls_filter(out: bytearray, message: DeleteAclsFilter, version: int) -> None:
    flexible = version >= 2
    out += _INT8.pack(message.resource_type_filter)
    if flexible:
        write_compact_nullable_string(out, message.resource_name_filter)
    else:
        write_nullable_string(out, message.resource_name_filter)
    out += _INT8.pack(message.pattern_type_filter)
    if flexible:
        write_compact_nullable_string(out, message.principal_filter)
    else:
        write_nullable_string(out, message.principal_filter)
    if flexible:
        write_compact_nullable_string(out, message.host_filter)
    else:
        write_nullable_string(out, message.host_filter)
    out += _INT8_INT8.pack(message.operation, message.permission_type)
    if flexible:
        out += b"\x00"


def _read_delete_acls_request(buffer: memoryview, position: int, version: int) -> tuple[DeleteAclsRequest, int]:
    flexible = version >= 2
    count, position = (
        read_compact_array_length(buffer, position, 7) if flexible else read_array_length(buffer, position, 7)
    )
    filters: list[DeleteAclsFilter] = []
    for _ in range(count):
        delete_acls_filter, position = _read_delete_acls_filter(buffer, position, version)
        filters.append(delete_acls_filter)
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteAclsRequest(filters=filters), position


def _write_delete_acls_request(out: bytearray, message: DeleteAclsRequest, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_array_length(out, len(message.filters))
    else:
        write_array_length(out, len(message.filters))
    for delete_acls_filter in message.filters:
        _write_delete_acls_filter(out, delete_acls_filter, version)
    if flexible:
        out += b"\x00"


def read_delete_acls_request(buffer: memoryview, position: int, version: int) -> tuple[DeleteAclsRequest, int]:
    """Read a DeleteAclsRequest. Raises MalformedRequest."""
    try:
        return _read_delete_acls_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteAclsRequest") from error


def write_delete_acls_request(out: bytearray, message: DeleteAclsRequest, version: int) -> None:
    """Append a DeleteAclsRequest to `out`."""
    _write_delete_acls_request(out, message, version)


def _read_delete_acls_matching_acl(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteAclsMatchingAcl, int]:
    flexible = version >= 2
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    (resource_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    resource_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (pattern_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    principal, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    host, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    operation, permission_type = _INT8_INT8.unpack_from(buffer, position)
    position += 2
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteAclsMatchingAcl(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
        pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    ), position


def _write_delete_acls_matching_acl(out: bytearray, message: DeleteAclsMatchingAcl, version: int) -> None:
    flexible = version >= 2
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    out += _INT8.pack(message.resource_type)
    if flexible:
        write_compact_string(out, message.resource_name)
    else:
        write_string(out, message.resource_name)
    out += _INT8.pack(message.pattern_type)
    if flexible:
        write_compact_string(out, message.principal)
    else:
        write_string(out, message.principal)
    if flexible:
        write_compact_string(out, message.host)
    else:
        write_string(out, message.host)
    out += _INT8_INT8.pack(message.operation, message.permission_type)
    if flexible:
        out += b"\x00"


def _read_delete_acls_filter_result(
    buffer: memoryview, position: int, version: int
) -> tuple[DeleteAclsFilterResult, int]:
    flexible = version >= 2
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    count, position = (
        read_compact_array_length(buffer, position, 10) if flexible else read_array_length(buffer, position, 10)
    )
    matching_acls: list[DeleteAclsMatchingAcl] = []
    for _ in range(count):
        delete_acls_matching_acl, position = _read_delete_acls_matching_acl(buffer, position, version)
        matching_acls.append(delete_acls_matching_acl)
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteAclsFilterResult(
        error_code=error_code, error_message=error_message, matching_acls=matching_acls
    ), position


def _write_delete_acls_filter_result(out: bytearray, message: DeleteAclsFilterResult, version: int) -> None:
    flexible = version >= 2
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    if flexible:
        write_compact_array_length(out, len(message.matching_acls))
    else:
        write_array_length(out, len(message.matching_acls))
    for delete_acls_matching_acl in message.matching_acls:
        _write_delete_acls_matching_acl(out, delete_acls_matching_acl, version)
    if flexible:
        out += b"\x00"


def _read_delete_acls_response(buffer: memoryview, position: int, version: int) -> tuple[DeleteAclsResponse, int]:
    flexible = version >= 2
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    filter_results: list[DeleteAclsFilterResult] = []
    for _ in range(count):
        delete_acls_filter_result, position = _read_delete_acls_filter_result(buffer, position, version)
        filter_results.append(delete_acls_filter_result)
    if flexible:
        position = skip_tags(buffer, position)
    return DeleteAclsResponse(throttle_time_ms=throttle_time_ms, filter_results=filter_results), position


def _write_delete_acls_response(out: bytearray, message: DeleteAclsResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.filter_results))
    else:
        write_array_length(out, len(message.filter_results))
    for delete_acls_filter_result in message.filter_results:
        _write_delete_acls_filter_result(out, delete_acls_filter_result, version)
    if flexible:
        out += b"\x00"


def read_delete_acls_response(buffer: memoryview, position: int, version: int) -> tuple[DeleteAclsResponse, int]:
    """Read a DeleteAclsResponse. Raises MalformedRequest."""
    try:
        return _read_delete_acls_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DeleteAclsResponse") from error


def write_delete_acls_response(out: bytearray, message: DeleteAclsResponse, version: int) -> None:
    """Append a DeleteAclsResponse to `out`."""
    _write_delete_acls_response(out, message, version)
