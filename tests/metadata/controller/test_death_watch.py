"""Controllers that see each other's processes live and die, on one PostgreSQL. Time is virtual."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from strandline.errors import DuplicateBrokerRegistration, NotController
from strandline.metadata import BrokerRegistration, LeaseTiming, Listener
from strandline.metadata.controller.asking import BrokerInquiry
from strandline.metadata.controller.death_watch import LOOK_SECONDS
from strandline.metadata.controller.deaths import SILENT_SECONDS, Sign
from strandline.metadata.controller.fencing import HURRY_SECONDS
from strandline.metadata.controller.leadership import LEASE_SECONDS
from strandline.sql import SqlError, open_store
from strandline.testing.clock import VirtualClock
from tests.broker import free_port
from tests.metadata.cluster import Cluster, member
from tests.postgres import Postgres, postgres, postgres_url
from tests.server.test_connection import Client, serving
from tests.waiting import until_in

__all__ = ["postgres", "postgres_url"]

SESSION = {"broker.session.timeout.ms": "9000"}


@dataclass
class Signs:
    """What brokers answer who are asked whether they live."""

    by_broker: dict[int, Sign] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    async def ask(self, node_id: int) -> Sign:
        self.asked.append(node_id)
        return self.by_broker.get(node_id, Sign.ANSWERED)


class Process:
    """One broker's metadata, with its own connections and locks."""

    def __init__(self, cluster: Cluster, stack: AsyncExitStack) -> None:
        self.cluster, self._stack = cluster, stack

    async def end(self) -> None:
        """As if it were killed: the lease stays, the locks go."""
        await self._stack.aclose()

    def registration(self) -> BrokerRegistration:
        node_id, process = self.cluster.controller.node_id, self.cluster.store.process_id
        return BrokerRegistration(
            node_id=node_id, incarnation_id=process, listeners=(Listener("PLAINTEXT", f"host-{node_id}", 9092),)
        )


class Brokers:
    """Some brokers of one cluster, the first of them the active controller."""

    def __init__(self, url: str) -> None:
        self.url, self.clock, self.signs = url, VirtualClock(), Signs()
        self.processes: dict[int, Process] = {}
        self.started: list[Process] = []

    async def start(self, node_id: int) -> Process:
        stack = AsyncExitStack()
        sql = await stack.enter_async_context(open_store(self.url))
        cluster = member(sql, self.clock, node_id=node_id, properties=SESSION, inquiry=self.signs)
        await cluster.loader.load()
        await stack.enter_async_context(cluster.controller.leadership.identity())
        process = self.processes[node_id] = Process(cluster, stack)
        self.started.append(process)
        return process

    async def join(self, process: Process, controller: Cluster) -> None:
        await controller.controller.register_broker(process.registration())
        assert not (await controller.beat(process.cluster.controller.node_id)).is_fenced

    async def look(self, *watching: Cluster, times: int = 1) -> None:
        """These look, and do what follows from it."""
        for _ in range(times):
            self.clock.move(LOOK_SECONDS)
            for cluster in watching:
                await cluster.controller.upkeep.watch.look()
                await cluster.controller.upkeep.step()


@asynccontextmanager
async def brokers(url: str, count: int = 3) -> AsyncIterator[Brokers]:
    cluster = Brokers(url)
    try:
        for node_id in range(1, count + 1):
            process = await cluster.start(node_id)
            one = cluster.processes[1].cluster
            assert await one.controller.activate()
            await cluster.join(process, one)
        for process in cluster.processes.values():
            await process.cluster.loader.catch_up()
            await process.cluster.controller.upkeep.watch.look()
        yield cluster
    finally:
        for process in cluster.started:
            await process.end()


def fenced(cluster: Cluster) -> list[int]:
    return [node_id for node_id, broker in cluster.image.brokers.items() if broker.fenced]


