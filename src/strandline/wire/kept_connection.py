"""A connection to another broker that is opened at the first request, and again when the target changes or it failed.

Answers come in the order of requests: those that must not wait behind others need a connection of their own. Not here:
which broker to ask, what a failure means, when to try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from strandline.errors import UnsupportedVersion
from strandline.model import BrokerId
from strandline.wire.api import ApiKey
from strandline.wire.broker_connection import BrokerConnection
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from strandline.wire.primitives import MalformedRequest
from strandline.wire.registry import Message

_FAILURES: Final = (OSError, MalformedRequest, UnsupportedVersion)


class BrokerAddress(NamedTuple):
    """Where a broker listens for others."""

    node_id: BrokerId
    host: str
    port: int

    def __str__(self) -> str:
        return f"Broker {self.node_id} ({self.host}:{self.port})"


class BrokerUnreachable(Exception):
    """The request could not be sent, or was not answered in time. The text is a sentence that names the broker."""


class KeptConnection:
    """One connection at a time."""

    def __init__(self, client_id: str, cluster_id: Callable[[], str]) -> None:
        self._client_id, self._cluster_id = client_id, cluster_id
        self._connection: BrokerConnection | None = None
        self._connected_to: BrokerAddress | None = None
        self._connecting = asyncio.Lock()
        self._limits: set[asyncio.Timeout] = set()
        """Of the requests that are under way."""

    async def ask(self, target: BrokerAddress, api_key: ApiKey, message: Message, *, within: float) -> Message:
        """The broker's answer. Raises BrokerUnreachable; then the request may have been carried out or not."""
        limit = asyncio.timeout(within)
        self._limits.add(limit)
        try:
            async with limit:
                connection = await self._connect(target)
                return await connection.request(api_key, message)
        except TimeoutError as error:
            self.close()
            when = f"within {within:g} s" if limit in self._limits else "before it was given up"
            raise BrokerUnreachable(f"{target} did not answer {api_key.name} {when}.") from error
        except _FAILURES as error:
            self.close()
            raise BrokerUnreachable(f"{target} cannot be asked: {str(error).rstrip('.')}.") from error
        finally:
            self._limits.discard(limit)

    def give_up(self) -> None:
        """Requests that are under way end with BrokerUnreachable: another broker is to be asked."""
        limits, self._limits = self._limits, set()
        now = asyncio.get_running_loop().time()
        for limit in limits:
            if not limit.expired():  # else its request ends in this turn of the loop
                limit.reschedule(now)
        self.close()

    async def _connect(self, target: BrokerAddress) -> BrokerConnection:
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
        """A broker of another cluster may listen at the address of a dead one."""
        answer = await connection.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
        if answer.cluster_id != self._cluster_id():
            raise ConnectionError(f"A broker of another cluster ({answer.cluster_id}) answers at that address.")

    def close(self) -> None:
        """End the connection, if there is one. The next request opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
