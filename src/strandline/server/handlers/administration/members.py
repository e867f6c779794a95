"""UnregisterBroker, version 0: the cluster forgets a broker.

Meant for brokers that will not come back. One that runs is refused with INVALID_REQUEST, where Kafka forgets it: that
broker would go on without being a member until an operator restarts it, and its partitions would have no leader.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.errors import StrandlineError
from strandline.metadata import Controller
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


class MembersHandler:
    """Removes registrations of brokers."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.UNREGISTER_BROKER: self.unregister_broker}

    async def unregister_broker(
        self, request: UnregisterBrokerRequest, context: RequestContext
    ) -> UnregisterBrokerResponse:
        """Forget the broker, unless it runs."""
        answer: StrandlineError | None = None
        try:
            await self._controller.unregister_broker(request.broker_id)
        except StrandlineError as error:
            answer = error
        code, message = outcome(answer)
        return UnregisterBrokerResponse(error_code=code, error_message=message)
