"""Brokers that register, stay, miss heartbeats, shut down and return; and the effect on their partitions."""

from __future__ import annotations

import asyncio

import pytest

from strandline.errors import (
    BrokerIdNotRegistered,
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    InvalidRequest,
    StaleBrokerEpoch,
)
from strandline.metadata import BrokerHeartbeat, IsrChange, IsrMember, LeaderRecoveryState
from strandline.metadata.controller.upkeep import Upkeep
from strandline.model import NO_LEADER
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, open_cluster, registration

SESSION = 9.0


def upkeep(cluster: Cluster) -> Upkeep:
    return cluster.controller.upkeep


def move(cluster: Cluster, seconds: float) -> None:
    assert isinstance(cluster.clock, VirtualClock)
    cluster.clock.move(seconds)


async def advance(cluster: Cluster, seconds: float) -> None:
    assert isinstance(cluster.clock, VirtualClock)
    await cluster.clock.advance(seconds)


async def test_a_broker_starts_fenced_and_its_epoch_is_the_offset_of_its_registration() -> None:
    async with open_cluster(brokers=()) as cluster:
        epoch = await cluster.controller.register_broker(registration(1, rack="a"))
        broker = cluster.image.brokers[1]
        assert epoch == broker.epoch == cluster.image.offset
        assert (broker.fenced, broker.rack, broker.listeners[0].host) == (True, "a", "host-1")
        assert cluster.image.alive_brokers() == ()


async def test_a_broker_is_unfenced_when_it_has_seen_its_own_registration() -> None:
    async with open_cluster(brokers=()) as cluster:
        epoch = await cluster.controller.register_broker(registration(1))
        behind = BrokerHeartbeat(node_id=1, broker_epoch=epoch, current_metadata_offset=epoch - 1)
        reply = await cluster.controller.broker_heartbeat(behind)
        assert (reply.is_fenced, reply.is_caught_up) == (True, False)
        wants_fence = BrokerHeartbeat(node_id=1, broker_epoch=epoch, current_metadata_offset=epoch, want_fence=True)
        reply = await cluster.controller.broker_heartbeat(wants_fence)
        assert (reply.is_fenced, reply.is_caught_up) == (True, True)
        assert not (await cluster.beat(1)).is_fenced
        assert [broker.node_id for broker in cluster.image.alive_brokers()] == [1]


async def test_heartbeats_that_change_nothing_write_nothing() -> None:
    async with open_cluster() as cluster:
        before, lease = cluster.image, await cluster.store.lease()
        for _ in range(10):
            await cluster.beat(1)
        assert cluster.image is before
        assert await cluster.store.lease() == lease


async def test_heartbeats_do_not_wait_for_other_requests() -> None:
    """A database that hangs must not make brokers look dead."""
    async with open_cluster() as cluster, cluster.sql.transaction():
        creating = asyncio.create_task(cluster.create("t"))  # waits for the transaction around us
        await cluster.clock.sleep(0)
        assert (await asyncio.wait_for(cluster.beat(1), 5)).is_caught_up
        creating.cancel()
        await asyncio.gather(creating, return_exceptions=True)


async def test_another_cluster_is_refused() -> None:
    async with open_cluster() as cluster:
        with pytest.raises(InconsistentClusterId, match="Expected cluster ID"):
            await cluster.controller.register_broker(registration(2, cluster_id="somewhere-else"))
        await cluster.controller.register_broker(registration(2, cluster_id=cluster.image.cluster_id))


async def test_a_repeated_registration_changes_nothing() -> None:
    async with open_cluster() as cluster:
        before = cluster.image
        assert await cluster.controller.register_broker(registration(1)) == before.brokers[1].epoch
        assert cluster.image is before


async def test_a_second_incarnation_waits_for_the_session_of_the_first() -> None:
    async with open_cluster() as cluster:
        with pytest.raises(DuplicateBrokerRegistration):
            await cluster.controller.register_broker(registration(1, 2))
        move(cluster, SESSION + 0.1)
        epoch = await cluster.controller.register_broker(registration(1, 2))
        assert cluster.image.brokers[1].fenced
        stale = BrokerHeartbeat(node_id=1, broker_epoch=epoch - 1, current_metadata_offset=epoch)
        with pytest.raises(StaleBrokerEpoch):
            await cluster.controller.broker_heartbeat(stale)


