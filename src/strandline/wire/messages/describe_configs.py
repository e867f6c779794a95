"""Messages of describe configs. Written by tools/generate_messages.py: do not edit."""

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
_BOOL_INT8_BOOL = Struct(">?b?")
_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeConfigsResource(Structure):
    """Versions 1 to 4."""

    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeConfigsRequest(Structure):
    """Versions 1 to 4."""

    resources: list[DescribeConfigsResource] = field(default_factory=list)
    include_synonyms: bool = False
    include_documentation: bool = False  # from version 3 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeConfigsSynonym(Structure):
    """Versions 1 to 4."""

    name: str = ""
    value: str | None = ""
    source: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeConfigsResourceResult(Structure):
    """Versions 1 to 4."""

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = field(default_factory=list)
    config_type: int = 0  # from version 3 on
    documentation: str | None = ""  # from version 3 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeConfigsResult(Structure):
    """Versions 1 to 4."""

    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeConfigsResponse(Structure):
    """Versions 1 to 4."""

    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = field(default_factory=list)


def _read_describe_configs_resource(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeConfigsResource, int]:
    flexible = version >= 4
    (resource_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    resource_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_nullable_array_length(buffer, position, 1)
        if flexible
        else read_nullable_array_length(buffer, position, 1)
    )
    configuration_keys: list[str] | None = None
    if count >= 0:
        configuration_keys = []
        for _ in range(count):
            text, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
            configuration_keys.append(text)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeConfigsResource(
        resource_type=resource_type, resource_name=resource_name, configuration_keys=configuration_keys
    ), position


def _write_describe_configs_resource(out: bytearray, message: DescribeConfigsResource, version: int) -> None:
    flexible = version >= 4
    out += _INT8.pack(message.resource_type)
    if flexible:
        write_compact_string(out, message.resource_name)
    else:
        write_string(out, message.resource_name)
    if message.configuration_keys is None:
        if flexible:
            write_compact_array_length(out, -1)
        else:
            write_array_length(out, -1)
    else:
        if flexible:
            write_compact_array_length(out, len(message.configuration_keys))
        else:
            write_array_length(out, len(message.configuration_keys))
        for text in message.configuration_keys:
            if flexible:
                write_compact_string(out, text)
            else:
                write_string(out, text)
    if flexible:
        out += b"\x00"


def _read_describe_configs_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeConfigsRequest, int]:
    flexible = version >= 4
    count, position = (
        read_compact_array_length(buffer, position, 3) if flexible else read_array_length(buffer, position, 3)
    )
    resources: list[DescribeConfigsResource] = []
    for _ in range(count):
        describe_configs_resource, position = _read_describe_configs_resource(buffer, position, version)
        resources.append(describe_configs_resource)
    (include_synonyms,) = _BOOL.unpack_from(buffer, position)
    position += 1
    include_documentation: bool = False
    if version >= 3:
        (include_documentation,) = _BOOL.unpack_from(buffer, position)
        position += 1
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeConfigsRequest(
        resources=resources, include_synonyms=include_synonyms, include_documentation=include_documentation
    ), position


def _write_describe_configs_request(out: bytearray, message: DescribeConfigsRequest, version: int) -> None:
    flexible = version >= 4
    if flexible:
        write_compact_array_length(out, len(message.resources))
    else:
        write_array_length(out, len(message.resources))
    for describe_configs_resource in message.resources:
        _write_describe_configs_resource(out, describe_configs_resource, version)
    out += _BOOL.pack(message.include_synonyms)
    if version >= 3:
        out += _BOOL.pack(message.include_documentation)
    if flexible:
        out += b"\x00"


def read_describe_configs_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeConfigsRequest, int]:
    """Read a DescribeConfigsRequest. Raises MalformedRequest."""
    try:
        return _read_describe_configs_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeConfigsRequest") from error


def write_describe_configs_request(out: bytearray, message: DescribeConfigsRequest, version: int) -> None:
    """Append a DescribeConfigsRequest to `out`."""
    _write_describe_configs_request(out, message, version)


def _read_describe_configs_synonym(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeConfigsSynonym, int]:
    flexible = version >= 4
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    value_, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    (source,) = _INT8.unpack_from(buffer, position)
    position += 1
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeConfigsSynonym(name=name, value=value_, source=source), position