async def test_a_broker_whose_process_has_ended_is_fenced_after_two_looks(postgres_url: str) -> None:
    async with brokers(postgres_url) as cluster:
        one = cluster.processes[1].cluster
        await one.create("t", [[2, 3]])
        await cluster.processes[2].end()
        cluster.signs.by_broker[2] = Sign.REFUSED
        await cluster.look(one)
        assert fenced(one) == []
        await cluster.look(one)
        assert fenced(one) == [2]
        assert one.partition("t").leader == 3
        assert cluster.signs.asked == [2], "once, since the second look has decided"


async def test_a_broker_that_answers_is_not_fenced_without_its_lock(postgres_url: str) -> None:
    async with brokers(postgres_url) as cluster:
        one = cluster.processes[1].cluster
        await cluster.processes[2].end()
        await cluster.look(one, times=25)
        assert fenced(one) == []


async def test_a_broker_that_is_neither_reached_nor_connected_is_given_some_seconds(postgres_url: str) -> None:
    async with brokers(postgres_url) as cluster:
        one = cluster.processes[1].cluster
        await cluster.processes[2].end()
        cluster.signs.by_broker[2] = Sign.SILENT
        await cluster.look(one, times=int(SILENT_SECONDS / LOOK_SECONDS))
        assert fenced(one) == []
        await cluster.look(one, times=3)
        assert fenced(one) == [2]


async def test_the_lease_of_a_dead_controller_is_taken_and_the_dead_fenced_in_one_step(postgres_url: str) -> None:
    async with brokers(postgres_url) as cluster:
        two, three = (cluster.processes[node_id].cluster for node_id in (2, 3))
        await cluster.processes[1].end()
        cluster.signs.by_broker[1] = Sign.REFUSED
        await cluster.look(two, three)
        assert not two.controller.is_active
        await cluster.look(two, three)
        assert [two.controller.is_active, three.controller.is_active] == [True, False]
        assert fenced(two) == [1]


async def test_the_lease_of_a_controller_without_its_session_stays_its_own(postgres_url: str) -> None:
    async with brokers(postgres_url) as cluster:
        two = cluster.processes[2].cluster
        await cluster.processes[1].end()
        await cluster.look(two, times=20)  # it answers
        assert not two.controller.is_active


async def test_a_process_that_started_again_is_let_in_although_the_session_of_the_last_one_goes_on(
    postgres_url: str,
) -> None:
    async with brokers(postgres_url) as cluster:
        one = cluster.processes[1].cluster
        await cluster.processes[2].end()
        again = await cluster.start(2)
        await cluster.join(again, one)
        assert one.image.brokers[2].incarnation_id == again.cluster.store.process_id


async def test_a_process_without_the_name_of_the_broker_waits_for_the_end_of_the_session(postgres_url: str) -> None:
    async with brokers(postgres_url) as cluster:
        one, other = cluster.processes[1].cluster, cluster.processes[2].registration()
        stranger = BrokerRegistration(
            node_id=2, incarnation_id=uuid.UUID(int=77), listeners=other.listeners, cluster_id=other.cluster_id
        )
        with pytest.raises(DuplicateBrokerRegistration):
            await one.controller.register_broker(stranger)


async def test_the_first_process_is_dead_when_the_next_one_has_its_name_whoever_answers(postgres_url: str) -> None:
    async with brokers(postgres_url) as cluster:
        one = cluster.processes[1].cluster
        await cluster.processes[2].end()
        await cluster.start(2)
        cluster.signs.by_broker[2] = Sign.SILENT  # the next one listens at the same address and serves nobody yet
        await cluster.look(one, times=2)
        assert fenced(one) == [2]


