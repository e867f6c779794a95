"""A connection to a leader, over which one request at a time is under way.

Answers are received into the room from which their records are written. It learns the other side's versions first, and
that it is a broker of this cluster: one of another cluster may listen at the address of a dead one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from struct import Struct
from typing import Final, Self, TypeAlias, cast

from strandline.errors import UnsupportedVersion
from strandline.replication.fetching.frames import FrameRoom, FrameRooms
from strandline.wire.api import BROKER_SOFTWARE, KNOWN_APIS, ApiKey, VersionRange
from strandline.wire.errors import ErrorCode
from strandline.wire.fetch_client import FIRST_OF_FOLLOWERS, read_correlation_id
from strandline.wire.kept_connection import BrokerAddress
from strandline.wire.messages.api_versions import ApiVersionsRequest
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from strandline.wire.negotiation import common_versions, newest_version
from strandline.wire.primitives import MalformedRequest
from strandline.wire.registry import Message, decode_response, encode_request

logger = logging.getLogger(__name__)

Answered: TypeAlias = Callable[[memoryview, FrameRoom], None]

_LENGTH: Final = Struct(">i")
_MOST_BYTES: Final = 1 << 30


class LeaderConnection(asyncio.BufferedProtocol):
    """Opened by `open`. Everything runs on the event loop."""

    def __init__(self, client_id: str) -> None:
        self.client_id: Final = client_id
        self.over: Final[asyncio.Future[ConnectionError]] = asyncio.get_running_loop().create_future()
        """Why it has ended."""
        self.rooms: Final = FrameRooms()
        self._versions: dict[ApiKey, VersionRange] = {}
        self._transport: asyncio.Transport | None = None
        self._room = self.rooms.take()
        self._filled = self._size = 0
        self._last_id = 0
        self._answered: Answered | None = None

    @classmethod
    async def open(cls, address: BrokerAddress, *, client_id: str, cluster_id: str) -> Self:
        """Connect and make sure who is there. Raises OSError, MalformedRequest or UnsupportedVersion."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: cls(client_id), address.host, address.port)
        try:
            await connection._negotiate(cluster_id)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _negotiate(self, cluster_id: str) -> None:
        versions = ApiVersionsRequest(client_software_name=BROKER_SOFTWARE, client_software_version="1")
        answer = await self.call(ApiKey.API_VERSIONS, versions, version=KNOWN_APIS[ApiKey.API_VERSIONS].max)
        if answer.error_code:
            raise UnsupportedVersion(f"The broker answered ApiVersions with {ErrorCode(answer.error_code).name}.")
        self._versions = common_versions(answer)
        if self.version_of(ApiKey.FETCH) < FIRST_OF_FOLLOWERS:
            raise UnsupportedVersion(f"The broker does not offer Fetch {FIRST_OF_FOLLOWERS}, which followers need.")
        cluster = await self.call(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
        if cluster.cluster_id != cluster_id:
            raise ConnectionError(f"A broker of another cluster ({cluster.cluster_id}) answers at that address.")

    def version_of(self, api_key: ApiKey) -> int:
        """The newest version that both sides know. Raises UnsupportedVersion."""
        return newest_version(self._versions, api_key)

    @property
    def is_receiving(self) -> bool:
        """True if a part of an answer is there."""
        return self._filled > 0

    # Asking

    async def call(self, api_key: ApiKey, message: Message, *, version: int | None = None) -> Message:
        """Send a request and wait for its answer. Raises ConnectionError, MalformedRequest or UnsupportedVersion."""
        version = self.version_of(api_key) if version is None else version
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def take(frame: memoryview, room: FrameRoom) -> None:
            if not answered.done():
                answered.set_result(bytes(frame))

        self.ask(api_key, message, take, version=version)
        await asyncio.wait((answered, self.over), return_when=asyncio.FIRST_COMPLETED)
        if not answered.done():
            raise self.over.result()
        return decode_response(api_key, version, memoryview(answered.result()))[1]

    def ask(self, api_key: ApiKey, message: Message, answered: Answered, *, version: int) -> None:
        """Send a request; `answered` gets the frame of the answer, unless the connection ends before."""
        frame = encode_request(api_key, version, self.next_id(), self.client_id, message)
        self.send(_LENGTH.pack(len(frame)) + frame, answered)

    def next_id(self) -> int:
        """The correlation id of the next request."""
        self._last_id = (self._last_id + 1) & 0x7FFF_FFFF
        return self._last_id

    def send(self, frame: bytes | bytearray, answered: Answered) -> None:
        """Send a request with the last of `next_id`, while no other is under way."""
        self._answered = answered
        if self._transport is not None:
            self._transport.write(frame)

    def close(self, reason: ConnectionError | None = None) -> None:
        """End it."""
        self._answered = None
        if not self.over.done():
            self.over.set_result(reason or ConnectionError("The connection was closed."))
        if self._transport is not None:
            self._transport.abort()

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none of asyncio's classes

    def connection_lost(self, error: Exception | None) -> None:
        self.close(ConnectionError("The broker closed the connection." if error is None else str(error)))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room.view[self._filled :]

    def buffer_updated(self, count: int) -> None:
        self._filled += count
        try:
            self._received()
        except (MalformedRequest, ConnectionError) as error:
            self.close(ConnectionError(str(error)))
        except Exception as error:  # an unforeseen failure ends this conversation; the fetcher begins another one
            logger.exception("an answer to %s could not be used", self.client_id)
            self.close(ConnectionError(f"An answer could not be used: {error!r}"))

    def _received(self) -> None:
        room = self._room
        if not self._size:
            if self._filled < _LENGTH.size:
                return
            (length,) = _LENGTH.unpack_from(room.view)
            if not _LENGTH.size <= length <= _MOST_BYTES:
                raise ConnectionError(f"The broker announces an answer of {length} bytes.")
            self._size = size = _LENGTH.size + length
            if size > room.capacity:
                larger = self.rooms.take(size)
                larger.view[: self._filled] = room.view[: self._filled]
                self.rooms.read(room, 0)
                self._room = room = larger
        if self._filled < self._size:
            return
        answered, self._answered = self._answered, None
        if answered is None or self._filled > self._size:
            raise ConnectionError("The broker sends what it was not asked for.")
        frame = room.view[_LENGTH.size : self._size]
        correlation_id = read_correlation_id(frame)
        if correlation_id != self._last_id:
            raise ConnectionError(f"The broker answers request {correlation_id}, which is not open.")
        size, self._size, self._filled = self._size, 0, 0
        try:
            answered(frame, room)
        finally:
            self.rooms.read(room, size)
            self._room = self.rooms.take()
