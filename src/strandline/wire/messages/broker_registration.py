"""Messages of broker registration. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_uuid,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_string,
)
from strandline.wire.structure import Structure

_BOOL = Struct(">?")
_UINT16_INT16 = Struct(">Hh")
_INT16_INT16 = Struct(">hh")
_INT32 = Struct(">i")
_INT32_INT16_INT64 = Struct(">ihq")
_INT64 = Struct(">q")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Listener(Structure):
    """Versions 0 to 4."""

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Feature(Structure):
    """Versions 0 to 4."""

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class BrokerRegistrationRequest(Structure):
    """Versions 0 to 4."""

    broker_id: int = 0
    cluster_id: str = ""
    incarnation_id: UUID = ZERO_UUID
    listeners: list[Listener] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)
    rack: str | None = ""
    is_migrating_zk_broker: bool = False  # from version 1 on
    log_dirs: list[UUID] = field(default_factory=list)  # from version 2 on
    previous_broker_epoch: int = -1  # from version 3 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class BrokerRegistrationResponse(Structure):
    """Versions 0 to 4."""

    throttle_time_ms: int = 0
    error_code: int = 0
    broker_epoch: int = -1


def _read_listener(buffer: memoryview, position: int, version: int) -> tuple[Listener, int]:
    name, position = read_compact_string(buffer, position)
    host, position = read_compact_string(buffer, position)
    port, security_protocol = _UINT16_INT16.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return Listener(name=name, host=host, port=port, security_protocol=security_protocol), position


def _write_listener(out: bytearray, message: Listener, version: int) -> None:
    write_compact_string(out, message.name)
    write_compact_string(out, message.host)
    out += _UINT16_INT16.pack(message.port, message.security_protocol)
    out += b"\x00"


def _read_feature(buffer: memoryview, position: int, version: int) -> tuple[Feature, int]:
    name, position = read_compact_string(buffer, position)
    min_supported_version, max_supported_version = _INT16_INT16.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return Feature(
        name=name, min_supported_version=min_supported_version, max_supported_version=max_supported_version
    ), position


def _write_feature(out: bytearray, message: Feature, version: int) -> None:
    write_compact_string(out, message.name)
    out += _INT16_INT16.pack(message.min_supported_version, message.max_supported_version)
    out += b"\x00"


def _read_broker_registration_request(
    buffer: memoryview, position: int, version: int
) -> tuple[BrokerRegistrationRequest, int]:
    (broker_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    cluster_id, position = read_compact_string(buffer, position)
    incarnation_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 6)
    listeners: list[Listener] = []
    for _ in range(count):
        listener, position = _read_listener(buffer, position, version)
        listeners.append(listener)
    count, position = read_compact_array_length(buffer, position, 5)
    features: list[Feature] = []
    for _ in range(count):
        feature, position = _read_feature(buffer, position, version)
        features.append(feature)
    rack, position = read_compact_nullable_string(buffer, position)
    is_migrating_zk_broker: bool = False
    if version >= 1:
        (is_migrating_zk_broker,) = _BOOL.unpack_from(buffer, position)
        position += 1
    log_dirs: list[UUID] = []
    if version >= 2:
        count, position = read_compact_array_length(buffer, position, 16)
        log_dirs = []
        for _ in range(count):
            element, position = read_uuid(buffer, position)
            log_dirs.append(element)
    previous_broker_epoch: int = -1
    if version >= 3:
        (previous_broker_epoch,) = _INT64.unpack_from(buffer, position)
        position += 8
    position = skip_tags(buffer, position)
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=listeners,
        features=features,
        rack=rack,
        is_migrating_zk_broker=is_migrating_zk_broker,
        log_dirs=log_dirs,
        previous_broker_epoch=previous_broker_epoch,
    ), position


def _write_broker_registration_request(out: bytearray, message: BrokerRegistrationRequest, version: int) -> None:
    out += _INT32.pack(message.broker_id)
    write_compact_string(out, message.cluster_id)
    out += message.incarnation_id.bytes
    write_compact_array_length(out, len(message.listeners))
    for listener in message.listeners:
        _write_listener(out, listener, version)
    write_compact_array_length(out, len(message.features))
    for feature in message.features:
        _write_feature(out, feature, version)
    write_compact_nullable_string(out, message.rack)
    if version >= 1:
        out += _BOOL.pack(message.is_migrating_zk_broker)
    if version >= 2:
        write_compact_array_length(out, len(message.log_dirs))
        for element in message.log_dirs:
            out += element.bytes
    if version >= 3:
        out += _INT64.pack(message.previous_broker_epoch)
    out += b"\x00"


def read_broker_registration_request(
    buffer: memoryview, position: int, version: int
) -> tuple[BrokerRegistrationRequest, int]:
    """Read a BrokerRegistrationRequest. Raises MalformedRequest."""
    try:
        return _read_broker_registration_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("BrokerRegistrationRequest") from error


def write_broker_registration_request(out: bytearray, message: BrokerRegistrationRequest, version: int) -> None:
    """Append a BrokerRegistrationRequest to `out`."""
    _write_broker_registration_request(out, message, version)


def _read_broker_registration_response(
    buffer: memoryview, position: int, version: int
) -> tuple[BrokerRegistrationResponse, int]:
    throttle_time_ms, error_code, broker_epoch = _INT32_INT16_INT64.unpack_from(buffer, position)
    position += 14
    position = skip_tags(buffer, position)
    return BrokerRegistrationResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, broker_epoch=broker_epoch
    ), position


def _write_broker_registration_response(out: bytearray, message: BrokerRegistrationResponse, version: int) -> None:
    out += _INT32_INT16_INT64.pack(message.throttle_time_ms, message.error_code, message.broker_epoch)
    out += b"\x00"


def read_broker_registration_response(
    buffer: memoryview, position: int, version: int
) -> tuple[BrokerRegistrationResponse, int]:
    """Read a BrokerRegistrationResponse. Raises MalformedRequest."""
    try:
        return _read_broker_registration_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("BrokerRegistrationResponse") from error


def write_broker_registration_response(out: bytearray, message: BrokerRegistrationResponse, version: int) -> None:
    """Append a BrokerRegistrationResponse to `out`."""
    _write_broker_registration_response(out, message, version)
