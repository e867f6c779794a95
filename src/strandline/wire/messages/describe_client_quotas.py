"""Messages of describe client quotas. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_array_length,
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
_INT8 = Struct(">b")
_FLOAT64 = Struct(">d")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ComponentData(Structure):
    """Versions 0 to 1."""

    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeClientQuotasRequest(Structure):
    """Versions 0 to 1."""

    components: list[ComponentData] = field(default_factory=list)
    strict: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class EntityData(Structure):
    """Versions 0 to 1."""

    entity_type: str = ""
    entity_name: str | None = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ValueData(Structure):
    """Versions 0 to 1."""

    key: str = ""
    value: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class EntryData(Structure):
    """Versions 0 to 1."""

    entity: list[EntityData] = field(default_factory=list)
    values: list[ValueData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeClientQuotasResponse(Structure):
    """Versions 0 to 1."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    entries: list[EntryData] | None = field(default_factory=list)


def _read_component_data(buffer: memoryview, position: int, version: int) -> tuple[ComponentData, int]:
    flexible = version >= 1
    entity_type, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (match_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    match, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return ComponentData(entity_type=entity_type, match_type=match_type, match=match), position


def _write_component_data(out: bytearray, message: ComponentData, version: int) -> None:
    flexible = version >= 1
    if flexible:
        write_compact_string(out, message.entity_type)
    else:
        write_string(out, message.entity_type)
    out += _INT8.pack(message.match_type)
    if flexible:
        write_compact_nullable_string(out, message.match)
    else:
        write_nullable_string(out, message.match)
    if flexible:
        out += b"\x00"


def _read_describe_client_quotas_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeClientQuotasRequest, int]:
    flexible = version >= 1
    count, position = (
        read_compact_array_length(buffer, position, 3) if flexible else read_array_length(buffer, position, 3)
    )
    components: list[ComponentData] = []
    for _ in range(count):
        component_data, position = _read_component_data(buffer, position, version)
        components.append(component_data)
    (strict,) = _BOOL.unpack_from(buffer, position)
    position += 1
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeClientQuotasRequest(components=components, strict=strict), position


def _write_describe_client_quotas_request(out: bytearray, message: DescribeClientQuotasRequest, version: int) -> None:
    flexible = version >= 1
    if flexible:
        write_compact_array_length(out, len(message.components))
    else:
        write_array_length(out, len(message.components))
    for component_data in message.components:
        _write_component_data(out, component_data, version)
    out += _BOOL.pack(message.strict)
    if flexible:
        out += b"\x00"


def read_describe_client_quotas_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeClientQuotasRequest, int]:
    """Read a DescribeClientQuotasRequest. Raises MalformedRequest."""
    try:
        return _read_describe_client_quotas_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeClientQuotasRequest") from error


def write_describe_client_quotas_request(out: bytearray, message: DescribeClientQuotasRequest, version: int) -> None:
    """Append a DescribeClientQuotasRequest to `out`."""
    _write_describe_client_quotas_request(out, message, version)


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


def _read_value_data(buffer: memoryview, position: int, version: int) -> tuple[ValueData, int]:
    flexible = version >= 1
    key, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (value_,) = _FLOAT64.unpack_from(buffer, position)
    position += 8
    if flexible:
        position = skip_tags(buffer, position)
    return ValueData(key=key, value=value_), position


def _write_value_data(out: bytearray, message: ValueData, version: int) -> None:
    flexible = version >= 1
    if flexible:
        write_compact_string(out, message.key)
    else:
        write_string(out, message.key)
    out += _FLOAT64.pack(message.value)
    if flexible:
        out += b"\x00"


def _read_entry_data(buffer: memoryview, position: int, version: int) -> tuple[EntryData, int]:
    flexible = version >= 1
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    entity: list[EntityData] = []
    for _ in range(count):
        entity_data, position = _read_entity_data(buffer, position, version)
        entity.append(entity_data)
    count, position = (
        read_compact_array_length(buffer, position, 9) if flexible else read_array_length(buffer, position, 9)
    )
    values: list[ValueData] = []
    for _ in range(count):
        value_data, position = _read_value_data(buffer, position, version)
        values.append(value_data)
    if flexible:
        position = skip_tags(buffer, position)
    return EntryData(entity=entity, values=values), position


def _write_entry_data(out: bytearray, message: EntryData, version: int) -> None:
    flexible = version >= 1
    if flexible:
        write_compact_array_length(out, len(message.entity))
    else:
        write_array_length(out, len(message.entity))
    for entity_data in message.entity:
        _write_entity_data(out, entity_data, version)
    if flexible:
        write_compact_array_length(out, len(message.values))
    else:
        write_array_length(out, len(message.values))
    for value_data in message.values:
        _write_value_data(out, value_data, version)
    if flexible:
        out += b"\x00"


def _read_describe_client_quotas_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeClientQuotasResponse, int]:
    flexible = version >= 1
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    count, position = (
        read_compact_nullable_array_length(buffer, position, 2)
        if flexible
        else read_nullable_array_length(buffer, position, 2)
    )
    entries: list[EntryData] | None = None
    if count >= 0:
        entries = []
        for _ in range(count):
            entry_data, position = _read_entry_data(buffer, position, version)
            entries.append(entry_data)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeClientQuotasResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, error_message=error_message, entries=entries
    ), position


def _write_describe_client_quotas_response(out: bytearray, message: DescribeClientQuotasResponse, version: int) -> None:
    flexible = version >= 1
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    if message.entries is None:
        if flexible:
            write_compact_array_length(out, -1)
        else:
            write_array_length(out, -1)
    else:
        if flexible:
            write_compact_array_length(out, len(message.entries))
        else:
            write_array_length(out, len(message.entries))
        for entry_data in message.entries:
            _write_entry_data(out, entry_data, version)
    if flexible:
        out += b"\x00"


def read_describe_client_quotas_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeClientQuotasResponse, int]:
    """Read a DescribeClientQuotasResponse. Raises MalformedRequest."""
    try:
        return _read_describe_client_quotas_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeClientQuotasResponse") from error


def write_describe_client_quotas_response(out: bytearray, message: DescribeClientQuotasResponse, version: int) -> None:
    """Append a DescribeClientQuotasResponse to `out`."""
    _write_describe_client_quotas_response(out, message, version)
