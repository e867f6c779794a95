"""Messages of update features. Written by tools/generate_messages.py: do not edit."""

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
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FeatureUpdateKey(Structure):
    """Versions 0 to 2."""

    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False  # up to version 0
    upgrade_type: int = 1  # from version 1 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class UpdateFeaturesRequest(Structure):
    """Versions 0 to 2."""

    timeout_ms: int = 60000
    feature_updates: list[FeatureUpdateKey] = field(default_factory=list)
    validate_only: bool = False  # from version 1 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class UpdatableFeatureResult(Structure):
    """Versions 0 to 1."""

    feature: str = ""
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class UpdateFeaturesResponse(Structure):
    """Versions 0 to 2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    results: list[UpdatableFeatureResult] = field(default_factory=list)  # up to version 1


def _read_feature_update_key(buffer: memoryview, position: int, version: int) -> tuple[FeatureUpdateKey, int]:
    feature, position = read_compact_string(buffer, position)
    (max_version_level,) = _INT16.unpack_from(buffer, position)
    position += 2
    allow_downgrade: bool = False
    if version <= 0:
        (allow_downgrade,) = _BOOL.unpack_from(buffer, position)
        position += 1
    upgrade_type: int = 1
    if version >= 1:
        (upgrade_type,) = _INT8.unpack_from(buffer, position)
        position += 1
    position = skip_tags(buffer, position)
    return FeatureUpdateKey(
        feature=feature, max_version_level=max_version_level, allow_downgrade=allow_downgrade, upgrade_type=upgrade_type
    ), position


def _write_feature_update_key(out: bytearray, message: FeatureUpdateKey, version: int) -> None:
    write_compact_string(out, message.feature)
    out += _INT16.pack(message.max_version_level)
    if version <= 0:
        out += _BOOL.pack(message.allow_downgrade)
    if version >= 1:
        out += _INT8.pack(message.upgrade_type)
    out += b"\x00"


def _read_update_features_request(buffer: memoryview, position: int, version: int) -> tuple[UpdateFeaturesRequest, int]:
    (timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 3)
    feature_updates: list[FeatureUpdateKey] = []
    for _ in range(count):
        feature_update_key, position = _read_feature_update_key(buffer, position, version)
        feature_updates.append(feature_update_key)
    validate_only: bool = False
    if version >= 1:
        (validate_only,) = _BOOL.unpack_from(buffer, position)
        position += 1
    position = skip_tags(buffer, position)
    return UpdateFeaturesRequest(
        timeout_ms=timeout_ms, feature_updates=feature_updates, validate_only=validate_only
    ), position


def _write_update_features_request(out: bytearray, message: UpdateFeaturesRequest, version: int) -> None:
    out += _INT32.pack(message.timeout_ms)
    write_compact_array_length(out, len(message.feature_updates))
    for feature_update_key in message.feature_updates:
        _write_feature_update_key(out, feature_update_key, version)
    if version >= 1:
        out += _BOOL.pack(message.validate_only)
    out += b"\x00"


def read_update_features_request(buffer: memoryview, position: int, version: int) -> tuple[UpdateFeaturesRequest, int]:
    """Read a UpdateFeaturesRequest. Raises MalformedRequest."""
    try:
        return _read_update_features_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("UpdateFeaturesRequest") from error


def write_update_features_request(out: bytearray, message: UpdateFeaturesRequest, version: int) -> None:
    """Append a UpdateFeaturesRequest to `out`."""
    _write_update_features_request(out, message, version)


def _read_updatable_feature_result(
    buffer: memoryview, position: int, version: int
) -> tuple[UpdatableFeatureResult, int]:
    feature, position = read_compact_string(buffer, position)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return UpdatableFeatureResult(feature=feature, error_code=error_code, error_message=error_message), position


def _write_updatable_feature_result(out: bytearray, message: UpdatableFeatureResult, version: int) -> None:
    write_compact_string(out, message.feature)
    out += _INT16.pack(message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def _read_update_features_response(
    buffer: memoryview, position: int, version: int
) -> tuple[UpdateFeaturesResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    results: list[UpdatableFeatureResult] = []
    if version <= 1:
        count, position = read_compact_array_length(buffer, position, 4)
        results = []
        for _ in range(count):
            updatable_feature_result, position = _read_updatable_feature_result(buffer, position, version)
            results.append(updatable_feature_result)
    position = skip_tags(buffer, position)
    return UpdateFeaturesResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, error_message=error_message, results=results
    ), position


def _write_update_features_response(out: bytearray, message: UpdateFeaturesResponse, version: int) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    if version <= 1:
        write_compact_array_length(out, len(message.results))
        for updatable_feature_result in message.results:
            _write_updatable_feature_result(out, updatable_feature_result, version)
    out += b"\x00"


def read_update_features_response(
    buffer: memoryview, position: int, version: int
) -> tuple[UpdateFeaturesResponse, int]:
    """Read a UpdateFeaturesResponse. Raises MalformedRequest."""
    try:
        return _read_update_features_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("UpdateFeaturesResponse") from error


def write_update_features_response(out: bytearray, message: UpdateFeaturesResponse, version: int) -> None:
    """Append a UpdateFeaturesResponse to `out`."""
    _write_update_features_response(out, message, version)
