"""The state of share partitions over the protocol: between brokers, and what a request gets that makes no sense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
import pytest_asyncio

from strandline.coordinators.groups.share.states import ShareProgress, ShareStates
from strandline.coordinators.share_states import (
    DeliveryBatch,
    DeliveryState,
    SharePartitionKey,
    ShareStateSummary,
    ShareStateUpdate,
)
from strandline.errors import (
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    InvalidRequest,
    LeaderNotAvailable,
    NotCoordinator,
    UnknownTopicOrPartition,
)
from strandline.model import SHARE_GROUP_STATE_TOPIC
from strandline.server.peers import BrokerPeers, PeerLanes
from strandline.server.share_states.membership import StatesOfGroups
from strandline.server.share_states.states import RemoteShareStates, ShareStatesOfCluster
from strandline.share_errors import FencedStateEpoch
from strandline.testing.clock import VirtualClock
from strandline.wire.api import KNOWN_APIS, ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages import read_share_group_state as reading
from strandline.wire.messages import write_share_group_state as writing
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.server.handlers.share.sharing_world import GROUP, SharingWorld, sharing_broker
from tests.server.test_produce_memory import Client

S = DeliveryState
ACKED = DeliveryBatch(0, 4, S.ACKNOWLEDGED, 1)


class WirePeers:
    """`BrokerPeers` over a connection of the test: another broker's view of this one."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.unreachable = 0

    async def ask(self, broker: int, api_key: ApiKey, message: Any, *, within: float) -> Any:
        if self.unreachable:
            self.unreachable -= 1
            raise LeaderNotAvailable("The broker does not answer.")
        return await self._client.call(api_key, KNOWN_APIS[api_key].max, message)


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[SharingWorld]:
    async with sharing_broker(tmp_path) as opened:
        await opened.create_topic()
        await opened.begin_group()
        yield opened


@pytest_asyncio.fixture
async def remote(world: SharingWorld) -> RemoteShareStates:
    return RemoteShareStates(cast(BrokerPeers, WirePeers(await world.connect())), world.broker.node_id)


async def test_another_broker_reads_and_writes_what_the_coordinator_has(
    world: SharingWorld, remote: RemoteShareStates
) -> None:
    key = world.key
    state = await remote.read(key, leader_epoch=5)
    assert (state.state_epoch, state.start_offset, state.batches) == (1, 0, ())
    update = ShareStateUpdate(
        state_epoch=1, leader_epoch=5, start_offset=0, delivery_complete_count=5, batches=(ACKED,)
    )
    await remote.write(key, update)
    assert (await remote.read(key, leader_epoch=5)).batches == (ACKED,)
    assert await remote.summary(key) == ShareStateSummary(1, 5, 0, 5)
    with pytest.raises(FencedLeaderEpoch):
        await remote.read(key, leader_epoch=4)
    await remote.initialize(key, state_epoch=2, start_offset=7)
    with pytest.raises(FencedStateEpoch):
        await remote.write(key, update)
    await remote.delete(key)
    assert await remote.summary(key) == ShareStateSummary()
    with pytest.raises(InvalidRequest):
        await remote.read(key, leader_epoch=5)
    with pytest.raises(UnknownTopicOrPartition):
        await remote.summary(key._replace(topic_id=UUID(int=9)))


async def test_coordinators_of_share_groups_see_how_far_a_group_is(world: SharingWorld) -> None:
    states: ShareStates = StatesOfGroups(world.broker.coordination.shares.states)
    group = ("another", world.topic_id, 0)
    assert await states.summary(*group) == ShareProgress()
    await states.initialize(*group, 1, 0)
    await world.broker.coordination.shares.states.read(SharePartitionKey(*group), leader_epoch=0)
    update = ShareStateUpdate(leader_epoch=0, start_offset=2, delivery_complete_count=1)
    await world.broker.coordination.shares.states.write(SharePartitionKey(*group), update)
    assert await states.summary(*group) == ShareProgress(start_offset=2, leader_epoch=0, delivery_complete_count=1)
    with pytest.raises(FencedStateEpoch):
        await states.initialize(*group, 0, 0)
    await states.delete(*group)
    await states.delete(*group)
    await states.delete("another", UUID(int=9), 0)
    assert await states.summary(*group) == ShareProgress()


