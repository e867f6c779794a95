"""Requests to the leader of a partition on another broker, over that broker's Kafka listener.

One connection, opened when it is needed and opened again when the leader changes. Answers come in the order of the
requests, so a request that may wait long for data needs a client of its own. Not here: what to ask, when to try again.
"""

from __future__ import annotations

from strandline.errors import LeaderNotAvailable
from strandline.metadata import Images
from strandline.model import TopicPartition
from strandline.wire.api import ApiKey
from strandline.wire.kept_connection import BrokerAddress, BrokerUnreachable, KeptConnection
from strandline.wire.registry import Message


class LeaderClient:
    """Sends requests to the broker that leads one partition now."""

    def __init__(self, partition: TopicPartition, images: Images, *, listener: str, client_id: str) -> None:
        self._partition, self._images, self._listener = partition, images, listener
        self._connection = KeptConnection(client_id, lambda: images.image.cluster_id)

    async def ask(self, api_key: ApiKey, message: Message, *, within: float) -> Message:
        """The leader's answer. Raises LeaderNotAvailable if there is no leader, or it does not answer in time."""
        target = self._target()
        try:
            return await self._connection.ask(target, api_key, message, within=within)
        except BrokerUnreachable as error:
            raise LeaderNotAvailable(f"The leader of {self._partition} is not reached. {error}") from error

    def _target(self) -> BrokerAddress:
        image = self._images.image
        partition = image.partition(*self._partition)
        if partition is None or not partition.has_leader:
            raise LeaderNotAvailable(f"{self._partition} has no leader at the moment.")
        broker = image.brokers.get(partition.leader)
        listener = None if broker is None else broker.listener(self._listener)
        if listener is None:
            raise LeaderNotAvailable(
                f"Broker {partition.leader}, which leads {self._partition}, has no listener {self._listener} "
                "(inter.broker.listener.name)."
            )
        return BrokerAddress(partition.leader, listener.host, listener.port)

    def give_up(self) -> None:
        """Another broker leads: requests that are under way end with LeaderNotAvailable."""
        self._connection.give_up()

    def close(self) -> None:
        """Close the connection, if there is one. The next request opens another."""
        self._connection.close()
