"""FindCoordinator 0-6: which broker coordinates a group, a transactional id or, from version 6 on, a share partition.

Several keys from version 4 on. The internal topics are created when the first client asks. Unlike Kafka, which answers
COORDINATOR_NOT_AVAILABLE while the topic is being created, we wait for it. Other kinds of keys are an invalid request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from strandline.coordinators.groups import GroupCoordinator
from strandline.coordinators.runtime import CoordinatorRuntime
from strandline.coordinators.share_states import ShareCoordinator
from strandline.coordinators.transactions import TransactionCoordinator
from strandline.errors import CoordinatorNotAvailable, InvalidRequest, StrandlineError
from strandline.metadata import Images
from strandline.model import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC, uuid_from_text
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator
from strandline.wire.api import ApiKey
from strandline.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_SEVERAL_KEYS: Final = 4
_GROUP: Final = 0
_TRANSACTION: Final = 1
_SHARE: Final = 2
_KNOWS_SHARE: Final = 6


class _Node(NamedTuple):
    node_id: int = -1
    host: str = ""
    port: int = -1


class _Kind(NamedTuple):
    """What is coordinated, and by the leaders of which topic."""

    topic: str
    runtime: CoordinatorRuntime[Any]


class FindCoordinatorHandler:
    """Sends clients to the leader of the partition that their key belongs to."""

    def __init__(
        self,
        groups: GroupCoordinator,
        transactions: TransactionCoordinator,
        shares: ShareCoordinator,
        images: Images,
        creator: TopicAutoCreator,
    ) -> None:
        self._images, self._creator = images, creator
        self._kinds = {
            _GROUP: _Kind(GROUP_METADATA_TOPIC, groups.runtime),
            _TRANSACTION: _Kind(TRANSACTION_STATE_TOPIC, transactions.runtime),
            _SHARE: _Kind(SHARE_GROUP_STATE_TOPIC, shares.runtime),
        }

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
            kind = self._kinds.get(key_type)
            if kind is None or (key_type == _SHARE and context.api_version < _KNOWS_SHARE):
                raise InvalidRequest(f"There is no coordinator for keys of type {key_type}.")
            if key_type == _SHARE:
                _check_share_key(key)
            await self._ensure_topic(kind)
            return self._leader_for(kind, key, context), None
        except StrandlineError as error:
            return _Node(), error

    async def _ensure_topic(self, kind: _Kind) -> None:
        if kind.topic in self._images.image.topics:
            return
        failures = await self._creator.create([kind.topic])
        failure = failures.get(kind.topic)
        if failure is not None:
            raise CoordinatorNotAvailable(f"{kind.topic} could not be created: {failure}") from failure
        # An empty log is loaded at once: the first client need not come again.
        await kind.runtime.wait_loaded()

    def _leader_for(self, kind: _Kind, key: str, context: RequestContext) -> _Node:
        image = self._images.image
        partition = image.partition(kind.topic, kind.runtime.partition_for(key))
        broker = None if partition is None else image.brokers.get(partition.leader)
        endpoint = None if broker is None or broker.fenced else broker.listener(context.listener)
        if broker is None or endpoint is None:
            raise CoordinatorNotAvailable(
                f"The partition of {key} in {kind.topic} has no leader with listener {context.listener}."
            )
        return _Node(broker.node_id, endpoint.host, endpoint.port)


def _check_share_key(key: str) -> None:
    """A group may have colons in its name."""
    try:
        group_id, topic_id, partition = key.rsplit(":", 2)
        uuid_from_text(topic_id)
        is_legal = bool(group_id) and int(partition) >= 0
    except ValueError:
        is_legal = False
    if not is_legal:
        raise InvalidRequest(f"{key!r} does not name a share partition: that is group:topic id:partition.")
