"""Requests to other brokers by their node id, over one kept connection to each."""

from __future__ import annotations

from strandline.errors import LeaderNotAvailable
from strandline.metadata.image import Images
from strandline.model import BrokerId
from strandline.wire.api import ApiKey
from strandline.wire.kept_connection import BrokerAddress, BrokerUnreachable, KeptConnection
from strandline.wire.registry import Message


class BrokerPeers:
    """The other brokers of the cluster, for one purpose: its requests to a broker wait for each other only."""

    def __init__(self, images: Images, *, node_id: BrokerId, listener: str, purpose: str) -> None:
        self._images, self._node_id, self._listener, self._purpose = images, node_id, listener, purpose
        self._connections: dict[BrokerId, KeptConnection] = {}

    async def ask(self, broker: BrokerId, api_key: ApiKey, message: Message, *, within: float) -> Message:
        """The broker's answer. Raises LeaderNotAvailable: then the request may have been carried out or not."""
        target = self._target(broker)
        connection = self._connections.get(broker)
        if connection is None:
            client_id = f"broker-{self._node_id}-{self._purpose}"
            connection = KeptConnection(client_id, lambda: self._images.image.cluster_id)
            self._connections[broker] = connection
        try:
            return await connection.ask(target, api_key, message, within=within)
        except BrokerUnreachable as error:
            raise LeaderNotAvailable(str(error)) from error

    def _target(self, broker: BrokerId) -> BrokerAddress:
        known = self._images.image.brokers.get(broker)
        listener = None if known is None else known.listener(self._listener)
        if listener is None:
            raise LeaderNotAvailable(
                f"Broker {broker} is not registered with a listener {self._listener} (inter.broker.listener.name)."
            )
        return BrokerAddress(broker, listener.host, listener.port)

    def close(self) -> None:
        """Close the connections. The next request opens another."""
        for connection in self._connections.values():
            connection.close()
