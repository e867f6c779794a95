"""Messages of incremental alter configs. Written by tools/generate_messages.py: do not edit."""

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
_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterableConfig(Structure):
    """Versions 0 to 1."""

    name: str = ""
    config_operation: int = 0
    value: str | None = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterConfigsResource(Structure):
    """Versions 0 to 1."""

    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class IncrementalAlterConfigsRequest(Structure):
    """Versions 0 to 1."""

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterConfigsResourceResponse(Structure):
    """Versions 0 to 1."""

    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class IncrementalAlterConfigsResponse(Structure):
    """Versions 0 to 1."""

    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)


def _read_alterable_config(buffer: memoryview, position: int, version: int) -> tuple[AlterableConfig, int]:
    flexible = version >= 1
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (config_operation,) = _INT8.unpack_from(buffer, position)
    position += 1
    value_, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return AlterableConfig(name=name, config_operation=config_operation, value=value_), position


def _write_alterable_config(out: bytearray, message: AlterableConfig, version: int) -> None:
    flexible = version >= 1
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    out += _INT8.pack(message.config_operation)
    if flexible:
        write_compact_nullable_string(out, message.value)
    else:
        write_nullable_string(out, message.value)
    if flexible:
        out += b"\x00"


def _read_alter_configs_resource(buffer: memoryview, position: int, version: int) -> tuple[AlterConfigsResource, int]:
    flexible = version >= 1
    (resource_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    resource_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 3) if flexible else read_array_length(buffer, position, 3)
    )
    configs: list[AlterableConfig] = []
    for _ in range(count):
        alterable_config, position = _read_alterable_config(buffer, position, version)
        configs.append(alterable_config)
    if flexible:
        position = skip_tags(buffer, position)
    return AlterConfigsResource(resource_type=resource_type, resource_name=resource_name, configs=configs), position


def _write_alter_configs_resource(out: bytearray, message: AlterConfigsResource, version: int) -> None:
    flexible = version >= 1
    out += _INT8.pack(message.resource_type)
    if flexible:
        write_compact_string(out, message.resource_name)
    else:
        write_string(out, message.resource_name)
    if flexible:
        write_compact_array_length(out, len(message.configs))
    else:
        write_array_length(out, len(message.configs))
    for alterable_config in message.configs:
        _write_alterable_config(out, alterable_config, version)
    if flexible:
        out += b"\x00"


def _read_incremental_alter_configs_request(
    buffer: memoryview, position: int, version: int
) -> tuple[IncrementalAlterConfigsRequest, int]:
    flexible = version >= 1
    count, position = (
        read_compact_array_length(buffer, position, 3) if flexible else read_array_length(buffer, position, 3)
    )
    resources: list[AlterConfigsResource] = []
    for _ in range(count):
        alter_configs_resource, position = _read_alter_configs_resource(buffer, position, version)
        resources.append(alter_configs_resource)
    (validate_only,) = _BOOL.unpack_from(buffer, position)
    position += 1
    if flexible:
        position = skip_tags(buffer, position)
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only), position


def _write_incremental_alter_configs_request(
    out: bytearray, message: IncrementalAlterConfigsRequest, version: int
) -> None:
    flexible = version >= 1
    if flexible:
        write_compact_array_length(out, len(message.resources))
    else:
        write_array_length(out, len(message.resources))
    for alter_configs_resource in message.resources:
        _write_alter_configs_resource(out, alter_configs_resource, version)
    out += _BOOL.pack(message.validate_only)
    if flexible:
        out += b"\x00"


def read_incremental_alter_configs_request(
    buffer: memoryview, position: int, version: int
) -> tuple[IncrementalAlterConfigsRequest, int]:
    """Read a IncrementalAlterConfigsRequest. Raises MalformedRequest."""
    try:
        return _read_incremental_alter_configs_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("IncrementalAlterConfigsRequest") from error


def write_incremental_alter_configs_request(
    out: bytearray, message: IncrementalAlterConfigsRequest, version: int
) -> None:
    """Append a IncrementalAlterConfigsRequest to `out`."""
    _write_incremental_alter_configs_request(out, message, version)


def _read_alter_configs_resource_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterConfigsResourceResponse, int]:
    flexible = version >= 1
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    (resource_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    resource_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return AlterConfigsResourceResponse(
        error_code=error_code, error_message=error_message, resource_type=resource_type, resource_name=resource_name
    ), position


def _write_alter_configs_resource_response(out: bytearray, message: AlterConfigsResourceResponse, version: int) -> None:
    flexible = version >= 1
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    out += _INT8.pack(message.resource_type)
    if flexible:
        write_compact_string(out, message.resource_name)
    else:
        write_string(out, message.resource_name)
    if flexible:
        out += b"\x00"


def _read_incremental_alter_configs_response(
    buffer: memoryview, position: int, version: int
) -> tuple[IncrementalAlterConfigsResponse, int]:
    flexible = version >= 1
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 5) if flexible else read_array_length(buffer, position, 5)
    )
    responses: list[AlterConfigsResourceResponse] = []
    for _ in range(count):
        alter_configs_resource_response, position = _read_alter_configs_resource_response(buffer, position, version)
        responses.append(alter_configs_resource_response)
    if flexible:
        position = skip_tags(buffer, position)
    return IncrementalAlterConfigsResponse(throttle_time_ms=throttle_time_ms, responses=responses), position


def _write_incremental_alter_configs_response(
    out: bytearray, message: IncrementalAlterConfigsResponse, version: int
) -> None:
    flexible = version >= 1
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.responses))
    else:
        write_array_length(out, len(message.responses))
    for alter_configs_resource_response in message.responses:
        _write_alter_configs_resource_response(out, alter_configs_resource_response, version)
    if flexible:
        out += b"\x00"


def read_incremental_alter_configs_response(
    buffer: memoryview, position: int, version: int
) -> tuple[IncrementalAlterConfigsResponse, int]:
    """Read a IncrementalAlterConfigsResponse. Raises MalformedRequest."""
    try:
        return _read_incremental_alter_configs_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("IncrementalAlterConfigsResponse") from error


def write_incremental_alter_configs_response(
    out: bytearray, message: IncrementalAlterConfigsResponse, version: int
) -> None:
    """Append a IncrementalAlterConfigsResponse to `out`."""
    _write_incremental_alter_configs_response(out, message, version)
