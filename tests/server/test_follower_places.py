"""Places in the sessions of followers: when they rest, what wakes them, and who gets a session at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemChance
from strandline.errors import FetchSessionIdNotFound
from strandline.replication import LeaderRole
from strandline.replication.followers import Follower
from strandline.server.fetch_sessions import FetchSessions
from strandline.testing.clock import VirtualClock
from strandline.wire.fetch_codec import FetchEntry, FetchRequest
from tests.server.scripted_followers import LONG_MS, Cluster, ScriptedFollower, opened_cluster

ENTRY = FetchEntry("topic", 0, -1, 0, -1, 0, 100)


@pytest_asyncio.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with opened_cluster(tmp_path / "data") as opened:
        yield opened


def known(cluster: Cluster, broker: int) -> Follower:
    role = cluster.partition.role
    assert isinstance(role, LeaderRole)
    assert role.in_sync is not None
    return role.in_sync.find(broker, -1)


async def at_rest(cluster: Cluster, *, isr: tuple[int, ...] = (1, 2, 3)) -> ScriptedFollower:
    """A follower that has everything, and has said so for two requests."""
    await cluster.begin(isr=isr)
    follower = await cluster.follower(2)
    await follower.fetch(0)
    for _ in range(2):
        assert await follower.fetch(wait_ms=1) is None
    return follower


async def test_a_follower_with_everything_rests_until_there_are_records(cluster: Cluster) -> None:
    follower = await at_rest(cluster)
    assert known(cluster, 2).rests_in is not None
    before = known(cluster, 2).caught_up_at
    await follower.fetch(wait_ms=1)
    assert known(cluster, 2).caught_up_at > before, "each request says that it still has everything"
    await cluster.write()
    assert known(cluster, 2).rests_in is None
    answer = await follower.fetch()
    assert answer is not None
    assert answer.records > 0


async def test_a_partition_that_is_not_fetched_any_more_is_not_taken_for_caught_up(cluster: Cluster) -> None:
    await cluster.begin(partitions=2)
    follower = await cluster.follower(2)
    follower.ask(0, 0)
    await follower.told()
    for _ in range(2):
        await follower.fetch(wait_ms=1)
    assert known(cluster, 2).rests_in is not None
    follower.ask(forget=[0])
    await follower.told()
    assert known(cluster, 2).rests_in is None
    at = known(cluster, 2).caught_up_at
    await follower.fetch(wait_ms=1)
    assert known(cluster, 2).caught_up_at == at


async def test_a_session_that_is_replaced_leaves_the_next_one_alone(cluster: Cluster) -> None:
    follower = await at_rest(cluster)
    again = await cluster.follower(2)
    await again.fetch(0)
    for _ in range(2):
        await again.fetch(wait_ms=1)
    resting = known(cluster, 2).rests_in
    assert resting is not None
    follower.ask(forget=[0])
    await follower.told()
    assert known(cluster, 2).rests_in is resting


async def test_a_follower_that_is_not_in_sync_is_seen_at_each_request(cluster: Cluster) -> None:
    """It may join with any of them."""
    follower = await at_rest(cluster)
    await cluster.fence(2)
    await cluster.in_sync(1, 3)
    for _ in range(3):
        await follower.fetch(wait_ms=1)
        assert known(cluster, 2).rests_in is None
    await cluster.fence(2, is_over=True)
    await follower.fetch(wait_ms=1)
    await cluster.in_sync(1, 2, 3)


async def test_another_leader_epoch_wakes_a_follower_that_waits(cluster: Cluster) -> None:
    await cluster.begin()
    follower = await cluster.follower(2)
    epoch = cluster.partition.leader_epoch
    await follower.fetch(0, leader_epoch=epoch)
    for _ in range(2):
        await follower.fetch(wait_ms=1)
    follower.ask(wait_ms=LONG_MS)
    await cluster.waits(1)
    await cluster.lead_again()
    (answer,) = (await follower.told()).values()
    assert answer.error_code != 0


def request(replica_id: int, *, session: tuple[int, int] = (0, 0), epoch: int = -1) -> FetchRequest:
    return FetchRequest(replica_id, 500, 1, 10_000, 0, *session, [ENTRY], [], "", epoch)


def test_followers_get_a_session_if_a_client_has_one_to_give() -> None:
    sessions = FetchSessions(1, VirtualClock(), SystemChance(1))
    client = sessions.open(request(-1), uses_ids=False)
    assert client.session_id != 0
    follower = sessions.open(request(2), uses_ids=False)
    assert follower.session_id != 0
    with pytest.raises(FetchSessionIdNotFound):
        sessions.open(request(-1, session=(client.session_id, 1)), uses_ids=False)
    assert sessions.open(request(-1), uses_ids=False).session_id == 0
    assert sessions.open(request(3), uses_ids=False).session_id == 0, "not from another follower"


def test_sessions_of_a_broker_end_when_it_has_started_again() -> None:
    sessions = FetchSessions(10, VirtualClock(), SystemChance(1))
    fetchers = [sessions.open(request(2, epoch=20), uses_ids=False) for _ in range(2)]
    other = sessions.open(request(3, epoch=10), uses_ids=False)
    assert len(sessions) == 3, "one for each of its fetchers"
    sessions.open(request(2, epoch=40), uses_ids=False)
    assert len(sessions) == 2
    for gone in fetchers:
        with pytest.raises(FetchSessionIdNotFound):
            sessions.open(request(2, session=(gone.session_id, 1), epoch=20), uses_ids=False)
    sessions.open(request(2, epoch=20), uses_ids=False)
    assert len(sessions) == 3, "a late request of the earlier incarnation ends nothing"
    assert sessions.open(request(3, session=(other.session_id, 1), epoch=10), uses_ids=False).session_id != 0


def test_a_session_belongs_to_one_reader() -> None:
    sessions = FetchSessions(10, VirtualClock(), SystemChance(1))
    for owner, stranger in ((-1, 2), (2, -1), (2, 3)):
        opened = sessions.open(request(owner), uses_ids=False)
        with pytest.raises(FetchSessionIdNotFound, match="another reader"):
            sessions.open(request(stranger, session=(opened.session_id, 1)), uses_ids=False)
        assert sessions.open(request(owner, session=(opened.session_id, 1)), uses_ids=False) is not None
