"""Requests to a controller on another broker, over that broker's Kafka listener.

The broker to ask is the one that the newest image names; its address is in its registration. Both come from the
metadata database, so a broker that has never spoken to anybody knows whom to ask. Not here: when to try again.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, Protocol

from strandline.errors import NotController, RequestTimedOut, UnsupportedVersion
from strandline.metadata.image import MetadataImage
from strandline.wire.api import ApiKey
from strandline.wire.broker_connection import BrokerConnection
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from strandline.wire.primitives import MalformedRequest
from strandline.wire.registry import Message

_FAILURES: Final = (OSError, MalformedRequest, UnsupportedVersion)


class Images(Protocol):
    """Who holds the newest image: the loader."""

    @property
    def image(self) -> MetadataImage:
        """The newest image."""


class ControllerUnreachable(RequestTimedOut):
    """The controller could not be asked, or did not answer: the request may have been carried out or not."""


class _Target(NamedTuple):
    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"the controller on broker {self.node_id} ({self.host}:{self.port})"


class ControllerClient:
    """One connection to the controller, made when it is needed and made anew when the controller moves.

    Answers come in the order of requests: those that must not wait behind others need a client of their own.
    """

    def __init__(self, node_id: int, images: Images, *, listener: str, purpose: str) -> None:
        self._node_id, self._images, self._listener = node_id, images, listener
        self._client_id = f"broker-{node_id}-{purpose}"
        self._connection: BrokerConnection | None = None
        self._connected_to: _Target | None = None
        self._connecting = asyncio.Lock()

    async def ask(self, api_key: ApiKey, message: Message, *, within: float) -> Message:
        """The controller's answer. Raises NotController if no other broker is known to be it, ControllerUnreachable."""
        target = self._target()
        try:
            async with asyncio.timeout(within):
                connection = await self._connect(target)
                return await connection.request(api_key, message)
        except TimeoutError as error:
            self.close()
            raise ControllerUnreachable(f"{target} did not answer {api_key.name} within {within:g} s.") from error
        except _FAILURES as error:
            self.close()
            raise ControllerUnreachable(f"{target} cannot be asked: {error}") from error

    def _target(self) -> _Target:
        image = self._images.image
        if image.controller_id == self._node_id:
            raise NotController(f"Broker {self._node_id} was the last active controller, and is not any more.")
        broker = image.brokers.get(image.controller_id)
        listener = None if broker is None else broker.listener(self._listener)
        if broker is None or listener is None:
            raise NotController(
                f"The active controller, broker {image.controller_id}, has no listener {self._listener} that could be "
                "asked (inter.broker.listener.name)."
            )
        return _Target(broker.node_id, listener.host, listener.port)

    async def _connect(self, target: _Target) -> BrokerConnection:
        async with self._connecting:
            if self._connection is not None and self._connection.is_open and self._connected_to == target:
                return self._connection
            self.close()
            connection = await BrokerConnection.open(target.host, target.port, client_id=self._client_id)
            try:
                await self._check_cluster(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._connected_to = connection, target
            return connection

    async def _check_cluster(self, connection: BrokerConnection) -> None:
        """The address may be that of a dead broker, where another cluster's broker listens now."""
        answer = await connection.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
        if answer.cluster_id != self._images.image.cluster_id:
            raise ConnectionError(f"somebody of another cluster ({answer.cluster_id}) answers there")

    def close(self) -> None:
        """End the connection, if there is one. The next request makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
