"""Messages of create delegation token. Written by tools/generate_messages.py: do not edit."""

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
_INT64 = Struct(">q")
_INT64_INT64_INT64 = Struct(">qqq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatableRenewers(Structure):
    """Versions 1 to 3."""

    principal_type: str = ""
    principal_name: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreateDelegationTokenRequest(Structure):
    """Versions 1 to 3."""

    owner_principal_type: str | None = ""  # from version 3 on
    owner_principal_name: str | None = ""  # from version 3 on
    renewers: list[CreatableRenewers] = field(default_factory=list)
    max_lifetime_ms: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreateDelegationTokenResponse(Structure):
    """Versions 1 to 3."""

    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""  # from version 3 on
    token_requester_principal_name: str = ""  # from version 3 on
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0


def _read_creatable_renewers(buffer: memoryview, position: int, version: int) -> tuple[CreatableRenewers, int]:
    flexible = version >= 2
    principal_type, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    principal_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return CreatableRenewers(principal_type=principal_type, principal_name=principal_name), position


def _write_creatable_renewers(out: bytearray, message: CreatableRenewers, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_string(out, message.principal_type)
    else:
        write_string(out, message.principal_type)
    if flexible:
        write_compact_string(out, message.principal_name)
    else:
        write_string(out, message.principal_name)
    if flexible:
        out += b"\x00"


def _read_create_delegation_token_request(
    buffer: memoryview, position: int, version: int
) -> tuple[CreateDelegationTokenRequest, int]:
    flexible = version >= 2
    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    if version >= 3:
        owner_principal_type, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
        owner_principal_name, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    renewers: list[CreatableRenewers] = []
    for _ in range(count):
        creatable_renewers, position = _read_creatable_renewers(buffer, position, version)
        renewers.append(creatable_renewers)
    (max_lifetime_ms,) = _INT64.unpack_from(buffer, position)
    position += 8
    if flexible:
        position = skip_tags(buffer, position)
    return CreateDelegationTokenRequest(
        owner_principal_type=owner_principal_type,
        owner_principal_name=owner_principal_name,
        renewers=renewers,
        max_lifetime_ms=max_lifetime_ms,
    ), position


def _write_create_delegation_token_request(out: bytearray, message: CreateDelegationTokenRequest, version: int) -> None:
    flexible = version >= 2
    if version >= 3:
        if flexible:
            write_compact_nullable_string(out, message.owner_principal_type)
        else:
            write_nullable_string(out, message.owner_principal_type)
        if flexible:
            write_compact_nullable_string(out, message.owner_principal_name)
        else:
            write_nullable_string(out, message.owner_principal_name)
    if flexible:
        write_compact_array_length(out, len(message.renewers))
    else:
        write_array_length(out, len(message.renewers))
    for creatable_renewers in message.renewers:
        _write_creatable_renewers(out, creatable_renewers, version)
    out += _INT64.pack(message.max_lifetime_ms)
    if flexible:
        out += b"\x00"


def read_create_delegation_token_request(
    buffer: memoryview, position: int, version: int
) -> tuple[CreateDelegationTokenRequest, int]:
    """Read a CreateDelegationTokenRequest. Raises MalformedRequest."""
    try:
        return _read_create_delegation_token_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("CreateDelegationTokenRequest") from error


def write_create_delegation_token_request(out: bytearray, message: CreateDelegationTokenRequest, version: int) -> None:
    """Append a CreateDelegationTokenRequest to `out`."""
    _write_create_delegation_token_request(out, message, version)


def _read_create_delegation_token_response(
    buffer: memoryview, position: int, version: int
) -> tuple[CreateDelegationTokenResponse, int]:
    flexible = version >= 2
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    principal_type, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    principal_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    if version >= 3:
        token_requester_principal_type, position = (
            read_compact_string(buffer, position) if flexible else read_string(buffer, position)
        )
        token_requester_principal_name, position = (
            read_compact_string(buffer, position) if flexible else read_string(buffer, position)
        )
    issue_timestamp_ms, expiry_timestamp_ms, max_timestamp_ms = _INT64_INT64_INT64.unpack_from(buffer, position)
    position += 24
    token_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    hmac, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    if flexible:
        position = skip_tags(buffer, position)
    return CreateDelegationTokenResponse(
        error_code=error_code,
        principal_type=principal_type,
        principal_name=principal_name,
        token_requester_principal_type=token_requester_principal_type,
        token_requester_principal_name=token_requester_principal_name,
        issue_timestamp_ms=issue_timestamp_ms,
        expiry_timestamp_ms=expiry_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        token_id=token_id,
        hmac=hmac,
        throttle_time_ms=throttle_time_ms,
    ), position


def _write_create_delegation_token_response(
    out: bytearray, message: CreateDelegationTokenResponse, version: int
) -> None:
    flexible = version >= 2
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_string(out, message.principal_type)
    else:
        write_string(out, message.principal_type)
    if flexible:
        write_compact_string(out, message.principal_name)
    else:
        write_string(out, message.principal_name)
    if version >= 3:
        if flexible:
            write_compact_string(out, message.token_requester_principal_type)
        else:
            write_string(out, message.token_requester_principal_type)
        if flexible:
            write_compact_string(out, message.token_requester_principal_name)
        else:
            write_string(out, message.token_requester_principal_name)
    out += _INT64_INT64_INT64.pack(message.issue_timestamp_ms, message.expiry_timestamp_ms, message.max_timestamp_ms)
    if flexible:
        write_compact_string(out, message.token_id)
    else:
        write_string(out, message.token_id)
    if flexible:
        write_compact_bytes(out, message.hmac)
    else:
        write_bytes(out, message.hmac)
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        out += b"\x00"


def read_create_delegation_token_response(
    buffer: memoryview, position: int, version: int
) -> tuple[CreateDelegationTokenResponse, int]:
    """Read a CreateDelegationTokenResponse. Raises MalformedRequest."""
    try:
        return _read_create_delegation_token_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("CreateDelegationTokenResponse") from error


def write_create_delegation_token_response(
    out: bytearray, message: CreateDelegationTokenResponse, version: int
) -> None:
    """Append a CreateDelegationTokenResponse to `out`."""
    _write_create_delegation_token_response(out, message, version)
