"""Messages of envelope. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_bytes,
    read_compact_nullable_bytes,
    skip_tags,
    truncated,
    write_compact_bytes,
    write_compact_nullable_bytes,
)
from strandline.wire.structure import Structure

_INT16 = Struct(">h")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class EnvelopeRequest(Structure):
    """Versions 0 to 0."""

    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class EnvelopeResponse(Structure):
    """Versions 0 to 0."""

    response_data: bytes | None = None
    error_code: int = 0


def _read_envelope_request(buffer: memoryview, position: int, version: int) -> tuple[EnvelopeRequest, int]:
    request_data, position = read_compact_bytes(buffer, position)
    request_principal, position = read_compact_nullable_bytes(buffer, position)
    client_host_address, position = read_compact_bytes(buffer, position)
    position = skip_tags(buffer, position)
    return EnvelopeRequest(
        request_data=request_data, request_principal=request_principal, client_host_address=client_host_address
    ), position


def _write_envelope_request(out: bytearray, message: EnvelopeRequest, version: int) -> None:
    write_compact_bytes(out, message.request_data)
    write_compact_nullable_bytes(out, message.request_principal)
    write_compact_bytes(out, message.client_host_address)
    out += b"\x00"


def read_envelope_request(buffer: memoryview, position: int, version: int) -> tuple[EnvelopeRequest, int]:
    """Read a EnvelopeRequest. Raises MalformedRequest."""
    try:
        return _read_envelope_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("EnvelopeRequest") from error


def write_envelope_request(out: bytearray, message: EnvelopeRequest, version: int) -> None:
    """Append a EnvelopeRequest to `out`."""
    _write_envelope_request(out, message, version)


def _read_envelope_response(buffer: memoryview, position: int, version: int) -> tuple[EnvelopeResponse, int]:
    response_data, position = read_compact_nullable_bytes(buffer, position)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    position = skip_tags(buffer, position)
    return EnvelopeResponse(response_data=response_data, error_code=error_code), position


def _write_envelope_response(out: bytearray, message: EnvelopeResponse, version: int) -> None:
    write_compact_nullable_bytes(out, message.response_data)
    out += _INT16.pack(message.error_code)
    out += b"\x00"


def read_envelope_response(buffer: memoryview, position: int, version: int) -> tuple[EnvelopeResponse, int]:
    """Read a EnvelopeResponse. Raises MalformedRequest."""
    try:
        return _read_envelope_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("EnvelopeResponse") from error


def write_envelope_response(out: bytearray, message: EnvelopeResponse, version: int) -> None:
    """Append a EnvelopeResponse to `out`."""
    _write_envelope_response(out, message, version)