async def test_a_request_has_an_answer_for_each_partition(world: SharingWorld) -> None:
    client = await world.connect()
    partitions = [reading.PartitionData(partition=number, leader_epoch=0) for number in (0, 1, -1)]
    topics = [
        reading.ReadStateData(topic_id=world.topic_id, partitions=partitions),
        reading.ReadStateData(topic_id=UUID(int=9), partitions=partitions[:1]),
    ]
    request = reading.ReadShareGroupStateRequest(group_id=GROUP, topics=topics)
    answer = await client.call(ApiKey.READ_SHARE_GROUP_STATE, 0, request)
    assert [[(one.partition, one.error_code) for one in result.partitions] for result in answer.results] == [
        [(0, 0), (1, ErrorCode.INVALID_REQUEST), (-1, ErrorCode.INVALID_REQUEST)],
        [(0, ErrorCode.INVALID_REQUEST)],
    ]


@pytest.mark.parametrize("group_id", ["", GROUP])
async def test_a_request_without_a_group_or_without_partitions_has_no_results(
    world: SharingWorld, group_id: str
) -> None:
    client = await world.connect()
    partitions = [] if group_id else [writing.PartitionData(partition=0)]
    topic = writing.WriteStateData(topic_id=world.topic_id, partitions=partitions)
    request = writing.WriteShareGroupStateRequest(group_id=group_id, topics=[topic])
    assert (await client.call(ApiKey.WRITE_SHARE_GROUP_STATE, 1, request)).results == []


@pytest.mark.parametrize(("first", "last", "state"), [(3, 2, 2), (-1, 2, 2), (0, 1, 3)])
async def test_batches_that_make_no_sense_are_refused(world: SharingWorld, first: int, last: int, state: int) -> None:
    client = await world.connect()
    batch = writing.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=1)
    partition = writing.PartitionData(partition=0, state_epoch=1, start_offset=0, state_batches=[batch])
    topic = writing.WriteStateData(topic_id=world.topic_id, partitions=[partition])
    request = writing.WriteShareGroupStateRequest(group_id=GROUP, topics=[topic])
    answer = await client.call(ApiKey.WRITE_SHARE_GROUP_STATE, 1, request)
    assert answer.results[0].partitions[0].error_code != 0
    assert await world.summary() == (0, 0)


@pytest.mark.parametrize("key", ["", "g", "g:x:0", "g:znTrLlVPSZa1BAumJUnH0g:x", ":znTrLlVPSZa1BAumJUnH0g:0"])
async def test_only_share_partitions_have_a_share_coordinator(world: SharingWorld, key: str) -> None:
    client = await world.connect()
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=[key, "g:colon:znTrLlVPSZa1BAumJUnH0g:0"])
    answer = await client.call(ApiKey.FIND_COORDINATOR, 6, request)
    assert [one.error_code for one in answer.coordinators] == [ErrorCode.INVALID_REQUEST, 0]
    older = await client.call(ApiKey.FIND_COORDINATOR, 5, request)
    assert [one.error_code for one in older.coordinators] == [ErrorCode.INVALID_REQUEST] * 2


async def test_a_call_is_repeated_while_the_coordinator_moves_but_not_for_ever(world: SharingWorld) -> None:
    shares = world.broker.coordination.shares
    peers = WirePeers(await world.connect())
    clock = VirtualClock()
    # As a broker with another id sees it, the coordinator is elsewhere.
    states = ShareStatesOfCluster(
        shares.coordinator,
        PeerLanes(lambda: cast(BrokerPeers, peers)),
        world.broker.loader,
        world.broker.coordination.creator,
        node_id=world.broker.node_id + 1,
        clock=clock,
    )

    async def summary(times: int) -> ShareStateSummary:
        peers.unreachable = times
        task = asyncio.ensure_future(states.summary(world.key))
        for _ in range(20):
            await clock.advance(1)
            if task.done():
                break
        return await task

    assert await summary(2) == ShareStateSummary(1, 0, 0, 0)
    with pytest.raises(CoordinatorNotAvailable):
        await summary(5)
    assert SHARE_GROUP_STATE_TOPIC in world.broker.loader.image.topics
    with pytest.raises(NotCoordinator):
        shares.coordinator.runtime.shard_of(99)
