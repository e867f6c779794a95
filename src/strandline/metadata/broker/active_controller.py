"""The active controller as the components of a broker use it, on whichever broker it runs.

While this broker holds the lease, its own controller answers. Otherwise requests go to the broker that holds it, as
Kafka's brokers send them: BrokerRegistration, BrokerHeartbeat, AllocateProducerIds, AlterPartition and
AssignReplicasToDirs directly, those of clients in an Envelope. Registrations and heartbeats have a connection of their
own, so that they never wait behind other requests, and so have changes of in-sync sets: producers may wait for them.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from strandline.clock import Clock
from strandline.config import ClusterSettings
from strandline.errors import NotController, StrandlineError, TopicAlreadyExists
from strandline.metadata.broker.controller_client import ControllerClient, ControllerUnreachable
from strandline.metadata.broker.controller_search import ControllerSearch
from strandline.metadata.broker.directory_requests import directories_request, directory_answers
from strandline.metadata.broker.isr_requests import isr_answers, isr_request
from strandline.metadata.broker.wire_requests import (
    create_topics_request,
    heartbeat_reply,
    heartbeat_request,
    registration_request,
)
from strandline.metadata.controller.controller import Controller
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.metadata.log.loader import MetadataLoader
from strandline.metadata.requests import (
    BrokerHeartbeat,
    BrokerRegistration,
    DirectoryAssignment,
    HeartbeatReply,
    IsrChange,
    NewTopic,
)
from strandline.sql import SqlError
from strandline.tasks import Setbacks
from strandline.wire.api import KNOWN_APIS, ApiKey
from strandline.wire.errors import error_of
from strandline.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from strandline.wire.messages.envelope import EnvelopeRequest
from strandline.wire.registry import Message, decode_response, encode_request

logger = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE_SECONDS: Final = 15.0  # longer than a lease: by then a killed controller has a successor
BRIEF_PATIENCE_SECONDS: Final = 5.0  # for requests that the client repeats by itself
ATTEMPT_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 0.1


class ActiveController:
    """See the module. Errors of the controller are raised as they would be by a controller in this process.

    When the time for retries is over, NotController or ControllerUnreachable is raised. Registrations, heartbeats,
    changes of in-sync sets and log directories get one attempt, because their callers repeat them.
    """

    def __init__(
        self, local: Controller, loader: MetadataLoader, settings: ClusterSettings, clock: Clock, *, listener: str
    ) -> None:
        self._local, self._loader, self._clock = local, loader, clock
        search = ControllerSearch(local.node_id, loader, clock, listener=listener)
        self._membership = ControllerClient(local.node_id, loader, search, purpose="membership")
        self._partitions = ControllerClient(local.node_id, loader, search, purpose="partitions")
        self._requests = ControllerClient(local.node_id, loader, search, purpose="requests")
        self._controller_id = -1
        self._heartbeat_seconds = settings.broker_session_timeout_ms / 1000 / 3
        self._setbacks = Setbacks("reading the newest metadata", logger)

    @property
    def is_local(self) -> bool:
        """True if this broker is the active controller."""
        return self._local.is_active

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ActiveController]:
        """Connections are closed at the end of the block."""
        self._controller_id = self._loader.image.controller_id
        stop_following = self._loader.subscribe(self._follow)
        try:
            yield self
        finally:
            stop_following()
            self._membership.close()
            self._partitions.close()
            self._requests.close()

    def _follow(self, _: MetadataDelta, image: MetadataImage) -> None:
        if image.controller_id != self._controller_id:
            self._controller_id = image.controller_id
            for client in (self._membership, self._partitions, self._requests):
                client.controller_changed()

    async def patiently(self, attempt: Callable[[], Awaitable[T]], seconds: float = PATIENCE_SECONDS) -> T:
        """Repeat the attempt while no controller is found or reached, for `seconds`. Raises its last error."""
        deadline = self._clock.monotonic() + seconds
        trouble = ""
        while True:
            try:
                return await attempt()
            except (NotController, ControllerUnreachable) as error:
                if self._clock.monotonic() >= deadline:
                    raise
                if str(error) != trouble:
                    logger.info("looking for the controller again: %s", error)
                trouble = str(error)
            await self._clock.sleep(_RETRY_SECONDS)
            await self.catch_up()

    async def catch_up(self) -> None:
        """Read what the controller has written, so that clients see the effect of their requests on this broker."""
        try:
            await self._loader.catch_up()
        except SqlError as error:
            self._setbacks.met(error)
        else:
            self._setbacks.over()

    # Membership

    async def register_broker(self, broker: BrokerRegistration) -> int:
        """`Controller.register_broker`."""
        if self.is_local:
            return await self._local.register_broker(broker)
        answer = await self._membership.ask(
            ApiKey.BROKER_REGISTRATION, registration_request(broker), within=self._heartbeat_seconds
        )
        return int(_checked(answer).broker_epoch)

    async def broker_heartbeat(self, heartbeat: BrokerHeartbeat) -> HeartbeatReply:
        """`Controller.broker_heartbeat`."""
        if self.is_local:
            return await self._local.broker_heartbeat(heartbeat)
        answer = await self._membership.ask(
            ApiKey.BROKER_HEARTBEAT, heartbeat_request(heartbeat), within=self._heartbeat_seconds
        )
        return heartbeat_reply(_checked(answer))

    # Requests of brokers

    async def alter_partition(
        self, node_id: int, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> list[PartitionImage | StrandlineError]:
        """`Controller.alter_partition`, in the order of `changes`, each partition at most once.

        When it returns, the metadata of this broker is not older than the answers: a leader must not take a smaller
        in-sync set for enough by settings that were changed before it.
        """
        if self.is_local:
            return await self._local.alter_partition(node_id, broker_epoch, changes)
        request = isr_request(node_id, broker_epoch, changes)
        answer = _checked(await self._partitions.ask(ApiKey.ALTER_PARTITION, request, within=self._heartbeat_seconds))
        try:
            await self._loader.catch_up()
        except SqlError as error:
            raise ControllerUnreachable(f"The in-sync sets may be changed, but are not known here: {error}") from error
        return isr_answers(answer, changes, self._loader.image)

    async def assign_directories(
        self, node_id: int, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> list[StrandlineError | None]:
        """`Controller.assign_directories`, in the order of `assignments`, each partition at most once."""
        if self.is_local:
            return await self._local.assign_directories(node_id, broker_epoch, assignments)
        request = directories_request(node_id, broker_epoch, assignments)
        answer = await self._requests.ask(ApiKey.ASSIGN_REPLICAS_TO_DIRS, request, within=ATTEMPT_SECONDS)
        return directory_answers(_checked(answer), assignments)

    async def allocate_producer_ids(self, node_id: int, broker_epoch: int) -> range:
        """`Controller.allocate_producer_ids`."""

        async def attempt() -> range:
            if self.is_local:
                return await self._local.allocate_producer_ids(node_id, broker_epoch)
            request = AllocateProducerIdsRequest(broker_id=node_id, broker_epoch=broker_epoch)
            answer = _checked(await self._requests.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request, within=ATTEMPT_SECONDS))
            return range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len)

        return await self.patiently(attempt, BRIEF_PATIENCE_SECONDS)

    async def create_topics(self, topics: Sequence[NewTopic]) -> list[TopicImage | StrandlineError]:
        """`Controller.create_topics`, for topics that the broker creates by itself."""

        async def attempt() -> list[TopicImage | StrandlineError]:
            if self.is_local:
                return await self._local.create_topics(topics)
            version = KNOWN_APIS[ApiKey.CREATE_TOPICS].max
            frame = encode_request(ApiKey.CREATE_TOPICS, version, 0, None, create_topics_request(topics))
            _, answer = decode_response(ApiKey.CREATE_TOPICS, version, memoryview(await self.forward(frame)))
            return [self._created(result) for result in answer.topics]

        return await self.patiently(attempt, BRIEF_PATIENCE_SECONDS)

    def _created(self, result: Message) -> TopicImage | StrandlineError:
        if result.error_code:
            return error_of(result.error_code, result.error_message)
        topic = self._loader.image.topics.get(result.name)
        return (
            TopicAlreadyExists(f"Topic '{result.name}' was created, and has been deleted since.")
            if topic is None
            else topic
        )

    async def forward(self, frame: bytes, *, principal: bytes = b"", host: bytes = b"") -> bytes:
        """The response frame of a controller on another broker to a client's request frame. One attempt."""
        envelope = EnvelopeRequest(request_data=frame, request_principal=principal, client_host_address=host)
        answer = _checked(await self._requests.ask(ApiKey.ENVELOPE, envelope, within=ATTEMPT_SECONDS))
        await self.catch_up()
        if answer.response_data is None:
            raise ControllerUnreachable("The controller answered with an empty envelope.")
        return bytes(answer.response_data)


def _checked(answer: Message) -> Message:
    if answer.error_code:
        raise error_of(answer.error_code)
    return answer
