"""FindCoordinator 0-6: which broker coordinates a group. One key up to version 3, several from 4 on.

`__consumer_offsets` is created when the first client asks. Unlike Kafka, which answers COORDINATOR_NOT_AVAILABLE while
the topic is being created, we wait for it. Transactions are refused (`transactions`). Other kinds of keys (share
groups) are an invalid request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from strandline.coordinators.groups import GroupCoordinator
from strandline.errors import CoordinatorNotAvailable, InvalidRequest, StrandlineError
from strandline.metadata.image import Images
from strandline.model import GROUP_METADATA_TOPIC
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator
from strandline.server.handlers.transactions import RefusedTransactions
from strandline.wire.api import ApiKey
from strandline.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_SEVERAL_KEYS: Final = 4
_GROUP: Final = 0
_TRANSACTION: Final = 1


class _Node(NamedTuple):
    node_id: int = -1
    host: str = ""
    port: int = -1


class FindCoordinatorHandler:
    """Sends groups to the leader of their partition."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        images: Images,
        creator: TopicAutoCreator,
        transactions: RefusedTransactions,
    ) -> None:
        self._coordinator, self._images, self._creator = coordinator, images, creator
        self._transactions = transactions

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.FIND_COORDINATOR: self.find_coordinator}

    async def find_coordinator(
        self, request: FindCoordinatorRequest, context: RequestContext
    ) -> FindCoordinatorResponse:
        if context.api_version < _SEVERAL_KEYS:
            node, error = await self._find(request.key_type, request.key, context)
            code, message = outcome(error)
            return FindCoordinatorResponse(
                error_code=code,
                error_message=message or code.name,
                node_id=node.node_id,
                host=node.host,
                port=node.port,
            )
        return FindCoordinatorResponse(
            coordinators=[await self._one_of(request.key_type, key, context) for key in request.coordinator_keys]
        )

    async def _one_of(self, key_type: int, key: str, context: RequestContext) -> Coordinator:
        node, error = await self._find(key_type, key, context)
        code, message = outcome(error)
        return Coordinator(
            key=key,
            node_id=node.node_id,
            host=node.host,
            port=node.port,
            error_code=code,
            error_message=message or "",
        )

    async def _find(self, key_type: int, key: str, context: RequestContext) -> tuple[_Node, StrandlineError | None]:
        try:
            if key_type == _TRANSACTION:
                raise self._transactions.refusal(key, context)
            if key_type != _GROUP:
                raise InvalidRequest(f"There is no coordinator for keys of type {key_type}.")
            await self._ensure_topic()
            return self._leader_for(key, context), None
        except StrandlineError as error:
            return _Node(), error

    async def _ensure_topic(self) -> None:
        if GROUP_METADATA_TOPIC in self._images.image.topics:
            return
        failures = await self._creator.create([GROUP_METADATA_TOPIC])
        failure = failures.get(GROUP_METADATA_TOPIC)
        if failure is not None:
            raise CoordinatorNotAvailable(f"{GROUP_METADATA_TOPIC} could not be created: {failure}") from failure
        # An empty log is loaded at once: the first client need not come again.
        await self._coordinator.runtime.wait_loaded()

    def _leader_for(self, group_id: str, context: RequestContext) -> _Node:
        image = self._images.image
        partition = image.partition(GROUP_METADATA_TOPIC, self._coordinator.partition_for(group_id))
        broker = None if partition is None else image.brokers.get(partition.leader)
        endpoint = None if broker is None or broker.fenced else broker.listener(context.listener)
        if broker is None or endpoint is None:
            raise CoordinatorNotAvailable(
                f"The partition of group {group_id} has no leader with listener {context.listener}."
            )
        return _Node(broker.node_id, endpoint.host, endpoint.port)
