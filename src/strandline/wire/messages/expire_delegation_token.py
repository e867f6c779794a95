"""Messages of expire delegation token. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_bytes,
    read_compact_bytes,
    skip_tags,
    truncated,
    write_bytes,
    write_compact_bytes,
)
from strandline.wire.structure import Structure

_INT16_INT64_INT32 = Struct(">hqi")
_INT64 = Struct(">q")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ExpireDelegationTokenRequest(Structure):
    """Versions 1 to 2."""

    hmac: bytes = b""
    expiry_time_period_ms: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ExpireDelegationTokenResponse(Structure):
    """Versions 1 to 2."""

    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0


def _read_expire_delegation_token_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ExpireDelegationTokenRequest, int]:
    flexible = version >= 2
    hmac, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    (expiry_time_period_ms,) = _INT64.unpack_from(buffer, position)
    position += 8
    if flexible:
        position = skip_tags(buffer, position)
    return ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=expiry_time_period_ms), position


def _write_expire_delegation_token_request(out: bytearray, message: ExpireDelegationTokenRequest, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_bytes(out, message.hmac)
    else:
        write_bytes(out, message.hmac)
    out += _INT64.pack(message.expiry_time_period_ms)
    if flexible:
        out += b"\x00"


def read_expire_delegation_token_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ExpireDelegationTokenRequest, int]:
    """Read a ExpireDelegationTokenRequest. Raises MalformedRequest."""
    try:
        return _read_expire_delegation_token_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ExpireDelegationTokenRequest") from error


def write_expire_delegation_token_request(out: bytearray, message: ExpireDelegationTokenRequest, version: int) -> None:
    """Append a ExpireDelegationTokenRequest to `out`."""
    _write_expire_delegation_token_request(out, message, version)


def _read_expire_delegation_token_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ExpireDelegationTokenResponse, int]:
    flexible = version >= 2
    error_code, expiry_timestamp_ms, throttle_time_ms = _INT16_INT64_INT32.unpack_from(buffer, position)
    position += 14
    if flexible:
        position = skip_tags(buffer, position)
    return ExpireDelegationTokenResponse(
        error_code=error_code, expiry_timestamp_ms=expiry_timestamp_ms, throttle_time_ms=throttle_time_ms
    ), position


def _write_expire_delegation_token_response(
    out: bytearray, message: ExpireDelegationTokenResponse, version: int
) -> None:
    flexible = version >= 2
    out += _INT16_INT64_INT32.pack(message.error_code, message.expiry_timestamp_ms, message.throttle_time_ms)
    if flexible:
        out += b"\x00"


def read_expire_delegation_token_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ExpireDelegationTokenResponse, int]:
    """Read a ExpireDelegationTokenResponse. Raises MalformedRequest."""
    try:
        return _read_expire_delegation_token_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ExpireDelegationTokenResponse") from error


def write_expire_delegation_token_response(
    out: bytearray, message: ExpireDelegationTokenResponse, version: int
) -> None:
    """Append a ExpireDelegationTokenResponse to `out`."""
    _write_expire_delegation_token_response(out, message, version)
