"""Messages of list config resources. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_string,
    read_numbers,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_numbers,
    write_compact_string,
)
from strandline.wire.structure import Structure

_INT8 = Struct(">b")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListConfigResourcesRequest(Structure):
    """Versions 0 to 1."""

    resource_types: list[int] = field(default_factory=list)  # from version 1 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ConfigResource(Structure):
    """Versions 0 to 1."""

    resource_name: str = ""
    resource_type: int = 16  # from version 1 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListConfigResourcesResponse(Structure):
    """Versions 0 to 1."""

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = field(default_factory=list)


def _read_list_config_resources_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ListConfigResourcesRequest, int]:
    resource_types: list[int] = []
    if version >= 1:
        count, position = read_compact_array_length(buffer, position, 1)
        resource_types, position = read_numbers(buffer, position, count, "b")
    position = skip_tags(buffer, position)
    return ListConfigResourcesRequest(resource_types=resource_types), position


def _write_list_config_resources_request(out: bytearray, message: ListConfigResourcesRequest, version: int) -> None:
    if version >= 1:
        write_compact_numbers(out, message.resource_types, "b")
    out += b"\x00"


def read_list_config_resources_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ListConfigResourcesRequest, int]:
    """Read a ListConfigResourcesRequest. Raises MalformedRequest."""
    try:
        return _read_list_config_resources_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ListConfigResourcesRequest") from error


def write_list_config_resources_request(out: bytearray, message: ListConfigResourcesRequest, version: int) -> None:
    """Append a ListConfigResourcesRequest to `out`."""
    _write_list_config_resources_request(out, message, version)


def _read_config_resource(buffer: memoryview, position: int, version: int) -> tuple[ConfigResource, int]:
    resource_name, position = read_compact_string(buffer, position)
    resource_type: int = 16
    if version >= 1:
        (resource_type,) = _INT8.unpack_from(buffer, position)
        position += 1
    position = skip_tags(buffer, position)
    return ConfigResource(resource_name=resource_name, resource_type=resource_type), position


def _write_config_resource(out: bytearray, message: ConfigResource, version: int) -> None:
    write_compact_string(out, message.resource_name)
    if version >= 1:
        out += _INT8.pack(message.resource_type)
    out += b"\x00"


def _read_list_config_resources_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ListConfigResourcesResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    count, position = read_compact_array_length(buffer, position, 1)
    config_resources: list[ConfigResource] = []
    for _ in range(count):
        config_resource, position = _read_config_resource(buffer, position, version)
        config_resources.append(config_resource)
    position = skip_tags(buffer, position)
    return ListConfigResourcesResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, config_resources=config_resources
    ), position


def _write_list_config_resources_response(out: bytearray, message: ListConfigResourcesResponse, version: int) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_array_length(out, len(message.config_resources))
    for config_resource in message.config_resources:
        _write_config_resource(out, config_resource, version)
    out += b"\x00"


def read_list_config_resources_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ListConfigResourcesResponse, int]:
    """Read a ListConfigResourcesResponse. Raises MalformedRequest."""
    try:
        return _read_list_config_resources_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ListConfigResourcesResponse") from error


def write_list_config_resources_response(out: bytearray, message: ListConfigResourcesResponse, version: int) -> None:
    """Append a ListConfigResourcesResponse to `out`."""
    _write_list_config_resources_response(out, message, version)
