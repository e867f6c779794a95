"""Forwarding requests: a controller that is replaced in the middle, and one that cannot be found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from strandline.config import ClusterSettings, Settings
from strandline.errors import NotController
from strandline.metadata import ActiveController, ControllerUnreachable
from strandline.server.context import RequestContext
from strandline.server.handlers.administration.features import FeaturesHandler
from strandline.server.handlers.administration.members import MembersHandler
from strandline.server.handlers.administration.quorum import QuorumHandler
from strandline.server.handlers.administration.quotas import ClientQuotasHandler
from strandline.server.handlers.administration.scram import ScramHandler
from strandline.server.handlers.elections import ElectionsHandler
from strandline.server.handlers.forwarding import ForwardingHandlers
from strandline.server.handlers.reassignments import ReassignmentsHandler
from strandline.server.handlers.topics.changes import TopicsHandler
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.envelope import EnvelopeRequest
from strandline.wire.registry import encode_request
from tests.metadata.cluster import Cluster, open_cluster
from tests.server.handlers.serving import AllServed, alter_configs_handler

T = TypeVar("T")

REQUEST = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
CONTEXT = RequestContext(
    api_key=ApiKey.CREATE_TOPICS,
    api_version=7,
    correlation_id=1,
    client_id=None,
    client_host="127.0.0.1",
    listener="PLAINTEXT",
    principal="User:ANONYMOUS",
    connection_id=1,
)


class TwoAttempts(ActiveController):
    """Its patience ends after the second attempt; what happened is written down."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.controller, cluster.loader, ClusterSettings(), cluster.clock, listener="PLAINTEXT")
        self.failures: list[str] = []

    async def patiently(self, attempt: Callable[[], Awaitable[T]], seconds: float = 0.0) -> T:
        try:
            return await attempt()
        except (NotController, ControllerUnreachable) as error:
            self.failures.append(str(error))
            return await attempt()


def handlers(cluster: Cluster, active: ActiveController) -> ForwardingHandlers:
    controller = cluster.controller
    parts = (
        TopicsHandler(controller, cluster.loader, Settings, AllServed()),
        alter_configs_handler(cluster),
        ElectionsHandler(controller),
        ReassignmentsHandler(controller),
        ClientQuotasHandler(controller, cluster.loader),
        ScramHandler(controller, cluster.loader),
        QuorumHandler(controller),
        FeaturesHandler(controller),
        MembersHandler(controller),
    )
    return ForwardingHandlers(active, {key: handler for part in parts for key, handler in part.routes().items()})


async def test_who_turns_out_not_to_be_the_controller_any_more_looks_for_the_one_who_is() -> None:
    async with open_cluster() as cluster:
        active = TwoAttempts(cluster)
        await cluster.store.take_lease(9, may_take=lambda _: True, duration_ms=None)  # unknown to this broker
        assert active.is_local
        answer = await handlers(cluster, active).serve(REQUEST, CONTEXT)
        assert active.failures == ["Another broker has become the active controller."]
        assert answer.topics[0].error_code == ErrorCode.NOT_CONTROLLER  # broker 9 is not registered
        assert "t" not in cluster.image.topics


async def test_when_patience_ends_each_item_gets_not_controller() -> None:
    async with open_cluster() as cluster:
        active = TwoAttempts(cluster)
        await cluster.controller.leadership.resign()
        answer = await handlers(cluster, active).serve(REQUEST, CONTEXT)
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.NOT_CONTROLLER]


async def test_an_envelope_is_answered_by_the_controller_only() -> None:
    async with open_cluster() as cluster:
        serving = handlers(cluster, TwoAttempts(cluster))
        envelope = EnvelopeRequest(request_data=encode_request(ApiKey.CREATE_TOPICS, 7, 1, None, REQUEST))
        await cluster.store.take_lease(9, may_take=lambda _: True, duration_ms=None)
        for _ in ("deposed without knowing it", "knowing it"):
            answer = await serving.envelope(envelope, CONTEXT)
            assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)
        assert not cluster.controller.is_active
