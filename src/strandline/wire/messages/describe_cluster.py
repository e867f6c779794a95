"""Messages of describe cluster. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_string,
)
from strandline.wire.structure import Structure

_BOOL = Struct(">?")
_INT8 = Struct(">b")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeClusterRequest(Structure):
    """Versions 0 to 2."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1  # from version 1 on
    include_fenced_brokers: bool = False  # from version 2 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeClusterBroker(Structure):
    """Versions 0 to 2."""

    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False  # from version 2 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeClusterResponse(Structure):
    """Versions 0 to 2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1  # from version 1 on
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = field(default_factory=list)
    cluster_authorized_operations: int = -2147483648


def _read_describe_cluster_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeClusterRequest, int]:
    (include_cluster_authorized_operations,) = _BOOL.unpack_from(buffer, position)
    position += 1
    endpoint_type: int = 1
    if version >= 1:
        (endpoint_type,) = _INT8.unpack_from(buffer, position)
        position += 1
    include_fenced_brokers: bool = False
    if version >= 2:
        (include_fenced_brokers,) = _BOOL.unpack_from(buffer, position)
        position += 1
    position = skip_tags(buffer, position)
    return DescribeClusterRequest(
        include_cluster_authorized_operations=include_cluster_authorized_operations,
        endpoint_type=endpoint_type,
        include_fenced_brokers=include_fenced_brokers,
    ), position


def _write_describe_cluster_request(out: bytearray, message: DescribeClusterRequest, version: int) -> None:
    out += _BOOL.pack(message.include_cluster_authorized_operations)
    if version >= 1:
        out += _INT8.pack(message.endpoint_type)
    if version >= 2:
        out += _BOOL.pack(message.include_fenced_brokers)
    out += b"\x00"


def read_describe_cluster_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeClusterRequest, int]:
    """Read a DescribeClusterRequest. Raises MalformedRequest."""
    try:
        return _read_describe_cluster_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeClusterRequest") from error


def write_describe_cluster_request(out: bytearray, message: DescribeClusterRequest, version: int) -> None:
    """Append a DescribeClusterRequest to `out`."""
    _write_describe_cluster_request(out, message, version)


def _read_describe_cluster_broker(buffer: memoryview, position: int, version: int) -> tuple[DescribeClusterBroker, int]:
    (broker_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    host, position = read_compact_string(buffer, position)
    (port,) = _INT32.unpack_from(buffer, position)
    position += 4
    rack, position = read_compact_nullable_string(buffer, position)
    is_fenced: bool = False
    if version >= 2:
        (is_fenced,) = _BOOL.unpack_from(buffer, position)
        position += 1
    position = skip_tags(buffer, position)
    return DescribeClusterBroker(broker_id=broker_id, host=host, port=port, rack=rack, is_fenced=is_fenced), position


def _write_describe_cluster_broker(out: bytearray, message: DescribeClusterBroker, version: int) -> None:
    out += _INT32.pack(message.broker_id)
    write_compact_string(out, message.host)
    out += _INT32.pack(message.port)
    write_compact_nullable_string(out, message.rack)
    if version >= 2:
        out += _BOOL.pack(message.is_fenced)
    out += b"\x00"


def _read_describe_cluster_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeClusterResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    endpoint_type: int = 1
    if version >= 1:
        (endpoint_type,) = _INT8.unpack_from(buffer, position)
        position += 1
    cluster_id, position = read_compact_string(buffer, position)
    (controller_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 10)
    brokers: list[DescribeClusterBroker] = []
    for _ in range(count):
        describe_cluster_broker, position = _read_describe_cluster_broker(buffer, position, version)
        brokers.append(describe_cluster_broker)
    (cluster_authorized_operations,) = _INT32.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return DescribeClusterResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        endpoint_type=endpoint_type,
        cluster_id=cluster_id,
        controller_id=controller_id,
        brokers=brokers,
        cluster_authorized_operations=cluster_authorized_operations,
    ), position


def _write_describe_cluster_response(out: bytearray, message: DescribeClusterResponse, version: int) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    if version >= 1:
        out += _INT8.pack(message.endpoint_type)
    write_compact_string(out, message.cluster_id)
    out += _INT32.pack(message.controller_id)
    write_compact_array_length(out, len(message.brokers))
    for describe_cluster_broker in message.brokers:
        _write_describe_cluster_broker(out, describe_cluster_broker, version)
    out += _INT32.pack(message.cluster_authorized_operations)
    out += b"\x00"


def read_describe_cluster_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeClusterResponse, int]:
    """Read a DescribeClusterResponse. Raises MalformedRequest."""
    try:
        return _read_describe_cluster_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeClusterResponse") from error


def write_describe_cluster_response(out: bytearray, message: DescribeClusterResponse, version: int) -> None:
    """Append a DescribeClusterResponse to `out`."""
    _write_describe_cluster_response(out, message, version)
