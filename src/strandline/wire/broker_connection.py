"""A connection from one broker to another, on the event loop, that carries several requests at a time.

    connection = await BrokerConnection.open("10.0.0.7", 9092, client_id="broker-2")
    answer = await connection.request(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatRequest(...))

It asks for the other side's versions first and then uses the newest version both sides know. A connection that fails in
any way is over: all requests that wait for an answer get a ConnectionError. A caller whose request times out has to
close the connection, since answers come in the order of requests. Not here: which broker to ask, how long to wait, when
to try again.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from struct import Struct
from typing import Final, Self

from strandline.errors import UnsupportedVersion
from strandline.wire.api import BROKER_SOFTWARE, KNOWN_APIS, ApiKey, VersionRange
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.api_versions import ApiVersionsRequest
from strandline.wire.negotiation import common_versions, newest_version
from strandline.wire.primitives import INT32
from strandline.wire.registry import Message, decode_response, encode_request

_LENGTH: Final = Struct(">i")
_MAX_FRAME: Final = 100 * 1024 * 1024


class BrokerConnection:
    """One connection to one broker. Opened by `open`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self._reader, self._writer, self._client_id = reader, writer, client_id
        self._versions: Mapping[ApiKey, VersionRange] = {}
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._failure: ConnectionError | None = None
        self._receiving = asyncio.create_task(self._receive(), name=f"answers for {client_id}")

    @classmethod
    async def open(cls, host: str, port: int, *, client_id: str) -> Self:
        """Connect and learn what the other side offers. Raises OSError, MalformedRequest or UnsupportedVersion."""
        reader, writer = await asyncio.open_connection(host, port)
        sock = writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = cls(reader, writer, client_id)
        try:
            await connection._negotiate()
        except BaseException:
            connection.close()
            raise
        return connection

    async def _negotiate(self) -> None:
        request = ApiVersionsRequest(client_software_name=BROKER_SOFTWARE, client_software_version="1")
        answer = await self._exchange(ApiKey.API_VERSIONS, KNOWN_APIS[ApiKey.API_VERSIONS].max, request)
        if answer.error_code:
            name = ErrorCode(answer.error_code).name
            raise UnsupportedVersion(f"The broker answered ApiVersions with {name}.")
        self._versions = common_versions(answer)

    @property
    def is_open(self) -> bool:
        """False once it has failed or was closed."""
        return self._failure is None

    async def request(self, api_key: ApiKey, message: Message) -> Message:
        """Send a request and wait for its answer. Raises ConnectionError, MalformedRequest or UnsupportedVersion."""
        return await self._exchange(api_key, newest_version(self._versions, api_key), message)

    async def _exchange(self, api_key: ApiKey, version: int, message: Message) -> Message:
        if self._failure is not None:
            raise self._failure
        self._last_id = correlation_id = (self._last_id + 1) & 0x7FFF_FFFF
        frame = encode_request(api_key, version, correlation_id, self._client_id, message)
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = answered
        try:
            self._writer.write(_LENGTH.pack(len(frame)) + frame)
            await self._writer.drain()
            _, response = decode_response(api_key, version, memoryview(await answered))
        finally:
            self._waiting.pop(correlation_id, None)
            if answered.done() and not answered.cancelled():
                answered.exception()  # marks it as seen: the connection may have failed while we were still sending
        return response

    async def _receive(self) -> None:
        """Give each answer to its request, until the connection ends."""
        try:
            while True:
                (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
                if not INT32.size <= length <= _MAX_FRAME:
                    raise ConnectionError(f"The broker announces an answer of {length} bytes.")
                frame = await self._reader.readexactly(length)
                (correlation_id,) = INT32.unpack_from(frame)
                answered = self._waiting.pop(correlation_id, None)
                if answered is None:
                    raise ConnectionError(f"The broker answers request {correlation_id}, which is not open.")
                if not answered.done():
                    answered.set_result(frame)
        except asyncio.IncompleteReadError:
            self._fail(ConnectionError("The broker closed the connection."))
        except OSError as error:
            self._fail(ConnectionError(str(error)))

    def _fail(self, failure: ConnectionError) -> None:
        if self._failure is None:
            self._failure = failure
        self._writer.close()
        waiting, self._waiting = self._waiting, {}
        for answered in waiting.values():
            if not answered.done():
                answered.set_exception(failure)

    def close(self) -> None:
        """End it. Requests without an answer get a ConnectionError."""
        self._receiving.cancel()
        self._fail(ConnectionError("The connection was closed."))
