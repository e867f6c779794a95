"""Messages of alter client quotas. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)
from strandline.wire.structure import Structure

_BOOL = Struct(">?")
_FLOAT64_BOOL = Struct(">d?")
_INT16 = Struct(">h")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class EntityData(Structure):
    """Versions 0 to 1."""

    entity_type: str = ""
    entity_name: str | None = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OpData(Structure):
    """Versions 0 to 1."""

    key: str = ""
    value: float = 0.0
    remove: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class RequestEntryData(Structure):
    """Versions 0 to 1."""

    entity: list[EntityData] = field(default_factory=list)
    ops: list[OpData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterClientQuotasRequest(Structure):
    """Versions 0 to 1."""

    entries: list[RequestEntryData] = field(default_factory=list)
    validate_only: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ResponseEntryData(Structure):
    """Versions 0 to 1."""

    error_code: int = 0
    error_message: str | None = None
    entity: list[EntityData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterClientQuotasResponse(Structure):
    """Versions 0 to 1."""

    throttle_time_ms: int = 0
    entries: list[ResponseEntryData] = field(default_factory=list)


def _read_entity_data(buffer: memoryview, position: int, version: int) -> tuple[EntityData, int]:
    flexible = version >= 1
    entity_type, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    entity_name, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return EntityData(entity_type=entity_type, entity_name=entity_name), position


def _write_entity_data(out: bytearray, message: EntityData, version: int) -> None:
    flexible = version >= 1
    if flexible:
        write_compact_string(out, message.entity_type)
    else:
        write_string(out, message.entity_type)
    if flexible:
        write_compact_nullable_string(out, message.entity_name)
    else:
        write_nullable_string(out, message.entity_name)
    if flexible:
        out += b"\x00"


def _read_op_data(buffer: memoryview, position: int, version: int) -> tuple[OpData, int]:
    flexible = version >= 1
    key, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    value_, remove = _FLOAT64_BOOL.unpack_from(buffer, position)
    position += 9
    if flexible:
        position = skip_tags(buffer, position)
    return OpData(key=key, value=value_, remove=remove), position


def _write_op_data(out: bytearray, message: OpData, version: int) -> None:
    flexible = version >= 1
    if flexible:
        write_compact_string(out, message.key)
    else:
        write_string(out, message.key)
    out += _FLOAT64_BOOL.pack(message.value, message.remove)
    if flexible:
        out += b"\x00"


def _read_request_entry_data(buffer: memoryview, position: int, version: int) -> tuple[RequestEntryData, int]:
    flexible = version >= 1
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    entity: list[EntityData] = []
    for _ in range(count):
        entity_data, position = _read_entity_data(buffer, position, version)
        entity.append(entity_data)
    count, position = (
        read_compact_array_length(buffer, position, 10) if flexible else read_array_length(buffer, position, 10)
    )
    ops: list[OpData] = []
    for _ in range(count):
        op_data, position = _read_op_data(buffer, position, version)
        ops.append(op_data)
    if flexible:
        position = skip_tags(buffer, position)
    return RequestEntryData(entity=entity, ops=ops), position


def _write_request_entry_data(out: bytearray, message: RequestEntryData, version: int) -> None:
    flexible = version >= 1
    if flexible:
        write_compact_array_length(out, len(message.entity))
    else:
        write_array_length(out, len(message.entity))
    for entity_data in message.entity:
        _write_entity_data(out, entity_data, version)
    if flexible:
        write_compact_array_length(out, len(message.ops))
    else:
        write_array_length(out, len(message.ops))
    for op_data in message.ops:
        _write_op_data(out, op_data, version)
    if flexible:
        out += b"\x00"


def _read_alter_client_quotas_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterClientQuotasRequest, int]:
    flexible = version >= 1
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    entries: list[RequestEntryData] = []
    for _ in range(count):
        request_entry_data, position = _read_request_entry_data(buffer, position, version)
        entries.append(request_entry_data)
    (validate_only,) = _BOOL.unpack_from(buffer, position)
    position += 1
    if flexible:
        position = skip_tags(buffer, position)
    return AlterClientQuotasRequest(entries=entries, validate_only=validate_only), position


def _write_alter_client_quotas_request(out: bytearray, message: AlterClientQuotasRequest, version: int) -> None:
    flexible = version >= 1
    if flexible:
        write_compact_array_length(out, len(message.entries))
    else:
        write_array_length(out, len(message.entries))
    for request_entry_data in message.entries:
        _write_request_entry_data(out, request_entry_data, version)
    out += _BOOL.pack(message.validate_only)
    if flexible:
        out += b"\x00"


def read_alter_client_quotas_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterClientQuotasRequest, int]:
    """Read a AlterClientQuotasRequest. Raises MalformedRequest."""
    try:
        return _read_alter_client_quotas_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterClientQuotasRequest") from error


def write_alter_client_quotas_request(out: bytearray, message: AlterClientQuotasRequest, version: int) -> None:
    """Append a AlterClientQuotasRequest to `out`."""
    _write_alter_client_quotas_request(out, message, version)


def _read_response_entry_data(buffer: memoryview, position: int, version: int) -> tuple[ResponseEntryData, int]:
    flexible = version >= 1
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    entity: list[EntityData] = []
    for _ in range(count):
        entity_data, position = _read_entity_data(buffer, position, version)
        entity.append(entity_data)
    if flexible:
        position = skip_tags(buffer, position)
    return ResponseEntryData(error_code=error_code, error_message=error_message, entity=entity), position


def _write_response_entry_data(out: bytearray, message: ResponseEntryData, version: int) -> None:
    flexible = version >= 1
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    if flexible:
        write_compact_array_length(out, len(message.entity))
    else:
        write_array_length(out, len(message.entity))
    for entity_data in message.entity:
        _write_entity_data(out, entity_data, version)
    if flexible:
        out += b"\x00"


def _read_alter_client_quotas_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterClientQuotasResponse, int]:
    flexible = version >= 1
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    entries: list[ResponseEntryData] = []
    for _ in range(count):
        response_entry_data, position = _read_response_entry_data(buffer, position, version)
        entries.append(response_entry_data)
    if flexible:
        position = skip_tags(buffer, position)
    return AlterClientQuotasResponse(throttle_time_ms=throttle_time_ms, entries=entries), position


def _write_alter_client_quotas_response(out: bytearray, message: AlterClientQuotasResponse, version: int) -> None:
    flexible = version >= 1
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.entries))
    else:
        write_array_length(out, len(message.entries))
    for response_entry_data in message.entries:
        _write_response_entry_data(out, response_entry_data, version)
    if flexible:
        out += b"\x00"


def read_alter_client_quotas_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterClientQuotasResponse, int]:
    """Read a AlterClientQuotasResponse. Raises MalformedRequest."""
    try:
        return _read_alter_client_quotas_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterClientQuotasResponse") from error


def write_alter_client_quotas_response(out: bytearray, message: AlterClientQuotasResponse, version: int) -> None:
    """Append a AlterClientQuotasResponse to `out`."""
    _write_alter_client_quotas_response(out, message, version)
