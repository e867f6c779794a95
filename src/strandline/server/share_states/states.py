"""The state of share partitions, wherever their coordinator is: on this broker, or asked over the protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from uuid import UUID

from strandline.clock import Clock
from strandline.coordinators.share_states import (
    DeliveryBatch,
    DeliveryState,
    ShareCoordinator,
    ShareGroupStates,
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    ShareStateUpdate,
)
from strandline.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    CorruptMessage,
    LeaderNotAvailable,
    NotCoordinator,
)
from strandline.metadata import Images
from strandline.model import NO_TIMESTAMP, SHARE_GROUP_STATE_TOPIC, BrokerId, LeaderEpoch, Offset
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator
from strandline.server.peers import BrokerPeers, PeerLanes
from strandline.wire.api import ApiKey
from strandline.wire.errors import error_of
from strandline.wire.messages import delete_share_group_state as deletion
from strandline.wire.messages import initialize_share_group_state as beginning
from strandline.wire.messages import read_share_group_state as reading
from strandline.wire.messages import read_share_group_state_summary as summing
from strandline.wire.messages import write_share_group_state as writing
from strandline.wire.registry import Message

R = TypeVar("R")

# Twice as long as a coordinator waits for its log by default.
_SECONDS: Final = 10.0
_ATTEMPTS: Final = 5
_FIRST_PAUSE_S: Final = 0.1


class ShareStatesOfCluster:
    """`ShareGroupStates` by the leaders of `__share_group_state`, which is created when it is first needed.

    Each coordinator has a connection of its own: one that hangs holds up its own requests alone. While one moves or
    loads, a call is repeated a few times; one that hangs is not asked again.
    """

    def __init__(
        self,
        local: ShareCoordinator,
        peers: PeerLanes,
        images: Images,
        creator: TopicAutoCreator,
        *,
        node_id: BrokerId,
        clock: Clock,
    ) -> None:
        self._local, self._peers, self._images = local, peers, images
        self._creator, self._node_id, self._clock = creator, node_id, clock

    async def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: Offset) -> None:
        await self._with_coordinator(
            key, lambda states: states.initialize(key, state_epoch=state_epoch, start_offset=start_offset)
        )

    async def read(self, key: SharePartitionKey, *, leader_epoch: LeaderEpoch) -> ShareState:
        return await self._with_coordinator(key, lambda states: states.read(key, leader_epoch=leader_epoch))

    async def write(self, key: SharePartitionKey, update: ShareStateUpdate) -> None:
        await self._with_coordinator(key, lambda states: states.write(key, update))

    async def delete(self, key: SharePartitionKey) -> None:
        await self._with_coordinator(key, lambda states: states.delete(key))

    async def summary(self, key: SharePartitionKey) -> ShareStateSummary:
        return await self._with_coordinator(key, lambda states: states.summary(key))

    async def _with_coordinator(self, key: SharePartitionKey, call: Callable[[ShareGroupStates], Awaitable[R]]) -> R:
        attempts, pause_s = 1, _FIRST_PAUSE_S
        end = self._clock.monotonic() + _SECONDS
        while True:
            try:
                return await call(await self._coordinator(key))
            except (NotCoordinator, CoordinatorNotAvailable, CoordinatorLoadInProgress):
                if attempts == _ATTEMPTS or self._clock.monotonic() >= end:
                    raise
            except LeaderNotAvailable as error:
                if attempts == _ATTEMPTS or self._clock.monotonic() >= end:
                    raise CoordinatorNotAvailable(str(error)) from error
            await self._clock.sleep(pause_s)
            attempts, pause_s = attempts + 1, pause_s * 2

    async def _coordinator(self, key: SharePartitionKey) -> ShareGroupStates:
        if SHARE_GROUP_STATE_TOPIC not in self._images.image.topics:
            failure = (await self._creator.create([SHARE_GROUP_STATE_TOPIC])).get(SHARE_GROUP_STATE_TOPIC)
            if failure is not None:
                raise CoordinatorNotAvailable(f"{SHARE_GROUP_STATE_TOPIC} could not be created: {failure}") from failure
            await self._local.runtime.wait_loaded()
        number = self._local.partition_for(key)
        found = self._images.image.partition(SHARE_GROUP_STATE_TOPIC, number)
        if found is None or not found.has_leader:
            raise CoordinatorNotAvailable(f"The partition of share partition {key} has no leader.")
        return (
            self._local if found.leader == self._node_id else RemoteShareStates(self._peers.lane(number), found.leader)
        )


class RemoteShareStates:
    """`ShareGroupStates` of one other broker."""

    def __init__(self, peers: BrokerPeers, broker: BrokerId) -> None:
        self._peers, self._broker = peers, broker

    async def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: Offset) -> None:
        partition = beginning.PartitionData(partition=key.partition, state_epoch=state_epoch, start_offset=start_offset)
        topic = beginning.InitializeStateData(topic_id=key.topic_id, partitions=[partition])
        request = beginning.InitializeShareGroupStateRequest(group_id=key.group_id, topics=[topic])
        await self._ask(key, ApiKey.INITIALIZE_SHARE_GROUP_STATE, request)

    async def read(self, key: SharePartitionKey, *, leader_epoch: LeaderEpoch) -> ShareState:
        partition = reading.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
        topic = reading.ReadStateData(topic_id=key.topic_id, partitions=[partition])
        request = reading.ReadShareGroupStateRequest(group_id=key.group_id, topics=[topic])
        found: reading.PartitionResult = await self._ask(key, ApiKey.READ_SHARE_GROUP_STATE, request)
        return ShareState(
            state_epoch=found.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=found.start_offset,
            batches=tuple(
                DeliveryBatch(
                    batch.first_offset, batch.last_offset, delivery_state(batch.delivery_state), batch.delivery_count
                )
                for batch in found.state_batches
            ),
            created_ms=NO_TIMESTAMP,
            written_ms=NO_TIMESTAMP,
        )

    async def write(self, key: SharePartitionKey, update: ShareStateUpdate) -> None:
        partition = writing.PartitionData(
            partition=key.partition,
            state_epoch=update.state_epoch,
            leader_epoch=update.leader_epoch,
            start_offset=update.start_offset,
            delivery_complete_count=update.delivery_complete_count,
            state_batches=[
                writing.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
                for first, last, state, count in update.batches
            ],
        )
        topic = writing.WriteStateData(topic_id=key.topic_id, partitions=[partition])
        request = writing.WriteShareGroupStateRequest(group_id=key.group_id, topics=[topic])
        await self._ask(key, ApiKey.WRITE_SHARE_GROUP_STATE, request)

    async def delete(self, key: SharePartitionKey) -> None:
        topic = deletion.DeleteStateData(
            topic_id=key.topic_id, partitions=[deletion.PartitionData(partition=key.partition)]
        )
        request = deletion.DeleteShareGroupStateRequest(group_id=key.group_id, topics=[topic])
        await self._ask(key, ApiKey.DELETE_SHARE_GROUP_STATE, request)

    async def summary(self, key: SharePartitionKey) -> ShareStateSummary:
        topic = summing.ReadStateSummaryData(
            topic_id=key.topic_id, partitions=[summing.PartitionData(partition=key.partition)]
        )
        request = summing.ReadShareGroupStateSummaryRequest(group_id=key.group_id, topics=[topic])
        found: summing.PartitionResult = await self._ask(key, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, request)
        return ShareStateSummary(
            found.state_epoch, found.leader_epoch, found.start_offset, found.delivery_complete_count
        )

    async def _ask(self, key: SharePartitionKey, api_key: ApiKey, request: Message) -> Any:
        answer = await self._peers.ask(self._broker, api_key, request, within=_SECONDS)
        result = _only_result(answer, key.topic_id, key.partition)
        if result.error_code:
            raise error_of(result.error_code, result.error_message)
        return result


def delivery_state(number: int) -> DeliveryState:
    """Raises CorruptMessage."""
    try:
        return DeliveryState(number)
    except ValueError as error:
        raise CorruptMessage(f"The delivery of a record cannot be in state {number}.") from error


def _only_result(answer: Any, topic_id: UUID, partition: int) -> Any:
    for topic in answer.results:
        for result in topic.partitions:
            if (topic.topic_id, result.partition) == (topic_id, partition):
                return result
    raise CoordinatorNotAvailable("The coordinator's answer does not name the share partition.")
