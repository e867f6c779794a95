"""Requests to a controller on another broker, over that broker's Kafka listener.

The newest image names the broker that has the active controller, and has its address. Both come from the metadata
database, so a broker that has just started knows where to ask; one that is cut off from the database asks the others
(`controller_search`). Not here: retries.
"""

from __future__ import annotations

from strandline.errors import NotController, RequestTimedOut
from strandline.metadata.broker.controller_search import ControllerSearch
from strandline.metadata.image import Images
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.kept_connection import BrokerUnreachable, KeptConnection
from strandline.wire.registry import Message


class ControllerUnreachable(RequestTimedOut):
    """The request to the controller could not be sent, or was not answered: it may have been carried out."""


class ControllerClient:
    """One connection to the controller, opened at the first request and opened again when the controller moves.

    Answers come in the order of requests: those that must not wait behind others need a client of their own.
    """

    def __init__(self, node_id: int, images: Images, search: ControllerSearch, *, purpose: str) -> None:
        self._search = search
        self._connection = KeptConnection(f"broker-{node_id}-{purpose}", lambda: images.image.cluster_id)

    async def ask(self, api_key: ApiKey, message: Message, *, within: float) -> Message:
        """The controller's answer. Raises NotController if no other broker is known to be it, ControllerUnreachable.

        When this has failed, or the broker that was asked is not the controller, others are asked who it is, for the
        next request. This one is not sent again: it may have been carried out.
        """
        try:
            target = self._search.target()
        except NotController:
            await self._search.look(failed=None)
            raise
        try:
            answer = await self._connection.ask(target, api_key, message, within=within)
        except BrokerUnreachable as error:
            await self._search.look(failed=target.node_id)
            raise ControllerUnreachable(f"The active controller is not reached. {error}") from error
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            await self._search.look(failed=target.node_id)
        return answer

    def controller_changed(self) -> None:
        """Another broker is the controller: the last one, which may be suspended, is not waited for."""
        self._connection.give_up()

    def close(self) -> None:
        """End the connection, if there is one. The next request opens another."""
        self._connection.close()