async def test_a_restart_of_the_database_ends_no_process(postgres: Postgres, postgres_url: str) -> None:
    async with brokers(postgres_url) as cluster:
        one, two = cluster.processes[1].cluster, cluster.processes[2].cluster
        cluster.signs.by_broker = dict.fromkeys((1, 2, 3), Sign.SILENT)
        await postgres.stop()
        for each in (one, two):
            with pytest.raises(SqlError):
                await each.controller.upkeep.watch.look()
        await postgres.start()

        async def look(each: Cluster) -> bool:
            try:
                await each.controller.upkeep.watch.look()
            except SqlError:
                return False
            return True

        looked: set[int] = set()
        while looked != {1, 2}:
            cluster.clock.move(LOOK_SECONDS)
            for number, each in ((1, one), (2, two)):
                if await look(each):
                    looked.add(number)
            assert fenced(one) == []
        assert one.controller.upkeep.watch.dead == two.controller.upkeep.watch.dead == frozenset()


@pytest.mark.parametrize("sign", [Sign.SILENT, Sign.ANSWERED])
async def test_a_controller_that_let_its_lease_expire_gets_a_new_session_only_if_it_answers(
    postgres_url: str, sign: Sign
) -> None:
    async with brokers(postgres_url) as cluster:
        two = cluster.processes[2].cluster
        async with two.store.sql.transaction() as tx:
            await tx.execute("UPDATE controller_lease SET expires_at_ms = 1 WHERE id = 1")
        cluster.signs.by_broker[1] = sign
        await two.controller.upkeep.step()
        assert two.controller.is_active
        cluster.clock.move(HURRY_SECONDS + 0.1)
        await two.controller.upkeep.step()
        assert fenced(two) == ([1] if sign is Sign.SILENT else [])


async def test_a_lease_that_is_released_is_taken_at_once(postgres_url: str) -> None:
    async with brokers(postgres_url) as cluster:
        one, two = cluster.processes[1].cluster, cluster.processes[2].cluster
        async with two.loader.running(), two.controller.upkeep.running():
            await cluster.clock.settle()
            await one.controller.leadership.resign()
            await until_in(cluster.clock, lambda: two.controller.is_active, "the lease", step=0.0)


async def test_a_standby_knows_when_the_lease_would_be_over(postgres_url: str) -> None:
    async with brokers(postgres_url) as cluster:
        two = cluster.processes[2].cluster
        async with two.store.sql.transaction() as tx:
            await tx.execute("UPDATE controller_lease SET expires_at_ms = {now_ms} + 900000 WHERE id = 1")
        await two.controller.upkeep.step()
        assert not two.controller.is_active
        assert 800.0 < two.controller.leadership.free_in <= 900.0
        cluster.clock.move(900.0)
        assert two.controller.leadership.free_in <= 0.0


async def test_a_controller_notices_by_itself_that_its_time_is_over(postgres_url: str) -> None:
    async with brokers(postgres_url, 1) as cluster:
        one = cluster.processes[1].cluster
        cluster.clock.move(LEASE_SECONDS)
        with pytest.raises(NotController):
            await one.beat(1)
        assert LeaseTiming().lease == LEASE_SECONDS


async def port_of(connect: Callable[[], asyncio.Future[Client]]) -> int:
    _, writer = await connect()
    return int(writer.get_extra_info("peername")[1])


async def test_what_listens_at_an_address_tells_whether_a_broker_is_there(postgres_url: str) -> None:
    """A real question over a real socket: an answer, a refusal, an end without an answer, silence."""
    async with brokers(postgres_url, 1) as cluster:
        one = cluster.processes[1].cluster

        async def sign(port: int) -> Sign:
            broker = BrokerRegistration(
                node_id=port,
                incarnation_id=uuid.UUID(int=port),
                listeners=(Listener("PLAINTEXT", "127.0.0.1", port),),
            )
            await one.controller.register_broker(broker)
            return await BrokerInquiry(1, one.loader, listener="PLAINTEXT").ask(port)

        assert await sign(free_port()) is Sign.REFUSED
        async with serving(lambda exchange, _: exchange.connection.close(None)) as (_, connect):
            assert await sign(await port_of(connect)) is Sign.REFUSED
        async with serving(lambda _exchange, _frame: None) as (_, connect):
            assert await sign(await port_of(connect)) is Sign.SILENT
        assert await BrokerInquiry(1, one.loader, listener="ELSEWHERE").ask(1) is Sign.SILENT
