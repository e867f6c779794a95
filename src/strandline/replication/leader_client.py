"""Requests to the leader of a partition on another broker, over that broker's Kafka listener.

One connection, made when it is needed and made anew when the partition is led by somebody else. Answers come in the
order of requests: whoever waits long for data needs a client of its own. Not here: what to ask, when to try again.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.errors import LeaderNotAvailable, UnsupportedVersion
from strandline.metadata.controller_client import Images
from strandline.model import BrokerId, TopicPartition
from strandline.wire.api import ApiKey
from strandline.wire.broker_connection import BrokerConnection
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from strandline.wire.primitives import MalformedRequest
from strandline.wire.registry import Message

_FAILURES: Final = (OSError, MalformedRequest, UnsupportedVersion)


class LeaderClient:
    """Asks whoever leads one partition now."""

    def __init__(self, partition: TopicPartition, images: Images, *, listener: str, client_id: str) -> None:
        self._partition, self._images, self._listener, self._client_id = partition, images, listener, client_id
        self._connection: BrokerConnection | None = None
        self._connected_to: tuple[BrokerId, str, int] | None = None
        self._connecting = asyncio.Lock()

    async def ask(self, api_key: ApiKey, message: Message, *, within: float) -> Message:
        """The leader's answer. Raises LeaderNotAvailable if there is none, or none that answers in time."""
        target = self._target()
        name = f"broker {target[0]} ({target[1]}:{target[2]}), which leads {self._partition},"
        try:
            async with asyncio.timeout(within):
                connection = await self._connect(target)
                return await connection.request(api_key, message)
        except TimeoutError as error:
            self.close()
            raise LeaderNotAvailable(f"{name} did not answer {api_key.name} within {within:g} s") from error
        except _FAILURES as error:
            self.close()
            raise LeaderNotAvailable(f"{name} cannot be asked: {error}") from error

    def _target(self) -> tuple[BrokerId, str, int]:
        image = self._images.image
        partition = image.partition(*self._partition)
        if partition is None or not partition.has_leader:
            raise LeaderNotAvailable(f"{self._partition} has no leader at the moment")
        broker = image.brokers.get(partition.leader)
        listener = None if broker is None else broker.listener(self._listener)
        if listener is None:
            raise LeaderNotAvailable(
                f"broker {partition.leader}, which leads {self._partition}, has no listener {self._listener} "
                "(inter.broker.listener.name)"
            )
        return partition.leader, listener.host, listener.port

    async def _connect(self, target: tuple[BrokerId, str, int]) -> BrokerConnection:
        async with self._connecting:
            if self._connection is not None and self._connection.is_open and self._connected_to == target:
                return self._connection
            self.close()
            connection = await BrokerConnection.open(target[1], target[2], client_id=self._client_id)
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
