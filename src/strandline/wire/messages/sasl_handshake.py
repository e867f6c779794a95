"""Messages of sasl handshake. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_string,
    truncated,
    write_array_length,
    write_string,
)
from strandline.wire.structure import Structure

_INT16 = Struct(">h")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class SaslHandshakeRequest(Structure):
    """Versions 0 to 1."""

    mechanism: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class SaslHandshakeResponse(Structure):
    """Versions 0 to 1."""

    error_code: int = 0
    mechanisms: list[str] = field(default_factory=list)


def _read_sasl_handshake_request(buffer: memoryview, position: int, version: int) -> tuple[SaslHandshakeRequest, int]:
    mechanism, position = read_string(buffer, position)
    return SaslHandshakeRequest(mechanism=mechanism), position


def _write_sasl_handshake_request(out: bytearray, message: SaslHandshakeRequest, version: int) -> None:
    write_string(out, message.mechanism)


def read_sasl_handshake_request(buffer: memoryview, position: int, version: int) -> tuple[SaslHandshakeRequest, int]:
    """Read a SaslHandshakeRequest. Raises MalformedRequest."""
    try:
        return _read_sasl_handshake_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("SaslHandshakeRequest") from error


def write_sasl_handshake_request(out: bytearray, message: SaslHandshakeRequest, version: int) -> None:
    """Append a SaslHandshakeRequest to `out`."""
    _write_sasl_handshake_request(out, message, version)


def _read_sasl_handshake_response(buffer: memoryview, position: int, version: int) -> tuple[SaslHandshakeResponse, int]:
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    count, position = read_array_length(buffer, position, 2)
    mechanisms: list[str] = []
    for _ in range(count):
        text, position = read_string(buffer, position)
        mechanisms.append(text)
    return SaslHandshakeResponse(error_code=error_code, mechanisms=mechanisms), position


def _write_sasl_handshake_response(out: bytearray, message: SaslHandshakeResponse, version: int) -> None:
    out += _INT16.pack(message.error_code)
    write_array_length(out, len(message.mechanisms))
    for text in message.mechanisms:
        write_string(out, text)


def read_sasl_handshake_response(buffer: memoryview, position: int, version: int) -> tuple[SaslHandshakeResponse, int]:
    """Read a SaslHandshakeResponse. Raises MalformedRequest."""
    try:
        return _read_sasl_handshake_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("SaslHandshakeResponse") from error


def write_sasl_handshake_response(out: bytearray, message: SaslHandshakeResponse, version: int) -> None:
    """Append a SaslHandshakeResponse to `out`."""
    _write_sasl_handshake_response(out, message, version)
