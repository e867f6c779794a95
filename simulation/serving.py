"""The server's end of a connection between brokers: bytes of the real codecs, and the real handlers of Fetch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from strandline.clock import Chance, Clock
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.remote.topics import TieredTopics
from strandline.replication import ReplicaManager
from strandline.server.deadlines import Deadlines
from strandline.server.exchange import Exchange
from strandline.server.fetch_sessions import FetchSessions
from strandline.server.handlers.fetch.handler import FetchHandler
from strandline.server.handlers.offsets import OffsetsHandler
from strandline.server.memory import AnswerMemory
from strandline.server.page_cache import PageCache
from strandline.tasks import TaskSet
from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from strandline.wire.messages.describe_cluster import DescribeClusterResponse
from strandline.wire.registry import Message, decode_request, read_request_header, response_frame

_SERVED = (ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER)
_MEMORY = 1 << 30


class _Context(NamedTuple):
    """What the handler of ListOffsets asks of the context of a request."""

    api_version: int


class BrokerServer:
    """What a broker answers other brokers."""

    def __init__(self, replicas: ReplicaManager, cluster_id: str, clock: Clock, chance: Chance) -> None:
        loop = asyncio.get_running_loop()
        self.partitions = Partitions(TieredTopics(), topic_name=replicas.topic_name, why_missing=replicas.why_missing)
        replicas.add_replica_listener(self.partitions)
        self.cluster_id = cluster_id
        self.answers = AnswerMemory(_MEMORY)
        self.deadlines = Deadlines(loop)
        self.sessions = FetchSessions(100, clock, chance)
        self.fetch = FetchHandler(
            self.partitions,
            self.sessions,
            self.deadlines,
            memory=self.answers,
            pages=PageCache(loop),
            loop=loop,
            max_bytes=1 << 26,
        )
        self.offsets = OffsetsHandler(self.partitions)
        self.tasks = TaskSet()
        self._accepted = 0
        self._connections: dict[ServedConnection, None] = {}

    def accept(self) -> ServedConnection:
        """The protocol of a new connection."""
        self._accepted += 1
        connection = ServedConnection(self, self._accepted)
        self._connections[connection] = None
        return connection

    def left(self, connection: ServedConnection) -> None:
        self._connections.pop(connection, None)

    async def close(self) -> None:
        """Answer nothing more."""
        for connection in tuple(self._connections):
            connection.close(None)
        self.deadlines.close()
        await self.fetch.close()
        await self.tasks.close()


class ServedConnection(asyncio.Protocol):
    """One connection. It is what `Exchange` asks of a connection and of its server."""

    def __init__(self, server: BrokerServer, number: int) -> None:
        self._server = server
        self.connection_id = number
        self.memory = self.server = self
        self.answers = server.answers
        self.is_closed = False
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._open: Exchange | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.close(None)

    def close(self, reason: str | None) -> None:
        """End it; requests that wait are given up."""
        if self.is_closed:
            return
        self.is_closed = True
        exchange, self._open = self._open, None
        if exchange is not None and exchange.on_closed is not None:
            exchange.on_closed()
        self._server.left(self)
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        while len(received) >= 4 and not self.is_closed:
            size = int.from_bytes(received[:4], "big")
            if len(received) < 4 + size:
                return
            frame = memoryview(bytes(received[4 : 4 + size]))
            del received[: 4 + size]
            self._handle(frame)

    def _handle(self, frame: memoryview) -> None:
        header, position = read_request_header(frame)
        key = ApiKey(header.api_key)
        if key is ApiKey.FETCH:
            exchange = Exchange(cast(Any, self), key, header.api_version, header.correlation_id)
            self._open = exchange
            self._server.fetch.handle(frame, position, exchange, header.client_id)
            return
        _, message = decode_request(frame)
        answer: Callable[[Message], None] = lambda found: self._send(  # noqa: E731
            bytes(response_frame(key, header.api_version, header.correlation_id, found))
        )
        if key is ApiKey.API_VERSIONS:
            rows = [
                ApiVersion(api_key=one, min_version=API_VERSIONS[one].min, max_version=API_VERSIONS[one].max)
                for one in _SERVED
            ]
            answer(ApiVersionsResponse(api_keys=rows))
        elif key is ApiKey.DESCRIBE_CLUSTER:
            answer(DescribeClusterResponse(cluster_id=self._server.cluster_id))
        else:
            self._server.tasks.start(self._list_offsets(message, header.api_version, answer), name="offsets")

    async def _list_offsets(self, message: Message, version: int, answer: Callable[[Message], None]) -> None:
        answer(await self._server.offsets.list_offsets(message, cast(Any, _Context(version))))

    def answered(self, exchange: Exchange) -> None:
        """See `Exchange`."""
        if self._open is exchange:
            self._open = None
        self.answers.give_back(exchange.memory)
        parts = exchange.parts or []
        self._send(b"".join(part if isinstance(part, bytes | bytearray) else part.read() for part in parts))

    def _send(self, data: bytes) -> None:
        if not self.is_closed and self._transport is not None:
            self._transport.write(data)
