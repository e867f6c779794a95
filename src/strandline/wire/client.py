"""A small blocking client for commands, tools and tests: one connection, one request at a time.

    with Client.connect("127.0.0.1", 9092) as client:
        answer = client.request(ApiKey.METADATA, MetadataRequest(topics=None))

It asks for the broker's versions first and then uses the newest version both sides know. It does not retry, follow
leaders or heartbeat: callers that need that use a real client library.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from struct import Struct
from types import TracebackType
from typing import Final, Self

from strandline.wire.api import KNOWN_APIS, ApiKey, VersionRange
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.wire.negotiation import common_versions, newest_version
from strandline.wire.registry import Message, decode_response, encode_request

_LENGTH: Final = Struct(">i")
_SOFTWARE: Final = "strandline"


class ConnectionClosed(ConnectionError):
    """The broker closed the connection instead of answering."""


class Client:
    """One connection to one broker. Not safe to share between threads."""

    def __init__(self, connection: socket.socket, client_id: str | None) -> None:
        self._socket = connection
        self._client_id = client_id
        self._correlation_id = 0
        self.versions: Mapping[ApiKey, VersionRange] = {}

    @classmethod
    def connect(
        cls, host: str, port: int, *, client_id: str | None = _SOFTWARE, timeout_s: float = 30.0, negotiate: bool = True
    ) -> Self:
        """Connect and, unless `negotiate` is False, learn the broker's versions. Raises OSError."""
        connection = socket.create_connection((host, port), timeout=timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = cls(connection, client_id)
        try:
            if negotiate:
                client.negotiate()
        except BaseException:
            client.close()
            raise
        return client

    def negotiate(self) -> ApiVersionsResponse:
        """Ask for the broker's versions: with our newest first, and with version 0 if that is too new for it."""
        answer = self._api_versions(KNOWN_APIS[ApiKey.API_VERSIONS].max)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            answer = self._api_versions(0)
        self.versions = common_versions(answer)
        return answer

    def _api_versions(self, version: int) -> ApiVersionsResponse:
        request = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="1")
        frame = self._send(ApiKey.API_VERSIONS, version, request)
        (error_code,) = Struct(">h").unpack_from(frame, 4)
        if error_code == ErrorCode.UNSUPPORTED_VERSION:
            version = 0  # the broker could not know our version, and answered in the oldest
        _, answer = decode_response(ApiKey.API_VERSIONS, version, memoryview(frame))
        if not isinstance(answer, ApiVersionsResponse):
            raise TypeError(f"ApiVersions was answered by {type(answer).__name__}.")
        return answer

    def request(self, api_key: ApiKey, message: Message, *, version: int | None = None) -> Message:
        """Send one request and wait for its response. Raises OSError, MalformedRequest, UnsupportedVersion."""
        version = self.version_of(api_key) if version is None else version
        frame = self._send(api_key, version, message)
        correlation_id, response = decode_response(api_key, version, memoryview(frame))
        if correlation_id != self._correlation_id:
            raise ConnectionError(f"The broker answered request {correlation_id} instead of {self._correlation_id}.")
        return response

    def version_of(self, api_key: ApiKey) -> int:
        """The newest version that both sides know. Raises UnsupportedVersion."""
        return newest_version(self.versions, api_key)

    def offers(self, api_key: ApiKey) -> bool:
        """Whether the broker announced the API, in a version that we know."""
        versions = self.versions.get(api_key)
        return versions is not None and versions.min <= versions.max

    def _send(self, api_key: ApiKey, version: int, message: Message) -> bytes:
        self._correlation_id += 1
        return self.exchange(encode_request(api_key, version, self._correlation_id, self._client_id, message))

    def exchange(self, frame: bytes) -> bytes:
        """Send a frame as it is and give back the next frame."""
        self.send(frame)
        return self.receive()

    def send(self, frame: bytes) -> None:
        """Send a frame without waiting for an answer."""
        self._socket.sendall(_LENGTH.pack(len(frame)) + frame)

    def receive(self) -> bytes:
        """The next frame. Raises ConnectionClosed."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise ConnectionClosed("The broker closed the connection.")
            data += part
        return bytes(data)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
