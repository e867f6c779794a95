"""Messages of describe delegation token. Written by tools/generate_messages.py: do not edit."""

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
    read_compact_nullable_array_length,
    read_compact_string,
    read_nullable_array_length,
    read_string,
    skip_tags,
    truncated,
    write_array_length,
    write_bytes,
    write_compact_array_length,
    write_compact_bytes,
    write_compact_string,
    write_string,
)
from strandline.wire.structure import Structure

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64_INT64_INT64 = Struct(">qqq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeDelegationTokenOwner(Structure):
    """Versions 1 to 3."""

    principal_type: str = ""
    principal_name: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeDelegationTokenRequest(Structure):
    """Versions 1 to 3."""

    owners: list[DescribeDelegationTokenOwner] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribedDelegationTokenRenewer(Structure):
    """Versions 1 to 3."""

    principal_type: str = ""
    principal_name: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribedDelegationToken(Structure):
    """Versions 1 to 3."""

    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""  # from version 3 on
    token_requester_principal_name: str = ""  # from version 3 on
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeDelegationTokenResponse(Structure):
    """Versions 1 to 3."""

    error_code: int = 0
    tokens: list[DescribedDelegationToken] = field(default_factory=list)
    throttle_time_ms: int = 0


def _read_describe_delegation_token_owner(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeDelegationTokenOwner, int]:
    flexible = version >= 2
    principal_type, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    principal_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeDelegationTokenOwner(principal_type=principal_type, principal_name=principal_name), position


def _write_describe_delegation_token_owner(out: bytearray, message: DescribeDelegationTokenOwner, version: int) -> None:
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


def _read_describe_delegation_token_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeDelegationTokenRequest, int]:
    flexible = version >= 2
    count, position = (
        read_compact_nullable_array_length(buffer, position, 2)
        if flexible
        else read_nullable_array_length(buffer, position, 2)
    )
    owners: list[DescribeDelegationTokenOwner] | None = None
    if count >= 0:
        owners = []
        for _ in range(count):
            describe_delegation_token_owner, position = _read_describe_delegation_token_owner(buffer, position, version)
            owners.append(describe_delegation_token_owner)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeDelegationTokenRequest(owners=owners), position


def _write_describe_delegation_token_request(
    out: bytearray, message: DescribeDelegationTokenRequest, version: int
) -> None:
    flexible = version >= 2
    if message.owners is None:
        if flexible:
            write_compact_array_length(out, -1)
        else:
            write_array_length(out, -1)
    else:
        if flexible:
            write_compact_array_length(out, len(message.owners))
        else:
            write_array_length(out, len(message.owners))
        for describe_delegation_token_owner in message.owners:
            _write_describe_delegation_token_owner(out, describe_delegation_token_owner, version)
    if flexible:
        out += b"\x00"


def read_describe_delegation_token_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeDelegationTokenRequest, int]:
    """Read a DescribeDelegationTokenRequest. Raises MalformedRequest."""
    try:
        return _read_describe_delegation_token_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeDelegationTokenRequest") from error


def write_describe_delegation_token_request(
    out: bytearray, message: DescribeDelegationTokenRequest, version: int
) -> None:
    """Append a DescribeDelegationTokenRequest to `out`."""
    _write_describe_delegation_token_request(out, message, version)


def _read_described_delegation_token_renewer(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribedDelegationTokenRenewer, int]:
    flexible = version >= 2
    principal_type, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    principal_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribedDelegationTokenRenewer(principal_type=principal_type, principal_name=principal_name), position


def _write_described_delegation_token_renewer(
    out: bytearray, message: DescribedDelegationTokenRenewer, version: int
) -> None:
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


def _read_described_delegation_token(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribedDelegationToken, int]:
    flexible = version >= 2
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
    issue_timestamp, expiry_timestamp, max_timestamp = _INT64_INT64_INT64.unpack_from(buffer, position)
    position += 24
    token_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    hmac, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    renewers: list[DescribedDelegationTokenRenewer] = []
    for _ in range(count):
        described_delegation_token_renewer, position = _read_described_delegation_token_renewer(
            buffer, position, version
        )
        renewers.append(described_delegation_token_renewer)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribedDelegationToken(
        principal_type=principal_type,
        principal_name=principal_name,
        token_requester_principal_type=token_requester_principal_type,
        token_requester_principal_name=token_requester_principal_name,
        issue_timestamp=issue_timestamp,
        expiry_timestamp=expiry_timestamp,
        max_timestamp=max_timestamp,
        token_id=token_id,
        hmac=hmac,
        renewers=renewers,
    ), position


def _write_described_delegation_token(out: bytearray, message: DescribedDelegationToken, version: int) -> None:
    flexible = version >= 2
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
    out += _INT64_INT64_INT64.pack(message.issue_timestamp, message.expiry_timestamp, message.max_timestamp)
    if flexible:
        write_compact_string(out, message.token_id)
    else:
        write_string(out, message.token_id)
    if flexible:
        write_compact_bytes(out, message.hmac)
    else:
        write_bytes(out, message.hmac)
    if flexible:
        write_compact_array_length(out, len(message.renewers))
    else:
        write_array_length(out, len(message.renewers))
    for described_delegation_token_renewer in message.renewers:
        _write_described_delegation_token_renewer(out, described_delegation_token_renewer, version)
    if flexible:
        out += b"\x00"


def _read_describe_delegation_token_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeDelegationTokenResponse, int]:
    flexible = version >= 2
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    count, position = (
        read_compact_array_length(buffer, position, 29) if flexible else read_array_length(buffer, position, 29)
    )
    tokens: list[DescribedDelegationToken] = []
    for _ in range(count):
        described_delegation_token, position = _read_described_delegation_token(buffer, position, version)
        tokens.append(described_delegation_token)
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeDelegationTokenResponse(
        error_code=error_code, tokens=tokens, throttle_time_ms=throttle_time_ms
    ), position


def _write_describe_delegation_token_response(
    out: bytearray, message: DescribeDelegationTokenResponse, version: int
) -> None:
    flexible = version >= 2
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_array_length(out, len(message.tokens))
    else:
        write_array_length(out, len(message.tokens))
    for described_delegation_token in message.tokens:
        _write_described_delegation_token(out, described_delegation_token, version)
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        out += b"\x00"


def read_describe_delegation_token_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeDelegationTokenResponse, int]:
    """Read a DescribeDelegationTokenResponse. Raises MalformedRequest."""
    try:
        return _read_describe_delegation_token_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeDelegationTokenResponse") from error


def write_describe_delegation_token_response(
    out: bytearray, message: DescribeDelegationTokenResponse, version: int
) -> None:
    """Append a DescribeDelegationTokenResponse to `out`."""
    _write_describe_delegation_token_response(out, message, version)
