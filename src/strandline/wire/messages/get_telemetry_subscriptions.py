"""Messages of get telemetry subscriptions. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_string,
    read_numbers,
    read_uuid,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_numbers,
    write_compact_string,
)
from strandline.wire.structure import Structure

_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT32_BOOL = Struct(">ii?")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class GetTelemetrySubscriptionsRequest(Structure):
    """Versions 0 to 0."""

    client_instance_id: UUID = ZERO_UUID


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class GetTelemetrySubscriptionsResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: UUID = ZERO_UUID
    subscription_id: int = 0
    accepted_compression_types: list[int] = field(default_factory=list)
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = field(default_factory=list)


def _read_get_telemetry_subscriptions_request(
    buffer: memoryview, position: int, version: int
) -> tuple[GetTelemetrySubscriptionsRequest, int]:
    client_instance_id, position = read_uuid(buffer, position)
    position = skip_tags(buffer, position)
    return GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id), position


def _write_get_telemetry_subscriptions_request(
    out: bytearray, message: GetTelemetrySubscriptionsRequest, version: int
) -> None:
    out += message.client_instance_id.bytes
    out += b"\x00"


def read_get_telemetry_subscriptions_request(
    buffer: memoryview, position: int, version: int
) -> tuple[GetTelemetrySubscriptionsRequest, int]:
    """Read a GetTelemetrySubscriptionsRequest. Raises MalformedRequest."""
    try:
        return _read_get_telemetry_subscriptions_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("GetTelemetrySubscriptionsRequest") from error


def write_get_telemetry_subscriptions_request(
    out: bytearray, message: GetTelemetrySubscriptionsRequest, version: int
) -> None:
    """Append a GetTelemetrySubscriptionsRequest to `out`."""
    _write_get_telemetry_subscriptions_request(out, message, version)


def _read_get_telemetry_subscriptions_response(
    buffer: memoryview, position: int, version: int
) -> tuple[GetTelemetrySubscriptionsResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    client_instance_id, position = read_uuid(buffer, position)
    (subscription_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 1)
    accepted_compression_types, position = read_numbers(buffer, position, count, "b")
    push_interval_ms, telemetry_max_bytes, delta_temporality = _INT32_INT32_BOOL.unpack_from(buffer, position)
    position += 9
    count, position = read_compact_array_length(buffer, position, 1)
    requested_metrics: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        requested_metrics.append(text)
    position = skip_tags(buffer, position)
    return GetTelemetrySubscriptionsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        client_instance_id=client_instance_id,
        subscription_id=subscription_id,
        accepted_compression_types=accepted_compression_types,
        push_interval_ms=push_interval_ms,
        telemetry_max_bytes=telemetry_max_bytes,
        delta_temporality=delta_temporality,
        requested_metrics=requested_metrics,
    ), position


def _write_get_telemetry_subscriptions_response(
    out: bytearray, message: GetTelemetrySubscriptionsResponse, version: int
) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    out += message.client_instance_id.bytes
    out += _INT32.pack(message.subscription_id)
    write_compact_numbers(out, message.accepted_compression_types, "b")
    out += _INT32_INT32_BOOL.pack(message.push_interval_ms, message.telemetry_max_bytes, message.delta_temporality)
    write_compact_array_length(out, len(message.requested_metrics))
    for text in message.requested_metrics:
        write_compact_string(out, text)
    out += b"\x00"


def read_get_telemetry_subscriptions_response(
    buffer: memoryview, position: int, version: int
) -> tuple[GetTelemetrySubscriptionsResponse, int]:
    """Read a GetTelemetrySubscriptionsResponse. Raises MalformedRequest."""
    try:
        return _read_get_telemetry_subscriptions_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("GetTelemetrySubscriptionsResponse") from error


def write_get_telemetry_subscriptions_response(
    out: bytearray, message: GetTelemetrySubscriptionsResponse, version: int
) -> None:
    """Append a GetTelemetrySubscriptionsResponse to `out`."""
    _write_get_telemetry_subscriptions_response(out, message, version)