def _write_describe_configs_synonym(out: bytearray, message: DescribeConfigsSynonym, version: int) -> None:
    flexible = version >= 4
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_nullable_string(out, message.value)
    else:
        write_nullable_string(out, message.value)
    out += _INT8.pack(message.source)
    if flexible:
        out += b"\x00"


def _read_describe_configs_resource_result(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeConfigsResourceResult, int]:
    flexible = version >= 4
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    value_, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    read_only, config_source, is_sensitive = _BOOL_INT8_BOOL.unpack_from(buffer, position)
    position += 3
    count, position = (
        read_compact_array_length(buffer, position, 3) if flexible else read_array_length(buffer, position, 3)
    )
    synonyms: list[DescribeConfigsSynonym] = []
    for _ in range(count):
        describe_configs_synonym, position = _read_describe_configs_synonym(buffer, position, version)
        synonyms.append(describe_configs_synonym)
    config_type: int = 0
    documentation: str | None = ""
    if version >= 3:
        (config_type,) = _INT8.unpack_from(buffer, position)
        position += 1
        documentation, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeConfigsResourceResult(
        name=name,
        value=value_,
        read_only=read_only,
        config_source=config_source,
        is_sensitive=is_sensitive,
        synonyms=synonyms,
        config_type=config_type,
        documentation=documentation,
    ), position


def _write_describe_configs_resource_result(
    out: bytearray, message: DescribeConfigsResourceResult, version: int
) -> None:
    flexible = version >= 4
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_nullable_string(out, message.value)
    else:
        write_nullable_string(out, message.value)
    out += _BOOL_INT8_BOOL.pack(message.read_only, message.config_source, message.is_sensitive)
    if flexible:
        write_compact_array_length(out, len(message.synonyms))
    else:
        write_array_length(out, len(message.synonyms))
    for describe_configs_synonym in message.synonyms:
        _write_describe_configs_synonym(out, describe_configs_synonym, version)
    if version >= 3:
        out += _INT8.pack(message.config_type)
        if flexible:
            write_compact_nullable_string(out, message.documentation)
        else:
            write_nullable_string(out, message.documentation)
    if flexible:
        out += b"\x00"


def _read_describe_configs_result(buffer: memoryview, position: int, version: int) -> tuple[DescribeConfigsResult, int]:
    flexible = version >= 4
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    (resource_type,) = _INT8.unpack_from(buffer, position)
    position += 1
    resource_name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 6) if flexible else read_array_length(buffer, position, 6)
    )
    configs: list[DescribeConfigsResourceResult] = []
    for _ in range(count):
        describe_configs_resource_result, position = _read_describe_configs_resource_result(buffer, position, version)
        configs.append(describe_configs_resource_result)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeConfigsResult(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
        configs=configs,
    ), position


def _write_describe_configs_result(out: bytearray, message: DescribeConfigsResult, version: int) -> None:
    flexible = version >= 4
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
        write_compact_array_length(out, len(message.configs))
    else:
        write_array_length(out, len(message.configs))
    for describe_configs_resource_result in message.configs:
        _write_describe_configs_resource_result(out, describe_configs_resource_result, version)
    if flexible:
        out += b"\x00"


def _read_describe_configs_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeConfigsResponse, int]:
    flexible = version >= 4
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 6) if flexible else read_array_length(buffer, position, 6)
    )
    results: list[DescribeConfigsResult] = []
    for _ in range(count):
        describe_configs_result, position = _read_describe_configs_result(buffer, position, version)
        results.append(describe_configs_result)
    if flexible:
        position = skip_tags(buffer, position)
    return DescribeConfigsResponse(throttle_time_ms=throttle_time_ms, results=results), position


def _write_describe_configs_response(out: bytearray, message: DescribeConfigsResponse, version: int) -> None:
    flexible = version >= 4
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.results))
    else:
        write_array_length(out, len(message.results))
    for describe_configs_result in message.results:
        _write_describe_configs_result(out, describe_configs_result, version)
    if flexible:
        out += b"\x00"


def read_describe_configs_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeConfigsResponse, int]:
    """Read a DescribeConfigsResponse. Raises MalformedRequest."""
    try:
        return _read_describe_configs_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeConfigsResponse") from error


def write_describe_configs_response(out: bytearray, message: DescribeConfigsResponse, version: int) -> None:
    """Append a DescribeConfigsResponse to `out`."""
    _write_describe_configs_response(out, message, version)
