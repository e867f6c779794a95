"""Messages of sasl authenticate. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_bytes,
    read_compact_bytes,
    read_compact_nullable_string,
    read_nullable_string,
    skip_tags,
    truncated,
    write_bytes,
    write_compact_bytes,
    write_compact_nullable_string,
    write_nullable_string,
)
from strandline.wire.structure import Structure

_INT16 = Struct(">h")
_INT64 = Struct(">q")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class SaslAuthenticateRequest(Structure):
    """Versions 0 to 2."""

    auth_bytes: bytes = b""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class SaslAuthenticateResponse(Structure):
    """Versions 0 to 2."""

    error_code: int = 0
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0  # from version 1 on


def _read_sasl_authenticate_request(
    buffer: memoryview, position: int, version: int
) -> tuple[SaslAuthenticateRequest, int]:
    flexible = version >= 2
    auth_bytes, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return SaslAuthenticateRequest(auth_bytes=auth_bytes), position


def _write_sasl_authenticate_request(out: bytearray, message: SaslAuthenticateRequest, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_bytes(out, message.auth_bytes)
    else:
        write_bytes(out, message.auth_bytes)
    if flexible:
        out += b"\x00"


def read_sasl_authenticate_request(
    buffer: memoryview, position: int, version: int
) -> tuple[SaslAuthenticateRequest, int]:
    """Read a SaslAuthenticateRequest. Raises MalformedRequest."""
    try:
        return _read_sasl_authenticate_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("SaslAuthenticateRequest") from error


def write_sasl_authenticate_request(out: bytearray, message: SaslAuthenticateRequest, version: int) -> None:
    """Append a SaslAuthenticateRequest to `out`."""
    _write_sasl_authenticate_request(out, message, version)


def _read_sasl_authenticate_response(
    buffer: memoryview, position: int, version: int
) -> tuple[SaslAuthenticateResponse, int]:
    flexible = version >= 2
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    auth_bytes, position = read_compact_bytes(buffer, position) if flexible else read_bytes(buffer, position)
    session_lifetime_ms: int = 0
    if version >= 1:
        (session_lifetime_ms,) = _INT64.unpack_from(buffer, position)
        position += 8
    if flexible:
        position = skip_tags(buffer, position)
    return SaslAuthenticateResponse(
        error_code=error_code,
        error_message=error_message,
        auth_bytes=auth_bytes,
        session_lifetime_ms=session_lifetime_ms,
    ), position


def _write_sasl_authenticate_response(out: bytearray, message: SaslAuthenticateResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    if flexible:
        write_compact_bytes(out, message.auth_bytes)
    else:
        write_bytes(out, message.auth_bytes)
    if version >= 1:
        out += _INT64.pack(message.session_lifetime_ms)
    if flexible:
        out += b"\x00"


def read_sasl_authenticate_response(
    buffer: memoryview, position: int, version: int
) -> tuple[SaslAuthenticateResponse, int]:
    """Read a SaslAuthenticateResponse. Raises MalformedRequest."""
    try:
        return _read_sasl_authenticate_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("SaslAuthenticateResponse") from error


def write_sasl_authenticate_response(out: bytearray, message: SaslAuthenticateResponse, version: int) -> None:
    """Append a SaslAuthenticateResponse to `out`."""
    _write_sasl_authenticate_response(out, message, version)