async def test_a_broker_in_controlled_shutdown_may_be_replaced_at_once() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        await cluster.beat(1, want_shut_down=True)
        await cluster.controller.register_broker(registration(1, 2))


async def test_a_restart_raises_the_leader_epochs_of_all_its_partitions() -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", [[1], [1]])
        move(cluster, SESSION + 0.1)
        await cluster.start_broker(1, 2)
        for number in (0, 1):
            partition = cluster.partition("t", number)
            assert (partition.leader, partition.isr) == (1, (1,))
            assert (partition.leader_epoch, partition.partition_epoch) == (2, 2)  # lost it, got it back


async def test_a_restart_hands_leadership_to_replicas_in_sync() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        move(cluster, SESSION - 1)
        await cluster.beat(2)
        move(cluster, 1.1)
        await cluster.controller.register_broker(registration(1, 2))
        partition = cluster.partition("t")
        assert (partition.leader, partition.isr, partition.leader_epoch) == (2, (2,), 1)


async def test_silent_brokers_are_fenced_and_others_lead() -> None:
    async with open_cluster(brokers=(1, 2, 3)) as cluster:
        await cluster.create("t", [[1, 2, 3], [2, 1, 3]])
        move(cluster, SESSION / 2)
        await cluster.beat(2)
        await cluster.beat(3)
        move(cluster, SESSION / 2 + 0.1)
        await upkeep(cluster).step()
        assert [broker.node_id for broker in cluster.image.alive_brokers()] == [2, 3]
        first, second = cluster.partition("t", 0), cluster.partition("t", 1)
        assert (first.leader, first.isr, first.leader_epoch, first.partition_epoch) == (2, (2, 3), 1, 1)
        # Only the in-sync set of the second shrank: no new leader epoch.
        assert (second.leader, second.isr, second.leader_epoch, second.partition_epoch) == (2, (2, 3), 0, 1)
        assert not (await cluster.beat(1)).is_fenced  # it was only slow
        assert cluster.partition("t").isr == (2, 3)  # its leader decides when it is in sync again


async def test_the_last_in_sync_replica_stays_eligible_and_leads_again_when_it_returns() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        await cluster.beat(2, want_fence=True)
        await cluster.beat(1, want_fence=True)
        lost = cluster.partition("t")
        assert (lost.leader, lost.isr, lost.elr, lost.last_known_elr) == (NO_LEADER, (), (1,), (1,))
        assert lost.leader_epoch == 1
        await cluster.beat(2)  # 2 is not in sync: it may not lead
        assert cluster.partition("t").leader == NO_LEADER
        await cluster.beat(1)
        back = cluster.partition("t")
        assert (back.leader, back.isr, back.leader_epoch) == (1, (1,), 2)
        assert (back.elr, back.last_known_elr) == ((), ())
        assert back.leader_recovery_state is LeaderRecoveryState.RECOVERED


async def test_an_unclean_leader_is_alone_in_sync_and_recovering() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]], configs={"unclean.leader.election.enable": "true"})
        await cluster.beat(2, want_fence=True)
        await cluster.beat(1, want_fence=True)
        await cluster.beat(2)
        partition = cluster.partition("t")
        assert (partition.leader, partition.isr) == (2, (2,))
        assert partition.leader_recovery_state is LeaderRecoveryState.RECOVERING


async def test_a_controlled_shutdown_moves_leaders_and_waits_until_all_have_seen_it() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        old_offset = cluster.image.offset
        reply = await cluster.beat(1, want_shut_down=True)
        assert (reply.should_shut_down, reply.is_fenced) == (False, False)
        assert cluster.image.brokers[1].in_controlled_shutdown
        assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))
        epoch = cluster.image.brokers[2].epoch
        late = BrokerHeartbeat(node_id=2, broker_epoch=epoch, current_metadata_offset=old_offset)
        await cluster.controller.broker_heartbeat(late)
        assert not (await cluster.beat(1, want_shut_down=True)).should_shut_down
        await cluster.beat(2)
        reply = await cluster.beat(1, want_shut_down=True)
        assert (reply.should_shut_down, reply.is_fenced) == (True, True)
        assert cluster.image.brokers[1].fenced


