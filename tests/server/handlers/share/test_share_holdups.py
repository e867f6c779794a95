"""What hangs holds up nobody else: a store, a share coordinator, a client that does not read; what ends meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from strandline.coordinators.share_states import SharePartitionKey, ShareStateUpdate
from strandline.hybrid.reading import PendingRead
from strandline.server.peers import BrokerPeers, PeerLanes
from strandline.server.share_states.states import RemoteShareStates
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.api_versions import ApiVersionsRequest
from strandline.wire.messages.share_group_describe import ShareGroupDescribeRequest
from strandline.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from strandline.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.server.handlers.share.sharing_world import ACCEPT, GROUP, Member, SharingWorld, sharing_broker
from tests.waiting import until

UPGRADE, SAFE_DOWNGRADE = 1, 2


class Gate:
    """Writes of one share partition go through when it is open."""

    def __init__(self, world: SharingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened, self.waiting = asyncio.Event(), 0
        self.key = world.key
        coordinator = world.broker.coordination.shares.coordinator
        write = coordinator.write

        async def gated(key: SharePartitionKey, update: ShareStateUpdate, **who: Any) -> None:
            if key == self.key:
                self.waiting += 1
                await self.opened.wait()
            await write(key, update, **who)

        monkeypatch.setattr(coordinator, "write", gated)


class SlowStore:
    """A broker whose reads from stores come back when it says so."""

    def __init__(self, world: SharingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers, self.reads = asyncio.Event(), 0
        partitions = world.broker.partitions
        read = partitions.read

        async def slowly(pending: Sequence[PendingRead], **how: Any) -> Any:
            self.reads += 1
            await self.answers.wait()
            return await read(pending, **how)

        monkeypatch.setattr(partitions, "read", slowly)


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[SharingWorld]:
    async with sharing_broker(tmp_path) as opened:
        await opened.create_topic()
        await opened.begin_group()
        yield opened


async def test_a_store_that_hangs_holds_up_its_own_partition_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sharing_broker(tmp_path) as world:
        await world.create_topic(diskless_enable="true")
        await world.create_topic("quick")
        for name in ("topic", "quick"):
            await world.begin_group(topic_name=name)
            await world.produce(5, topic=name)
    async with sharing_broker(tmp_path) as world:  # nothing is in its caches
        store = SlowStore(world, monkeypatch)
        one, other = await world.member("one"), await world.member("other")
        one.other_topics = other.other_topics = (world.id_of("quick"),)
        found = await one.ask(max_wait_ms=20_000)
        rows = {topic.topic_id: topic.partitions[0] for topic in found.responses}
        assert len(rows[world.id_of("quick")].acquired_records) == 1, "at once, not after the time for slow reads"
        assert rows[world.topic_id].acquired_records == []
        assert await other.fetch(max_wait_ms=50) == [], "it does not begin another read"
        assert store.reads == 1
        waiting = asyncio.create_task(one.fetch(max_wait_ms=20_000))
        store.answers.set()
        assert await waiting == [(0, 4, 1)], "the read of the first request is not lost"
        assert world.broker.network.memory.answers.held == 0


async def test_a_read_that_nobody_waits_for_any_more_is_for_the_next_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sharing_broker(tmp_path) as world:
        await world.create_topic(diskless_enable="true")
        await world.begin_group()
        await world.produce(5)
    async with sharing_broker(tmp_path) as world:
        store = SlowStore(world, monkeypatch)
        one = await world.member("one")
        while not store.reads:  # the share partition may still be loaded
            assert await one.fetch(max_wait_ms=50) == []
        share = world.broker.coordination.shares.partitions.use(world.key)
        store.answers.set()
        await until(lambda: not share.is_fetching)
        assert world.broker.network.memory.answers.held > 0
        assert await one.fetch(max_wait_ms=0) == [(0, 4, 1)]
        assert store.reads == 1
        await until(lambda: world.broker.network.memory.answers.held == 0)


async def test_answers_count_until_the_client_has_read_them(world: SharingWorld) -> None:
    await world.produce(*[1] * 16, size=1_000_000)
    one = await world.member("one")
    answers = world.broker.network.memory.answers
    assert answers.held == 0
    one.client.send(ApiKey.SHARE_FETCH, 2, one.request(max_wait_ms=20_000, max_bytes=50_000_000))
    shares = world.broker.coordination.shares.partitions
    await until(lambda: len(shares) == 1)
    share = shares.use(world.key)
    await until(lambda: share.is_loaded and not share.is_fetching and share.next_offset() != 0)
    assert answers.held > 2_000_000, "it has acquired them, so they are on their way"
    response = await one.client.receive(ApiKey.SHARE_FETCH, 2)
    assert len(response.responses[0].partitions[0].records) > 2_000_000
    await until(lambda: answers.held == 0)


async def test_a_share_coordinator_that_hangs_holds_up_its_own_requests_alone(
    world: SharingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares, gate = world.broker.coordination.shares, Gate(world, monkeypatch)
    mine = shares.coordinator.partition_for(world.key)
    groups = (world.key._replace(group_id=f"group-{number}") for number in range(100))
    other = next(key for key in groups if shares.coordinator.partition_for(key) != mine)
    await shares.coordinator.initialize(other, state_epoch=1, start_offset=0)
    peers = PeerLanes(lambda: BrokerPeers(world.broker.loader, node_id=99, listener="PLAINTEXT", purpose="test"))
    update = ShareStateUpdate(state_epoch=1, leader_epoch=0, start_offset=1)
    hung, well = (RemoteShareStates(peers.lane(lane), world.broker.node_id) for lane in (mine, 1 - mine))
    try:
        for states, key in ((hung, world.key), (well, other)):
            await states.read(key, leader_epoch=0)
        hanging = asyncio.create_task(hung.write(world.key, update))
        await until(lambda: gate.waiting == 1)
        await well.write(other, update)
        assert not hanging.done()
        gate.opened.set()
        await hanging
    finally:
        peers.close()


async def test_records_that_are_being_settled_when_the_last_member_goes_do_not_come_again(
    world: SharingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next member finds the share partition anew, in the same epoch, and waits for what is being written."""
    await world.produce(4)
    one, other = await world.member("one"), await world.member("other")
    assert await one.fetch() == [(0, 3, 1)]
    gate = Gate(world, monkeypatch)
    settling = asyncio.create_task(one.acknowledge((0, 3, [ACCEPT])))
    await until(lambda: gate.waiting == 1)
    shares = world.broker.coordination.shares.partitions
    one.client.drop()
    await until(lambda: len(shares.sessions) == 0 and len(shares) == 0)
    waiting = asyncio.create_task(other.fetch(max_wait_ms=20_000))
    await until(lambda: len(shares) == 1)
    await asyncio.gather(settling, return_exceptions=True)
    gate.opened.set()
    await world.produce(1)
    assert await waiting == [(4, 4, 1)]


