"""Messages of unregister broker. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_nullable_string,
    skip_tags,
    truncated,
    write_compact_nullable_string,
)
from strandline.wire.structure import Structure

_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class UnregisterBrokerRequest(Structure):
    """Versions 0 to 0."""

    broker_id: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class UnregisterBrokerResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None


def _read_unregister_broker_request(
    buffer: memoryview, position: int, version: int
) -> tuple[UnregisterBrokerRequest, int]:
    (broker_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return UnregisterBrokerRequest(broker_id=broker_id), position


def _write_unregister_broker_request(out: bytearray, message: UnregisterBrokerRequest, version: int) -> None:
    out += _INT32.pack(message.broker_id)
    out += b"\x00"


def read_unregister_broker_request(
    buffer: memoryview, position: int, version: int
) -> tuple[UnregisterBrokerRequest, int]:
    """Read a UnregisterBrokerRequest. Raises MalformedRequest."""
    try:
        return _read_unregister_broker_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("UnregisterBrokerRequest") from error


def write_unregister_broker_request(out: bytearray, message: UnregisterBrokerRequest, version: int) -> None:
    """Append a UnregisterBrokerRequest to `out`."""
    _write_unregister_broker_request(out, message, version)


def _read_unregister_broker_response(
    buffer: memoryview, position: int, version: int
) -> tuple[UnregisterBrokerResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return UnregisterBrokerResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, error_message=error_message
    ), position


def _write_unregister_broker_response(out: bytearray, message: UnregisterBrokerResponse, version: int) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def read_unregister_broker_response(
    buffer: memoryview, position: int, version: int
) -> tuple[UnregisterBrokerResponse, int]:
    """Read a UnregisterBrokerResponse. Raises MalformedRequest."""
    try:
        return _read_unregister_broker_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("UnregisterBrokerResponse") from error


def write_unregister_broker_response(out: bytearray, message: UnregisterBrokerResponse, version: int) -> None:
    """Append a UnregisterBrokerResponse to `out`."""
    _write_unregister_broker_response(out, message, version)