async def test_a_shutdown_does_not_wait_for_the_broker_of_the_controller() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[2]])
        assert not (await cluster.beat(2, want_shut_down=True)).should_shut_down
        assert (await cluster.beat(2, want_shut_down=True)).should_shut_down


async def test_the_last_broker_shuts_down_and_its_partitions_wait_for_it() -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", [[1]])
        assert not (await cluster.beat(1, want_shut_down=True)).should_shut_down
        assert (await cluster.beat(1, want_shut_down=True)).should_shut_down
        assert (cluster.partition("t").leader, cluster.partition("t").isr) == (NO_LEADER, (1,))
        await cluster.start_broker(1, 2)
        assert not cluster.image.brokers[1].in_controlled_shutdown
        assert (cluster.partition("t").leader, cluster.partition("t").leader_epoch) == (1, 2)


async def test_a_broker_without_leaderships_shuts_down_at_once() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        assert (await cluster.beat(2, want_shut_down=True)).should_shut_down


async def test_a_broker_that_runs_is_not_unregistered() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[2]])
        before = cluster.image
        with pytest.raises(InvalidRequest, match="Broker 2 is running"):
            await cluster.controller.unregister_broker(2)
        await cluster.beat(2, want_shut_down=True)
        with pytest.raises(InvalidRequest, match="Broker 2 is running"):
            await cluster.controller.unregister_broker(2)
        assert cluster.image.brokers.keys() == before.brokers.keys()


async def test_an_unregistered_broker_is_gone() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[2, 1]])
        await cluster.beat(2, want_fence=True)
        await cluster.controller.unregister_broker(2)
        assert set(cluster.image.brokers) == {1}
        assert (cluster.partition("t").leader, cluster.partition("t").isr) == (1, (1,))
        with pytest.raises(BrokerIdNotRegistered):
            await cluster.controller.unregister_broker(2)
        heartbeat = BrokerHeartbeat(node_id=2, broker_epoch=1, current_metadata_offset=1)
        with pytest.raises(BrokerIdNotRegistered):
            await cluster.controller.broker_heartbeat(heartbeat)


async def test_time_in_which_the_controller_did_not_run_is_not_the_silence_of_brokers() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster, upkeep(cluster).running():
        await advance(cluster, 2.0)
        move(cluster, 30.0)  # the process was stopped: it could not receive heartbeats
        # Whatever runs first afterwards, for example the rest of a step that waited for the database meanwhile.
        await upkeep(cluster).step()
        assert len(cluster.image.alive_brokers()) == 2
        for _ in range(10):
            await advance(cluster, 1.0)
            await cluster.beat(1)
        await upkeep(cluster).step()
        assert [broker.node_id for broker in cluster.image.alive_brokers()] == [1]


async def test_preferred_replicas_get_leadership_back_after_a_while() -> None:
    properties = {"leader.imbalance.check.interval.seconds": "5"}
    async with open_cluster(brokers=(1, 2), properties=properties) as cluster:
        await cluster.create("t", [[1, 2]])
        await cluster.beat(1, want_fence=True)
        await cluster.beat(1)
        topic = cluster.image.topics["t"]
        change = IsrChange(
            topic_id=topic.topic_id, partition=0, leader_epoch=1, partition_epoch=1, isr=(IsrMember(2), IsrMember(1))
        )
        await cluster.controller.alter_partition(2, cluster.image.brokers[2].epoch, [change])
        assert cluster.partition("t").leader == 2
        for _ in range(6):
            move(cluster, 1.0)
            await upkeep(cluster).step()
        assert (cluster.partition("t").leader, cluster.partition("t").leader_epoch) == (1, 2)
