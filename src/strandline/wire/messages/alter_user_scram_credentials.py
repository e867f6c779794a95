"""Messages of alter user scram credentials. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_bytes,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
)
from strandline.wire.structure import Structure

_INT8 = Struct(">b")
_INT8_INT32 = Struct(">bi")
_INT16 = Struct(">h")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ScramCredentialDeletion(Structure):
    """Versions 0 to 0."""

    name: str = ""
    mechanism: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ScramCredentialUpsertion(Structure):
    """Versions 0 to 0."""

    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterUserScramCredentialsRequest(Structure):
    """Versions 0 to 0."""

    deletions: list[ScramCredentialDeletion] = field(default_factory=list)
    upsertions: list[ScramCredentialUpsertion] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterUserScramCredentialsResult(Structure):
    """Versions 0 to 0."""

    user: str = ""
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AlterUserScramCredentialsResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    results: list[AlterUserScramCredentialsResult] = field(default_factory=list)


def _read_scram_credential_deletion(
    buffer: memoryview, position: int, version: int
) -> tuple[ScramCredentialDeletion, int]:
    name, position = read_compact_string(buffer, position)
    (mechanism,) = _INT8.unpack_from(buffer, position)
    position += 1
    position = skip_tags(buffer, position)
    return ScramCredentialDeletion(name=name, mechanism=mechanism), position


def _write_scram_credential_deletion(out: bytearray, message: ScramCredentialDeletion, version: int) -> None:
    write_compact_string(out, message.name)
    out += _INT8.pack(message.mechanism)
    out += b"\x00"


def _read_scram_credential_upsertion(
    buffer: memoryview, position: int, version: int
) -> tuple[ScramCredentialUpsertion, int]:
    name, position = read_compact_string(buffer, position)
    mechanism, iterations = _INT8_INT32.unpack_from(buffer, position)
    position += 5
    salt, position = read_compact_bytes(buffer, position)
    salted_password, position = read_compact_bytes(buffer, position)
    position = skip_tags(buffer, position)
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted_password
    ), position


def _write_scram_credential_upsertion(out: bytearray, message: ScramCredentialUpsertion, version: int) -> None:
    write_compact_string(out, message.name)
    out += _INT8_INT32.pack(message.mechanism, message.iterations)
    write_compact_bytes(out, message.salt)
    write_compact_bytes(out, message.salted_password)
    out += b"\x00"


def _read_alter_user_scram_credentials_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterUserScramCredentialsRequest, int]:
    count, position = read_compact_array_length(buffer, position, 2)
    deletions: list[ScramCredentialDeletion] = []
    for _ in range(count):
        scram_credential_deletion, position = _read_scram_credential_deletion(buffer, position, version)
        deletions.append(scram_credential_deletion)
    count, position = read_compact_array_length(buffer, position, 8)
    upsertions: list[ScramCredentialUpsertion] = []
    for _ in range(count):
        scram_credential_upsertion, position = _read_scram_credential_upsertion(buffer, position, version)
        upsertions.append(scram_credential_upsertion)
    position = skip_tags(buffer, position)
    return AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions), position


def _write_alter_user_scram_credentials_request(
    out: bytearray, message: AlterUserScramCredentialsRequest, version: int
) -> None:
    write_compact_array_length(out, len(message.deletions))
    for scram_credential_deletion in message.deletions:
        _write_scram_credential_deletion(out, scram_credential_deletion, version)
    write_compact_array_length(out, len(message.upsertions))
    for scram_credential_upsertion in message.upsertions:
        _write_scram_credential_upsertion(out, scram_credential_upsertion, version)
    out += b"\x00"


def read_alter_user_scram_credentials_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterUserScramCredentialsRequest, int]:
    """Read a AlterUserScramCredentialsRequest. Raises MalformedRequest."""
    try:
        return _read_alter_user_scram_credentials_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterUserScramCredentialsRequest") from error


def write_alter_user_scram_credentials_request(
    out: bytearray, message: AlterUserScramCredentialsRequest, version: int
) -> None:
    """Append a AlterUserScramCredentialsRequest to `out`."""
    _write_alter_user_scram_credentials_request(out, message, version)


def _read_alter_user_scram_credentials_result(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterUserScramCredentialsResult, int]:
    user, position = read_compact_string(buffer, position)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return AlterUserScramCredentialsResult(user=user, error_code=error_code, error_message=error_message), position


def _write_alter_user_scram_credentials_result(
    out: bytearray, message: AlterUserScramCredentialsResult, version: int
) -> None:
    write_compact_string(out, message.user)
    out += _INT16.pack(message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += b"\x00"


def _read_alter_user_scram_credentials_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterUserScramCredentialsResponse, int]:
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 4)
    results: list[AlterUserScramCredentialsResult] = []
    for _ in range(count):
        alter_user_scram_credentials_result, position = _read_alter_user_scram_credentials_result(
            buffer, position, version
        )
        results.append(alter_user_scram_credentials_result)
    position = skip_tags(buffer, position)
    return AlterUserScramCredentialsResponse(throttle_time_ms=throttle_time_ms, results=results), position


def _write_alter_user_scram_credentials_response(
    out: bytearray, message: AlterUserScramCredentialsResponse, version: int
) -> None:
    out += _INT32.pack(message.throttle_time_ms)
    write_compact_array_length(out, len(message.results))
    for alter_user_scram_credentials_result in message.results:
        _write_alter_user_scram_credentials_result(out, alter_user_scram_credentials_result, version)
    out += b"\x00"


def read_alter_user_scram_credentials_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AlterUserScramCredentialsResponse, int]:
    """Read a AlterUserScramCredentialsResponse. Raises MalformedRequest."""
    try:
        return _read_alter_user_scram_credentials_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AlterUserScramCredentialsResponse") from error


def write_alter_user_scram_credentials_response(
    out: bytearray, message: AlterUserScramCredentialsResponse, version: int
) -> None:
    """Append a AlterUserScramCredentialsResponse to `out`."""
    _write_alter_user_scram_credentials_response(out, message, version)
