"""Messages of api versions. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_string,
    read_string,
    read_tag,
    read_uvarint,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_string,
    write_string,
    write_tagged_field,
    write_uvarint,
)
from strandline.wire.structure import Structure

_BOOL = Struct(">?")
_INT16 = Struct(">h")
_INT16_INT16 = Struct(">hh")
_INT16_INT16_INT16 = Struct(">hhh")
_INT32 = Struct(">i")
_INT64 = Struct(">q")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ApiVersionsRequest(Structure):
    """Versions 0 to 4."""

    client_software_name: str = ""  # from version 3 on
    client_software_version: str = ""  # from version 3 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ApiVersion(Structure):
    """Versions 0 to 4."""

    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class SupportedFeatureKey(Structure):
    """Versions 3 to 4."""

    name: str = ""
    min_version: int = 0
    max_version: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FinalizedFeatureKey(Structure):
    """Versions 3 to 4."""

    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ApiVersionsResponse(Structure):
    """Versions 0 to 4."""

    error_code: int = 0
    api_keys: list[ApiVersion] = field(default_factory=list)
    throttle_time_ms: int = 0  # from version 1 on
    supported_features: list[SupportedFeatureKey] = field(default_factory=list)  # from version 3 on
    finalized_features_epoch: int = -1  # from version 3 on
    finalized_features: list[FinalizedFeatureKey] = field(default_factory=list)  # from version 3 on
    zk_migration_ready: bool = False  # from version 3 on


def _read_api_versions_request(buffer: memoryview, position: int, version: int) -> tuple[ApiVersionsRequest, int]:
    flexible = version >= 3
    client_software_name: str = ""
    client_software_version: str = ""
    if version >= 3:
        client_software_name, position = (
            read_compact_string(buffer, position) if flexible else read_string(buffer, position)
        )
        client_software_version, position = (
            read_compact_string(buffer, position) if flexible else read_string(buffer, position)
        )
    if flexible:
        position = skip_tags(buffer, position)
    return ApiVersionsRequest(
        client_software_name=client_software_name, client_software_version=client_software_version
    ), position


def _write_api_versions_request(out: bytearray, message: ApiVersionsRequest, version: int) -> None:
    flexible = version >= 3
    if version >= 3:
        if flexible:
            write_compact_string(out, message.client_software_name)
        else:
            write_string(out, message.client_software_name)
        if flexible:
            write_compact_string(out, message.client_software_version)
        else:
            write_string(out, message.client_software_version)
    if flexible:
        out += b"\x00"


def read_api_versions_request(buffer: memoryview, position: int, version: int) -> tuple[ApiVersionsRequest, int]:
    """Read a ApiVersionsRequest. Raises MalformedRequest."""
    try:
        return _read_api_versions_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ApiVersionsRequest") from error


def write_api_versions_request(out: bytearray, message: ApiVersionsRequest, version: int) -> None:
    """Append a ApiVersionsRequest to `out`."""
    _write_api_versions_request(out, message, version)


def _read_api_version(buffer: memoryview, position: int, version: int) -> tuple[ApiVersion, int]:
    flexible = version >= 3
    api_key, min_version, max_version = _INT16_INT16_INT16.unpack_from(buffer, position)
    position += 6
    if flexible:
        position = skip_tags(buffer, position)
    return ApiVersion(api_key=api_key, min_version=min_version, max_version=max_version), position


def _write_api_version(out: bytearray, message: ApiVersion, version: int) -> None:
    flexible = version >= 3
    out += _INT16_INT16_INT16.pack(message.api_key, message.min_version, message.max_version)
    if flexible:
        out += b"\x00"


def _read_supported_feature_key(buffer: memoryview, position: int, version: int) -> tuple[SupportedFeatureKey, int]:
    name, position = read_compact_string(buffer, position)
    min_version, max_version = _INT16_INT16.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return SupportedFeatureKey(name=name, min_version=min_version, max_version=max_version), position


def _write_supported_feature_key(out: bytearray, message: SupportedFeatureKey, version: int) -> None:
    write_compact_string(out, message.name)
    out += _INT16_INT16.pack(message.min_version, message.max_version)
    out += b"\x00"


def _read_finalized_feature_key(buffer: memoryview, position: int, version: int) -> tuple[FinalizedFeatureKey, int]:
    name, position = read_compact_string(buffer, position)
    max_version_level, min_version_level = _INT16_INT16.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return FinalizedFeatureKey(
        name=name, max_version_level=max_version_level, min_version_level=min_version_level
    ), position


def _write_finalized_feature_key(out: bytearray, message: FinalizedFeatureKey, version: int) -> None:
    write_compact_string(out, message.name)
    out += _INT16_INT16.pack(message.max_version_level, message.min_version_level)
    out += b"\x00"


def _read_api_versions_response(buffer: memoryview, position: int, version: int) -> tuple[ApiVersionsResponse, int]:
    flexible = version >= 3
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    count, position = (
        read_compact_array_length(buffer, position, 6) if flexible else read_array_length(buffer, position, 6)
    )
    api_keys: list[ApiVersion] = []
    for _ in range(count):
        api_version, position = _read_api_version(buffer, position, version)
        api_keys.append(api_version)
    throttle_time_ms: int = 0
    if version >= 1:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    supported_features: list[SupportedFeatureKey] = []
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = []
    zk_migration_ready: bool = False
    if flexible:
        count, position = read_uvarint(buffer, position)
        for _ in range(count):
            tag, position, end = read_tag(buffer, position)
            if tag == 0:
                count, position = (
                    read_compact_array_length(buffer, position, 5)
                    if flexible
                    else read_array_length(buffer, position, 5)
                )
                supported_features = []
                for _ in range(count):
                    supported_feature_key, position = _read_supported_feature_key(buffer, position, version)
                    supported_features.append(supported_feature_key)
            elif tag == 1:
                (finalized_features_epoch,) = _INT64.unpack_from(buffer, position)
                position += 8
            elif tag == 2:
                count, position = (
                    read_compact_array_length(buffer, position, 5)
                    if flexible
                    else read_array_length(buffer, position, 5)
                )
                finalized_features = []
                for _ in range(count):
                    finalized_feature_key, position = _read_finalized_feature_key(buffer, position, version)
                    finalized_features.append(finalized_feature_key)
            elif tag == 3:
                (zk_migration_ready,) = _BOOL.unpack_from(buffer, position)
                position += 1
            position = end
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=api_keys,
        throttle_time_ms=throttle_time_ms,
        supported_features=supported_features,
        finalized_features_epoch=finalized_features_epoch,
        finalized_features=finalized_features,
        zk_migration_ready=zk_migration_ready,
    ), position


def _write_api_versions_response(out: bytearray, message: ApiVersionsResponse, version: int) -> None:
    flexible = version >= 3
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_array_length(out, len(message.api_keys))
    else:
        write_array_length(out, len(message.api_keys))
    for api_version in message.api_keys:
        _write_api_version(out, api_version, version)
    if version >= 1:
        out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        tagged = bytearray()
        count = 0
        if message.supported_features:
            value = bytearray()
            if flexible:
                write_compact_array_length(value, len(message.supported_features))
            else:
                write_array_length(value, len(message.supported_features))
            for supported_feature_key in message.supported_features:
                _write_supported_feature_key(value, supported_feature_key, version)
            write_tagged_field(tagged, 0, value)
            count += 1
        if message.finalized_features_epoch != -1:
            value = bytearray()
            value += _INT64.pack(message.finalized_features_epoch)
            write_tagged_field(tagged, 1, value)
            count += 1
        if message.finalized_features:
            value = bytearray()
            if flexible:
                write_compact_array_length(value, len(message.finalized_features))
            else:
                write_array_length(value, len(message.finalized_features))
            for finalized_feature_key in message.finalized_features:
                _write_finalized_feature_key(value, finalized_feature_key, version)
            write_tagged_field(tagged, 2, value)
            count += 1
        if message.zk_migration_ready:
            value = bytearray()
            value += _BOOL.pack(message.zk_migration_ready)
            write_tagged_field(tagged, 3, value)
            count += 1
        write_uvarint(out, count)
        out += tagged


def read_api_versions_response(buffer: memoryview, position: int, version: int) -> tuple[ApiVersionsResponse, int]:
    """Read a ApiVersionsResponse. Raises MalformedRequest."""
    try:
        return _read_api_versions_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ApiVersionsResponse") from error


def write_api_versions_response(out: bytearray, message: ApiVersionsResponse, version: int) -> None:
    """Append a ApiVersionsResponse to `out`."""
    _write_api_versions_response(out, message, version)
