"""Frames to messages and back, for every API.

A frame is a header and a message, without the four bytes of length before it. Message modules are imported at the
first use of their API. Trailing bytes of a request are ignored, as Kafka does: librdkafka sends some.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from struct import Struct
from typing import Any, Final, NamedTuple

from strandline.wire.api import API_VERSIONS, KNOWN_APIS, ApiKey, response_header_version
from strandline.wire.errors import ErrorCode
from strandline.wire.primitives import (
    DECODING_FAILURES,
    INT32,
    MAX_ELEMENTS,
    MalformedRequest,
    at_most,
    read_nullable_string,
    skip_tags,
    truncated,
    write_nullable_string,
)

# Messages differ by API; callers know which class they get. A union of 160 classes would not tell a reader more.
Message = Any
Reader = Callable[[memoryview, int, int], tuple[Message, int]]
Writer = Callable[[bytearray, Message, int], None]

_HEADER: Final = Struct(">hhi")
_FRAME_HEAD: Final = Struct(">ii")
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)


class RequestHeader(NamedTuple):
    """API, version and client of a request. `api_key` may be a number that no API has: see `UnsupportedApi`."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class UnsupportedApi(MalformedRequest):
    """The API, or this version of it, is not known. `header` holds the fields that could be read."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"API {header.api_key} version {header.api_version} is not known.")
        self.header = header


class MessageCodec(NamedTuple):
    """The functions of one API."""

    read_request: Reader
    write_request: Writer
    read_response: Reader
    write_response: Writer


_codecs: dict[int, MessageCodec] = {}


def codec(api_key: ApiKey) -> MessageCodec:
    """The functions of one API; imports their module when it is used for the first time."""
    found = _codecs.get(api_key)
    if found is None:
        name = api_key.name.lower()
        module = importlib.import_module(f"strandline.wire.messages.{name}")
        found = MessageCodec(
            getattr(module, f"read_{name}_request"),
            getattr(module, f"write_{name}_request"),
            getattr(module, f"read_{name}_response"),
            getattr(module, f"write_{name}_response"),
        )
        _codecs[api_key] = found
    return found


def read_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """The header, and where the message starts.

    Raises UnsupportedApi for an API or version we have no message of (its header cannot be read to the end then, so
    the client id is missing), MalformedRequest if the bytes are no header.
    """
    try:
        api_key, api_version, correlation_id = _HEADER.unpack_from(frame)
        versions = KNOWN_APIS.get(api_key)
        if versions is None or not versions.min <= api_version <= versions.max:
            raise UnsupportedApi(RequestHeader(api_key, api_version, correlation_id, None))
        # The client id is a legacy string in all versions, so that it can be read before the version is known.
        client_id, position = read_nullable_string(frame, _HEADER.size)
        if api_version >= versions.first_flexible:
            position = skip_tags(frame, position)
    except DECODING_FAILURES as error:
        raise truncated("The request header") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def decode_request(frame: memoryview) -> tuple[RequestHeader, Message]:
    """Header and message of a request. Raises MalformedRequest, UnsupportedApi."""
    header, position = read_request_header(frame)
    read = codec(ApiKey(header.api_key)).read_request
    if len(frame) <= MAX_ELEMENTS:  # a shorter frame cannot hold more elements
        message, _ = read(frame, position, header.api_version)
    else:
        with at_most(MAX_ELEMENTS):
            message, _ = read(frame, position, header.api_version)
    return header, message


def read_request(frame: memoryview, api_key: int, api_version: int) -> tuple[str | None, Message]:
    """Client id and message of a request whose API and version the caller has read and knows. Raises MalformedRequest.

    The same as `decode_request`, for servers, which look at these numbers first.
    """
    try:
        client_id, position = read_nullable_string(frame, _HEADER.size)
        if api_version >= KNOWN_APIS[api_key].first_flexible:  # type: ignore[index]  # a number from the wire
            # No client sends tags in its header.
            position = position + 1 if frame[position] == 0 else skip_tags(frame, position)
    except DECODING_FAILURES as error:
        raise truncated("The request header") from error
    found = _codecs.get(api_key)
    read = codec(ApiKey(api_key)).read_request if found is None else found.read_request
    if len(frame) <= MAX_ELEMENTS:  # a shorter frame cannot hold more elements
        return client_id, read(frame, position, api_version)[0]
    with at_most(MAX_ELEMENTS):
        return client_id, read(frame, position, api_version)[0]


def encode_request(
    api_key: ApiKey, api_version: int, correlation_id: int, client_id: str | None, request: Message
) -> bytes:
    """A request frame without its length."""
    out = bytearray(_HEADER.pack(api_key, api_version, correlation_id))
    write_nullable_string(out, client_id)
    if api_version >= KNOWN_APIS[api_key].first_flexible:
        out.append(0)
    codec(api_key).write_request(out, request, api_version)
    return bytes(out)


def encode_response(api_key: ApiKey, api_version: int, correlation_id: int, response: Message) -> bytes:
    """A response frame without its length."""
    out = bytearray(INT32.pack(correlation_id))
    if response_header_version(api_key, api_version):
        out.append(0)
    codec(api_key).write_response(out, response, api_version)
    return bytes(out)


def response_frame(api_key: int, api_version: int, correlation_id: int, response: Message) -> bytearray:
    """A response frame with its length before it: what `encode_response` gives, without copies of it."""
    out = bytearray(8)
    if api_version >= KNOWN_APIS[api_key].first_flexible and api_key != _API_VERSIONS:  # type: ignore[index]
        out.append(0)
    found = _codecs.get(api_key)
    write = codec(ApiKey(api_key)).write_response if found is None else found.write_response
    write(out, response, api_version)
    _FRAME_HEAD.pack_into(out, 0, len(out) - 4, correlation_id)
    return out


def unsupported_api_versions(correlation_id: int) -> bytes:
    """The answer to an ApiVersions request that is too new for us: version 0, so that every client can read it."""
    from strandline.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

    versions = API_VERSIONS[ApiKey.API_VERSIONS]
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=versions.min, max_version=versions.max)],
    )
    return encode_response(ApiKey.API_VERSIONS, 0, correlation_id, response)


def decode_response(api_key: ApiKey, api_version: int, frame: memoryview) -> tuple[int, Message]:
    """Correlation id and message of a response. Raises MalformedRequest."""
    try:
        (correlation_id,) = INT32.unpack_from(frame)
        position = 4
        if response_header_version(api_key, api_version):
            position = skip_tags(frame, position)
    except DECODING_FAILURES as error:
        raise truncated("The response header") from error
    message, _ = codec(api_key).read_response(frame, position, api_version)
    return correlation_id, message
