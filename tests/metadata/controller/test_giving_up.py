"""When a controller gives up its lease by itself: it stops, or the silence of all others may be its own fault."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from strandline.metadata import LeaseTiming
from strandline.metadata.controller.fencing import OFFER_SECONDS
from strandline.metadata.log.store import Term
from strandline.sql import StoreUnavailable, open_store
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, member
from tests.postgres import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]

FOREVER = LeaseTiming(lease=3600.0)
SESSION_SECONDS = 9.0


@asynccontextmanager
async def brokers(url: str, *, alive: int, registered: int = 3) -> AsyncIterator[tuple[VirtualClock, list[Cluster]]]:
    """Brokers 1 to `registered`, unfenced, the first of them the active controller; `alive` processes of them."""
    clock = VirtualClock()
    async with AsyncExitStack() as stack:
        processes = []
        for node_id in range(1, alive + 1):
            sql = await stack.enter_async_context(open_store(url))
            process = member(sql, clock, node_id=node_id, timing=FOREVER)
            await process.loader.load()
            await stack.enter_async_context(process.controller.leadership.identity())
            processes.append(process)
        assert await processes[0].controller.activate()
        for node_id in range(1, registered + 1):
            await processes[0].start_broker(node_id)
        yield clock, processes


def fenced(cluster: Cluster) -> list[int]:
    return [node_id for node_id, broker in cluster.image.brokers.items() if broker.fenced]


async def silence(clock: VirtualClock, cluster: Cluster, *heard: int) -> None:
    """Time passes in which the controller hears only of these brokers."""
    clock.move(SESSION_SECONDS - 2)
    for node_id in heard:
        await cluster.beat(node_id)
    clock.move(2)
    await cluster.controller.upkeep.step()


async def test_a_controller_that_hears_of_nobody_gives_up_the_lease_and_fences_nobody(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with brokers(postgres_url, alive=3) as (clock, (one, two, _)):
        await silence(clock, one, 1)
        assert not one.controller.is_active
        assert fenced(one) == []
        assert "it has heard of no other broker" in caplog.text
        await two.controller.upkeep.step()
        assert two.controller.is_active
        clock.move(OFFER_SECONDS)
        await one.controller.upkeep.step()
        assert not one.controller.is_active
        assert fenced(two) == []


async def test_heartbeats_that_stop_at_once_do_so_whatever_their_rhythm(postgres_url: str) -> None:
    async with brokers(postgres_url, alive=3) as (clock, (one, *_)):
        clock.move(2)
        await one.beat(3)  # its session ends later than that of broker 2
        clock.move(SESSION_SECONDS - 3)
        await one.beat(1)
        clock.move(1)
        await one.controller.upkeep.step()
        assert not one.controller.is_active
        assert fenced(one) == []


async def test_a_lease_that_nobody_else_takes_is_taken_again_and_the_silent_are_fenced(postgres_url: str) -> None:
    async with brokers(postgres_url, alive=3) as (clock, (one, *_)):
        await silence(clock, one, 1)
        clock.move(OFFER_SECONDS / 2)
        await one.controller.upkeep.step()
        assert not one.controller.is_active, "others still have time"
        clock.move(OFFER_SECONDS / 2)
        await one.controller.upkeep.step()
        assert one.controller.is_active
        assert fenced(one) == [2, 3]


async def test_brokers_that_cannot_reach_each_other_offer_the_lease_once_and_then_one_of_them_leads(
    postgres_url: str,
) -> None:
    async with brokers(postgres_url, alive=2, registered=2) as (clock, (one, two)):
        await silence(clock, one, 1)
        await two.controller.upkeep.step()
        assert two.controller.is_active
        await silence(clock, two, 2)
        assert not two.controller.is_active, "it hears of nobody either"
        await one.controller.upkeep.step()
        assert one.controller.is_active
        assert fenced(one) == [], "a new controller gives everyone a session"
        await silence(clock, one, 1)
        assert one.controller.is_active, "the other has had the lease, and gave it back"
        assert fenced(one) == [2]


async def test_a_lease_that_another_has_held_for_long_is_offered_again_in_a_new_silence(postgres_url: str) -> None:
    async with brokers(postgres_url, alive=3) as (clock, (one, two, _)):
        await silence(clock, one, 1)
        await two.controller.upkeep.step()
        clock.move(100)
        await two.controller.leadership.resign()
        await one.controller.upkeep.step()
        assert one.controller.is_active
        await silence(clock, one, 1)
        assert not one.controller.is_active
        assert fenced(one) == []


async def test_others_are_not_fenced_for_a_lease_that_could_not_be_given_up(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with brokers(postgres_url, alive=3) as (clock, (one, *_)):

        async def fail(term: Term) -> None:
            raise StoreUnavailable("The database is away.")

        with monkeypatch.context() as away:
            away.setattr(one.store, "release_lease", fail)
            with pytest.raises(StoreUnavailable):
                await silence(clock, one, 1)
        clock.move(OFFER_SECONDS)
        await one.controller.upkeep.step()
        assert fenced(one) == [], "they could not take it"


async def test_brokers_whose_processes_are_gone_are_fenced_at_once(postgres_url: str) -> None:
    async with brokers(postgres_url, alive=1) as (clock, (one,)):
        await silence(clock, one, 1)
        assert one.controller.is_active
        assert fenced(one) == [2, 3]


async def test_one_silent_broker_of_several_is_fenced_at_once(postgres_url: str) -> None:
    async with brokers(postgres_url, alive=3) as (clock, (one, *_)):
        await silence(clock, one, 1, 3)
        assert one.controller.is_active
        assert fenced(one) == [2]


async def test_a_controller_that_resigned_leaves_the_lease_to_others(postgres_url: str) -> None:
    clock = VirtualClock()
    async with (
        open_store(postgres_url) as sql,
        open_store(postgres_url) as other_sql,
    ):
        one, two = member(sql, clock, node_id=1, timing=FOREVER), member(other_sql, clock, node_id=2, timing=FOREVER)
        await one.loader.load()
        await two.loader.load()
        async with one.controller.running():
            await one.start_broker(1)
            await one.controller.resign()
            assert not one.controller.is_active
            await clock.advance(SESSION_SECONDS)
            assert not one.controller.is_active, "its periodic work has ended"
            assert await two.controller.activate()
            assert fenced(two) == []
