"""Messages of describe user scram credentials. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_string,
)
from strandline.wire.structure import Structure

_INT8_INT32 = Struct(">bi")
_INT16 = Struct(">h")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class UserName(Structure):
    """Versions 0 to 0."""

    name: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeUserScramCredentialsRequest(Structure):
    """Versions 0 to 0."""

    users: list[UserName] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CredentialInfo(Structure):
    """Versions 0 to 0."""

    mechanism: int = 0
    iterations: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeUserScramCredentialsResult(Structure):
    """Versions 0 to 0."""

    user: str = ""
    error_code: int = 0
    error_message: str | None = None
    credential_infos: list[CredentialInfo] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeUserScramCredentialsResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list)


def _read_user_name(buffer: memoryview, position: int, version: int) -> tuple[UserName, int]:
    name, position = read_compact_string(buffer, position)
    position = skip_tags(buffer, position)
    return UserName(name=name), position


def _write_user_name(out: bytearray, message: UserName, version: int) -> None:
    write_compact_string(out, message.name)
    out += b"\x00"


def _read_describe_user_scram_credentials_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeUserScramCredentialsRequest, int]:
    count, position = read_compact_nullable_array_length(buffer, position, 1)
    users: list[UserName] | None = None
    if count >= 0:
        users = []
        for _ in range(count):
            user_name, position = _read_user_name(buffer, position, version)
            users.append(user_name)
    position = skip_tags(buffer, position)
    return DescribeUserScramCredentialsRequest(users=users), position


def _write_describe_user_scram_credentials_request(
    out: bytearray, message: DescribeUserScramCredentialsRequest, version: int
) -> None:
    if message.users is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.users))
        for user_name in message.users:
            _write_user_name(out, user_name, version)
    out += b"\x00"


def read_describe_user_scram_credentials_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeUserScramCredentialsRequest, int]:
    """Read a DescribeUserScramCredentialsRequest. Raises MalformedRequest."""
    try:
        return _read_describe_user_scram_credentials_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeUserScramCredentialsRequest") from error


def write_describe_user_scram_credentials_request(
    out: bytearray, message: DescribeUserScramCredentialsRequest, version: int
) -> None:
    """Append a DescribeUserScramCredentialsRequest to `out`."""
    _write_describe_user_scram_credentials_request(out, message, version)


def _read_credential_info(buffer: memoryview, position: int, version: int) -> tuple[CredentialInfo, int]:
    mechanism, iterations = _INT8_INT32.unpack_from(buffer, position)
    position += 5
    position = skip_tags(buffer, position)
    return CredentialInfo(mechanism=mechanism, iterations=iterations), position


def _write_credential_info(out: bytearray, message: CredentialInfo, version: int) -> None:
    out += _INT8_INT32.pack(message.mechanism, message.iterations)
    out += b"\x00"


def _read_describe_user_scram_credentials_result(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeUserScramCredentialsResult, int]:
    user, position = read_compact_string(buffer, position)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = read_compact_nullable_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 5)
    credential_infos: list[CredentialInfo] = []
    for _ in range(count):
        credential_info, position = _read_credential_info(buffer, position, version)
        credential_infos.append(credential_info)
    position = skip_tags(buffer, position)
    return DescribeUserScramCredentialsResult(
        user=user, error_code=error_code, error_message=error_message, credential_infos=credential_infos
    ), position


def _write_describe_user_scram_credentials_result(
    out: bytearray, message: DescribeUserScramCredentialsResult, version: int
) -> None:
    write_compact_string(out, message.user)
    out += _INT16.pack(message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_array_length(out, len(message.credential_infos))
    for credential_info in message.credential_infos:
        _write_credential_info(out, credential_info, version)
    out += b"\x00"


def _read_describe_user_scram_credentials_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeUserScramCredentialsResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 5)
    results: list[DescribeUserScramCredentialsResult] = []
    for _ in range(count):
        describe_user_scram_credentials_result, position = _read_describe_user_scram_credentials_result(
            buffer, position, version
        )
        results.append(describe_user_scram_credentials_result)
    position = skip_tags(buffer, position)
    return DescribeUserScramCredentialsResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, error_message=error_message, results=results
    ), position


def _write_describe_user_scram_credentials_response(
    out: bytearray, message: DescribeUserScramCredentialsResponse, version: int
) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_array_length(out, len(message.results))
    for describe_user_scram_credentials_result in message.results:
        _write_describe_user_scram_credentials_result(out, describe_user_scram_credentials_result, version)
    out += b"\x00"


def read_describe_user_scram_credentials_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeUserScramCredentialsResponse, int]:
    """Read a DescribeUserScramCredentialsResponse. Raises MalformedRequest."""
    try:
        return _read_describe_user_scram_credentials_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeUserScramCredentialsResponse") from error


def write_describe_user_scram_credentials_response(
    out: bytearray, message: DescribeUserScramCredentialsResponse, version: int
) -> None:
    """Append a DescribeUserScramCredentialsResponse to `out`."""
    _write_describe_user_scram_credentials_response(out, message, version)
