"""Messages of describe acls. Written by tools/generate_messages.py: do not edit."""

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
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeAclsRequest(Structure):
    """Versions 1 to 3."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AclDescription(Structure):
    """Versions 1 to 3."""

    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeAclsResource(Structure):
    """Versions 1 to 3."""

    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: list[AclDescription] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeAclsResponse(Structure):
    """Versions 1 to 3."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    resources: list[DescribeAclsResource] = field(default_factory=list)


def _read_describe_acls_request(buffer: memoryview, position: int, version: int) -> tuple[DescribeAclsRequest, int]:
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
    return DescribeAclsRequest(
        resource_type_filter=resource_type_filter,
        resource_name_filter=resource_name_filter,
        pattern_type_filter=pattern_type_filter,
        principal_filter=principal_filter,
        host_filter=host_filter,
        operation=operation,
        permission_type=permission_type,
    ), position


def _write_describe_acls_request(out: bytearray, message: DescribeAclsRequest, version: int) -> None:
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


def read_describe_acls_request(buffer: memoryview, position: int, version: int) -> tuple[DescribeAclsRequest, int]:
    """Read a DescribeAclsRequest. Raises MalformedRequest."""
    try:
        return _read_describe_acls_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeAclsRequest") from error


def write_describe_acls_request(out: bytearray, message: DescribeAclsRequest, version: int) -> None:
    """Append a DescribeAclsRequest to `out`."""
    _write_describe_acls_request(out, message, version)


def _read_acl_description(buffer: memoryview, position: int, version: int) -> tuple[AclDescription, int]:
    flexible = version >= 2
    principal, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    host, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    operation, permission_type = _INT8_INT8.unpack_from(buffer, position)
    position += 2
    if flexible:
        position = skip_tags(buffer, position)
    return AclDescription(
        principal=principal, host=host, operation=operation, permission_type=permission_type
    ), position


def _write_acl_description(out: bytearray, message: AclDescription, version: int) -> None:
    flexible = version >= 2
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


def _read_describe_acls_resource(buffer: memoryview, position: int, version: int) -> tuple[DescribeAclsResource, int]:
    flexible = version >= 2
    (resource_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    resource_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (pattern_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    acls: list[AclDescription] = []
    for _ in range(count):
        acl_description, position = _read_acl_description(buffer, position, version)
        acls.append(acl_description)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeAclsResource(
        resource_type=resource_type, resource_name=resource_name, pattern_type=pattern_type, acls=acls
    ), position


def _write_describe_acls_resource(out: bytearray, message: DescribeAclsResource, version: int) -> None:
    flexible = version >= 2
    out += _INT8.pack(message.resource_type)
    if flexible:
        write_compact_string(out, message.resource_name)
    else:
        write_string(out, message.resource_name)
    out += _INT8.pack(message.pattern_type)
    if flexible:
        write_compact_array_length(out, len(message.acls))
    else:
        write_array_length(out, len(message.acls))
    for acl_description in message.acls:
        _write_acl_description(out, acl_description, version)
    if flexible:
        out += b"\x00"


def _read_describe_acls_response(buffer: memoryview, position: int, version: int) -> tuple[DescribeAclsResponse, int]:
    flexible = version >= 2
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    resources: list[DescribeAclsResource] = []
    for _ in range(count):
        describe_acls_resource, position = _read_describe_acls_resource(buffer, position, version)
        resources.append(describe_acls_resource)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeAclsResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, error_message=error_message, resources=resources
    ), position


def _write_describe_acls_response(out: bytearray, message: DescribeAclsResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    if flexible:
        write_compact_array_length(out, len(message.resources))
    else:
        write_array_length(out, len(message.resources))
    for describe_acls_resource in message.resources:
        _write_describe_acls_resource(out, describe_acls_resource, version)
    if flexible:
        out += b"\x00"


def read_describe_acls_response(buffer: memoryview, position: int, version: int) -> tuple[DescribeAclsResponse, int]:
    """Read a DescribeAclsResponse. Raises MalformedRequest."""
    try:
        return _read_describe_acls_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeAclsResponse") from error


def write_describe_acls_response(out: bytearray, message: DescribeAclsResponse, version: int) -> None:
    """Append a DescribeAclsResponse to `out`."""
    _write_describe_acls_response(out, message, version)
