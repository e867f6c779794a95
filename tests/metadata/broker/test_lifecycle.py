"""Membership of a broker: it registers, waits for a session to end, sends heartbeats, and shuts down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from strandline.config import ClusterSettings
from strandline.errors import (
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    NotController,
    RequestTimedOut,
    StaleBrokerEpoch,
    StrandlineError,
)
from strandline.metadata import BrokerHeartbeat, BrokerLifecycle, BrokerRegistration, FailedDirectories, HeartbeatReply
from strandline.metadata.records import BrokerChangeRecord, ControllerChangeRecord
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, open_cluster, registration

FENCED = HeartbeatReply(is_caught_up=True, is_fenced=True, should_shut_down=False)
UNFENCED = HeartbeatReply(is_caught_up=True, is_fenced=False, should_shut_down=False)


class ScriptedController:
    """Gives the answers of a script, and the last one for ever. It has no rules: the real one has its own tests."""

    def __init__(
        self, *, registrations: list[int | StrandlineError], replies: list[HeartbeatReply | StrandlineError]
    ) -> None:
        self._registrations, self._replies = registrations, replies
        self.heard: list[BrokerHeartbeat] = []
        self.registered = 0

    async def register_broker(self, broker: BrokerRegistration) -> int:
        self.registered += 1
        answer = self._registrations[min(self.registered, len(self._registrations)) - 1]
        if isinstance(answer, StrandlineError):
            raise answer
        return answer

    async def broker_heartbeat(self, heartbeat: BrokerHeartbeat) -> HeartbeatReply:
        self.heard.append(heartbeat)
        answer = self._replies[min(len(self.heard), len(self._replies)) - 1]
        if isinstance(answer, StrandlineError):
            raise answer
        return answer


def lifecycle(
    cluster: Cluster, channel: ScriptedController | None = None, on_lost: Callable[[str], None] = pytest.fail
) -> BrokerLifecycle:
    return BrokerLifecycle(
        channel or cluster.controller,
        cluster.loader,
        registration(2),
        ClusterSettings(node_id=2),
        cluster.clock,
        on_lost=on_lost,
    )


async def run(cluster: Cluster, action: Callable[[], Awaitable[object]]) -> object:
    """Await the action while virtual time passes."""
    assert isinstance(cluster.clock, VirtualClock)
    task = asyncio.ensure_future(action())
    while not task.done():
        await cluster.clock.advance(0.5)
    return task.result()


async def test_a_whole_life_with_the_real_controller() -> None:
    async with open_cluster(brokers=()) as cluster:
        broker = lifecycle(cluster)
        assert not broker.status().is_registered
        async with broker.running():
            assert broker.status().is_registered
            assert broker.is_fenced
            assert broker.broker_epoch == cluster.image.brokers[2].epoch
            await broker.unfence()
            assert not broker.is_fenced
            assert cluster.image.is_active(2)
            await cluster.create("t", [[2]])
            assert await run(cluster, lambda: broker.shut_down(within=10_000.0))
            assert broker.status().is_shutting_down
        assert cluster.image.brokers[2].fenced
        assert cluster.partition("t").leader == -1


async def test_it_waits_for_a_controller_and_for_the_session_of_its_last_life() -> None:
    channel = ScriptedController(
        registrations=[NotController("nobody is"), DuplicateBrokerRegistration("you are still alive"), 17],
        replies=[UNFENCED],
    )
    async with open_cluster() as cluster:
        broker = lifecycle(cluster, channel)
        assert await run(cluster, broker.register) == 17
        assert channel.registered == 3


async def test_it_gives_up_when_the_time_to_register_is_over() -> None:
    channel = ScriptedController(registrations=[NotController("nobody is")], replies=[])
    async with open_cluster() as cluster:
        broker = lifecycle(cluster, channel)
        with pytest.raises(NotController):
            await run(cluster, broker.register)
        assert channel.registered > 100


async def test_a_wrong_cluster_is_not_tried_again() -> None:
    channel = ScriptedController(registrations=[InconsistentClusterId("not yours")], replies=[])
    async with open_cluster() as cluster:
        with pytest.raises(InconsistentClusterId):
            await lifecycle(cluster, channel).register()
        assert channel.registered == 1


async def test_heartbeats_go_on_through_passing_failures() -> None:
    channel = ScriptedController(
        registrations=[1], replies=[NotController("wait"), UNFENCED, NotController("wait"), UNFENCED]
    )
    async with open_cluster() as cluster:
        broker = lifecycle(cluster, channel)
        assert isinstance(cluster.clock, VirtualClock)
        async with broker.running():
            await run(cluster, broker.unfence)
            assert not broker.is_fenced
            before = len(channel.heard)
            await cluster.clock.advance(20.0)
            assert len(channel.heard) == before + 10  # one every two seconds


async def test_being_fenced_is_noticed_and_asked_to_be_undone() -> None:
    channel = ScriptedController(registrations=[1], replies=[UNFENCED, FENCED, UNFENCED])
    async with open_cluster() as cluster:
        broker = lifecycle(cluster, channel)
        assert isinstance(cluster.clock, VirtualClock)
        async with broker.running():
            await broker.unfence()
            await cluster.clock.advance(2.0)
            assert broker.is_fenced
            await cluster.clock.advance(2.0)
            assert not broker.is_fenced
            assert not any(heartbeat.want_fence for heartbeat in channel.heard)


async def test_a_new_controller_and_being_fenced_are_answered_with_a_heartbeat_at_once() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        epoch = cluster.image.brokers[2].epoch
        channel = ScriptedController(registrations=[epoch], replies=[UNFENCED])
        broker = lifecycle(cluster, channel)
        assert isinstance(cluster.clock, VirtualClock)
        async with broker.running():
            await broker.unfence()
            await cluster.clock.settle()
            before = len(channel.heard)
            await cluster.create("t", [[1]])
            await cluster.clock.settle()
            assert len(channel.heard) == before, "a topic is no reason"
            change = ControllerChangeRecord(controller_id=1, epoch=cluster.image.controller_epoch + 1)
            cluster.loader.committed(cluster.image.offset + 1, [change])
            await cluster.clock.settle()
            assert len(channel.heard) == before + 1
            fenced = BrokerChangeRecord(node_id=2, broker_epoch=epoch, fenced=True)
            cluster.loader.committed(cluster.image.offset + 1, [fenced])
            await cluster.clock.settle()
            assert len(channel.heard) == before + 2


async def test_a_registration_is_tried_again_when_there_is_another_controller() -> None:
    channel = ScriptedController(registrations=[NotController("nobody is"), 17], replies=[UNFENCED])
    async with open_cluster() as cluster:
        broker = lifecycle(cluster, channel)
        assert isinstance(cluster.clock, VirtualClock)

        async def live() -> None:
            async with broker.running():
                pass

        life = asyncio.create_task(live())
        await cluster.clock.settle()
        assert channel.registered == 1
        change = ControllerChangeRecord(controller_id=1, epoch=cluster.image.controller_epoch + 1)
        cluster.loader.committed(cluster.image.offset + 1, [change])
        await life
        assert channel.registered == 2


async def test_what_a_broker_is_is_confirmed_by_a_heartbeat_that_was_answered() -> None:
    channel = ScriptedController(registrations=[1], replies=[UNFENCED, NotController("wait"), UNFENCED])
    async with open_cluster() as cluster:
        broker = lifecycle(cluster, channel)
        assert isinstance(cluster.clock, VirtualClock)
        async with broker.running():
            await broker.unfence()
            confirming = asyncio.create_task(broker.confirm())
            await cluster.clock.settle()
            assert not confirming.done()
            await cluster.clock.advance(0.5)
            await confirming
            assert len(channel.heard) == 3


async def test_a_broker_whose_id_was_taken_is_told_why_and_hands_nothing_over() -> None:
    channel = ScriptedController(registrations=[1], replies=[UNFENCED, StaleBrokerEpoch("Another one is you.")])
    told: list[str] = []
    async with open_cluster() as cluster:

        async def live() -> None:
            broker = lifecycle(cluster, channel, on_lost=told.append)
            async with broker.running():
                await broker.unfence()
                await cluster.clock.sleep(60)
                heard = len(channel.heard)
                assert await broker.shut_down(within=3.0)
                assert len(channel.heard) == heard

        await run(cluster, live)
    assert told == ["The cluster does not take broker 2 for a member: Another one is you."]


async def test_a_shutdown_without_an_answer_ends_in_time() -> None:
    channel = ScriptedController(registrations=[1], replies=[NotController("gone")])
    async with open_cluster() as cluster:
        broker = lifecycle(cluster, channel)
        await broker.register()
        assert await run(cluster, lambda: broker.shut_down(within=3.0)) is False
        assert channel.heard[-1].want_shut_down


async def test_a_broker_that_never_registered_has_nothing_to_shut_down() -> None:
    async with open_cluster() as cluster:
        assert await lifecycle(cluster).shut_down(within=0.0)


DISK = UUID(int=4711)


@asynccontextmanager
async def with_failures(
    replies: list[HeartbeatReply | StrandlineError],
) -> AsyncIterator[tuple[Cluster, ScriptedController, BrokerLifecycle, list[UUID], list[str]]]:
    """A broker whose log directories may fail, and must be told within 5 s."""
    async with open_cluster() as cluster:
        channel = ScriptedController(registrations=[7], replies=replies)
        failed: list[UUID] = []
        lost: list[str] = []
        broker = BrokerLifecycle(
            channel,
            cluster.loader,
            registration(2),
            ClusterSettings(node_id=2),
            cluster.clock,
            on_lost=lost.append,
            failed_directories=FailedDirectories(lambda: tuple(failed), cluster.clock, patience=5.0),
        )
        async with broker.running():
            yield cluster, channel, broker, failed, lost


async def test_a_log_directory_that_fails_is_told_at_once_and_from_then_on() -> None:
    async with with_failures([UNFENCED]) as (cluster, channel, broker, failed, lost):
        assert isinstance(cluster.clock, VirtualClock)
        failed.append(DISK)
        broker.directory_failed()
        await cluster.clock.advance(0.0)
        assert [one.failed_log_dirs for one in channel.heard] == [(DISK,)]
        await cluster.clock.advance(20.0)
        assert {one.failed_log_dirs for one in channel.heard} == {(DISK,)}
        assert lost == []


async def test_a_broker_that_cannot_tell_of_a_log_directory_stops() -> None:
    async with with_failures([RequestTimedOut("Nobody answers.")]) as (cluster, _, broker, failed, lost):
        assert isinstance(cluster.clock, VirtualClock)
        for _ in range(20):
            await cluster.clock.advance(1.0)
        assert lost == []
        failed.append(DISK)
        broker.directory_failed()
        await cluster.clock.advance(1.0)
        assert lost == []
        for _ in range(10):
            await cluster.clock.advance(1.0)
        assert "log.dir.failure.timeout.ms" in lost[0]
