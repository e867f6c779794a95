"""Requests to a controller on another broker, over that broker's Kafka listener.

The newest image names the broker that has the active controller, and has its address. Both come from the metadata
database, so a broker that has just started knows where to ask. Not here: retries.
"""

from __future__ import annotations

from strandline.errors import NotController, RequestTimedOut
from strandline.metadata.image import Images
from strandline.wire.api import ApiKey
from strandline.wire.kept_connection import BrokerAddress, BrokerUnreachable, KeptConnection
from strandline.wire.registry import Message


class ControllerUnreachable(RequestTimedOut):
    """The request to the controller could not be sent, or was not answered: it may have been carried out."""


class ControllerClient:
    """One connection to the controller, opened at the first request and opened again when the controller moves.

    Answers come in the order of requests: those that must not wait behind others need a client of their own.
    """

    def __init__(self, node_id: int, images: Images, *, listener: str, purpose: str) -> None:
        self._node_id, self._images, self._listener = node_id, images, listener
        self._connection = KeptConnection(f"broker-{node_id}-{purpose}", lambda: images.image.cluster_id)

    async def ask(self, api_key: ApiKey, message: Message, *, within: float) -> Message:
        """The controller's answer. Raises NotController if the image names no other broker, ControllerUnreachable."""
        target = self._target()
        try:
            return await self._connection.ask(target, api_key, message, within=within)
        except BrokerUnreachable as error:
            raise ControllerUnreachable(f"The active controller is not reached. {error}") from error

    def controller_changed(self) -> None:
        """Another broker is the controller: the last one, which may be suspended, is not waited for."""
        self._connection.give_up()

    def _target(self) -> BrokerAddress:
        image = self._images.image
        if image.controller_id == self._node_id:
            raise NotController(f"Broker {self._node_id} was the last active controller, and is no longer.")
        broker = image.brokers.get(image.controller_id)
        listener = None if broker is None else broker.listener(self._listener)
        if broker is None or listener is None:
            raise NotController(
                f"The active controller, broker {image.controller_id}, has no listener {self._listener} "
                "(inter.broker.listener.name)."
            )
        return BrokerAddress(broker.node_id, listener.host, listener.port)

    def close(self) -> None:
        """End the connection, if there is one. The next request opens another."""
        self._connection.close()
