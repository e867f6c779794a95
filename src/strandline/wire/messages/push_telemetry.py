"""Messages of push telemetry. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_bytes,
    read_uuid,
    skip_tags,
    truncated,
    write_compact_bytes,
)
from strandline.wire.structure import Structure

_INT32_BOOL_INT8 = Struct(">i?b")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PushTelemetryRequest(Structure):
    """Versions 0 to 0."""

    client_instance_id: UUID = ZERO_UUID
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PushTelemetryResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    error_code: int = 0


def _read_push_telemetry_request(buffer: memoryview, position: int, version: int) -> tuple[PushTelemetryRequest, int]:
    client_instance_id, position = read_uuid(buffer, position)
    subscription_id, terminating, compression_type = _INT32_BOOL_INT8.unpack_from(buffer, position)
    position += 6
    metrics, position = read_compact_bytes(buffer, position)
    position = skip_tags(buffer, position)
    return PushTelemetryRequest(
        client_instance_id=client_instance_id,
        subscription_id=subscription_id,
        terminating=terminating,
        compression_type=compression_type,
        metrics=metrics,
    ), position


def _write_push_telemetry_request(out: bytearray, message: PushTelemetryRequest, version: int) -> None:
    out += message.client_instance_id.bytes
    out += _INT32_BOOL_INT8.pack(message.subscription_id, message.terminating, message.compression_type)
    write_compact_bytes(out, message.metrics)
    out += b"\x00"


def read_push_telemetry_request(buffer: memoryview, position: int, version: int) -> tuple[PushTelemetryRequest, int]:
    """Read a PushTelemetryRequest. Raises MalformedRequest."""
    try:
        return _read_push_telemetry_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("PushTelemetryRequest") from error


def write_push_telemetry_request(out: bytearray, message: PushTelemetryRequest, version: int) -> None:
    """Append a PushTelemetryRequest to `out`."""
    _write_push_telemetry_request(out, message, version)


def _read_push_telemetry_response(buffer: memoryview, position: int, version: int) -> tuple[PushTelemetryResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    position = skip_tags(buffer, position)
    return PushTelemetryResponse(throttle_time_ms=throttle_time_ms, error_code=error_code), position


def _write_push_telemetry_response(out: bytearray, message: PushTelemetryResponse, version: int) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    out += b"\x00"


def read_push_telemetry_response(buffer: memoryview, position: int, version: int) -> tuple[PushTelemetryResponse, int]:
    """Read a PushTelemetryResponse. Raises MalformedRequest."""
    try:
        return _read_push_telemetry_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("PushTelemetryResponse") from error


def write_push_telemetry_response(out: bytearray, message: PushTelemetryResponse, version: int) -> None:
    """Append a PushTelemetryResponse to `out`."""
    _write_push_telemetry_response(out, message, version)