async def test_a_session_that_ends_late_does_not_end_the_next_one(
    world: SharingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.produce(4)
    one = await world.member("one")
    assert await one.fetch(max_records=4) == [(0, 3, 1)]
    gate = Gate(world, monkeypatch)
    leaving = asyncio.create_task(one.acknowledge((0, 1, [ACCEPT]), epoch=-1))
    await until(lambda: gate.waiting == 1)
    again = Member("one", await world.connect(), world.topic_id)
    assert await again.fetch(max_wait_ms=50) == []
    gate.opened.set()
    assert (await leaving).error_code == 0
    await again.settle((2, 3, [ACCEPT]))  # in its session, which is there


async def test_share_groups_are_switched_off_and_on(world: SharingWorld) -> None:
    await world.produce(2)
    one, client = await world.member("one"), await world.connect()
    assert await one.fetch() == [(0, 1, 1)]

    async def switch(level: int, kind: int) -> None:
        update = FeatureUpdateKey(feature="share.version", max_version_level=level, upgrade_type=kind)
        answer = await client.call(ApiKey.UPDATE_FEATURES, 1, UpdateFeaturesRequest(feature_updates=[update]))
        assert answer.error_code == 0, answer.error_message

    async def offered() -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = await client.call(ApiKey.API_VERSIONS, 4, request)
        return (
            {known.name: (known.min_version, known.max_version) for known in answer.supported_features},
            {known.name: known.max_version_level for known in answer.finalized_features},
        )

    supported, levels = await offered()
    assert (supported["share.version"], levels["share.version"]) == ((0, 1), 1)
    await switch(0, SAFE_DOWNGRADE)
    shares = world.broker.coordination.shares.partitions
    await until(lambda: (len(shares), len(shares.sessions)) == (0, 0))
    supported, levels = await offered()
    assert (supported["share.version"], "share.version" in levels) == ((0, 1), False)
    off = ErrorCode.UNSUPPORTED_VERSION
    assert (await one.ask(epoch=0)).error_code == off
    assert (await one.acknowledge((0, 1, [ACCEPT]))).error_code == off
    joining = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="one", subscribed_topic_names=["topic"])
    assert (await client.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, joining)).error_code == off
    describing = ShareGroupDescribeRequest(group_ids=[GROUP, "another"])
    described = await client.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, describing)
    assert [group.error_code for group in described.groups] == [off, off]
    await switch(1, UPGRADE)
    one.epoch = 0
    assert await one.fetch(max_wait_ms=20_000) == [(0, 1, 1)]
    await one.settle((0, 1, [ACCEPT]))
