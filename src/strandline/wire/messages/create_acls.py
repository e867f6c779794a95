"""Messages of create acls. Written by tools/generate_messages.py: do not edit."""

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
class AclCreation(Structure):
    """Versions 1 to 3."""

    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreateAclsRequest(Structure):
    """Versions 1 to 3."""

    creations: list[AclCreation] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AclCreationResult(Structure):
    """Versions 1 to 3."""

    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreateAclsResponse(Structure):
    """Versions 1 to 3."""

    throttle_time_ms: int = 0
    results: list[AclCreationResult] = field(default_factory=list)


def _read_acl_creation(buffer: memoryview, position: int, version: int) -> tuple[AclCreation, int]:
    flexible = version >= 2
    (resource_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    resource_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (resource_pattern_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    principal, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    host, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    operation, permission_type = _INT8_INT8.unpack_from(buffer, position)
    position += 2
    if flexible:
        position = skip_tags(buffer, position)
    return AclCreation(
        resource_type=resource_type,
        resource_name=resource_name,
        resource_pattern_type=resource_pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    ), position


def _write_acl_creation(out: bytearray, message: AclCreation, version: int) -> None:
    flexible = version >= 2
    out += _INT8.pack(message.resource_type)
    if flexible:
        write_compact_string(out, message.resource_name)
    else:
        write_string(out, message.resource_name)
    out += _INT8.pack(message.resource_pattern_type)
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


def _read_create_acls_request(buffer: memoryview, position: int, version: int) -> tuple[CreateAclsRequest, int]:
    flexible = version >= 2
    count, position = (
        read_compact_array_length(buffer, position, 7) if flexible else read_array_length(buffer, position, 7)
    )
    creations: list[AclCreation] = []
    for _ in range(count):
        acl_creation, position = _read_acl_creation(buffer, position, version)
        creations.append(acl_creation)
    if flexible:
        position = skip_tags(buffer, position)
    return CreateAclsRequest(creations=creations), position


def _write_create_acls_request(out: bytearray, message: CreateAclsRequest, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_array_length(out, len(message.creations))
    else:
        write_array_length(out, len(message.creations))
    for acl_creation in message.creations:
        _write_acl_creation(out, acl_creation, version)
    if flexible:
        out += b"\x00"


def read_create_acls_request(buffer: memoryview, position: int, version: int) -> tuple[CreateAclsRequest, int]:
    """Read a CreateAclsRequest. Raises MalformedRequest."""
    try:
        return _read_create_acls_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("CreateAclsRequest") from error


def write_create_acls_request(out: bytearray, message: CreateAclsRequest, version: int) -> None:
    """Append a CreateAclsRequest to `out`."""
    _write_create_acls_request(out, message, version)


def _read_acl_creation_result(buffer: memoryview, position: int, version: int) -> tuple[AclCreationResult, int]:
    flexible = version >= 2
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return AclCreationResult(error_code=error_code, error_message=error_message), position


def _write_acl_creation_result(out: bytearray, message: AclCreationResult, version: int) -> None:
    flexible = version >= 2
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    if flexible:
        out += b"\x00"


def _read_create_acls_response(buffer: memoryview, position: int, version: int) -> tuple[CreateAclsResponse, int]:
    flexible = version >= 2
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 3) if flexible else read_array_length(buffer, position, 3)
    )
    results: list[AclCreationResult] = []
    for _ in range(count):
        acl_creation_result, position = _read_acl_creation_result(buffer, position, version)
        results.append(acl_creation_result)
    if flexible:
        position = skip_tags(buffer, position)
    return CreateAclsResponse(throttle_time_ms=throttle_time_ms, results=results), position


def _write_create_acls_response(out: bytearray, message: CreateAclsResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.results))
    else:
        write_array_length(out, len(message.results))
    for acl_creation_result in message.results:
        _write_acl_creation_result(out, acl_creation_result, version)
    if flexible:
        out += b"\x00"


def read_create_acls_response(buffer: memoryview, position: int, version: int) -> tuple[CreateAclsResponse, int]:
    """Read a CreateAclsResponse. Raises MalformedRequest."""
    try:
        return _read_create_acls_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("CreateAclsResponse") from error


def write_create_acls_response(out: bytearray, message: CreateAclsResponse, version: int) -> None:
    """Append a CreateAclsResponse to `out`."""
    _write_create_acls_response(out, message, version)
