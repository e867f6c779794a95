"""Eligible leader replicas (KIP-966): who may lead when no replica is in sync, and who may not any more."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from strandline.errors import EligibleLeadersNotAvailable, InvalidConfig
from strandline.metadata import (
    BrokerRegistration,
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    IsrChange,
    IsrMember,
    LeaderRecoveryState,
)
from strandline.model import NO_LEADER, TopicPartition
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, open_cluster, registration

BROKERS = (1, 2, 3)
SESSION = 9.0


def disk(node_id: int, number: int = 1) -> uuid.UUID:
    return uuid.UUID(int=1000 * node_id + number)


def coming_back(cluster: Cluster, node_id: int, *, is_clean: bool, disks: tuple[int, ...] = (1,)) -> BrokerRegistration:
    known = cluster.image.brokers[node_id]
    incarnation = known.incarnation_id.int % (1 << 32) + 1
    return replace(
        registration(node_id, incarnation),
        previous_broker_epoch=known.epoch if is_clean else -1,
        log_dirs=tuple(disk(node_id, number) for number in disks),
    )


@asynccontextmanager
async def three_replicas(min_isr: int = 2) -> AsyncIterator[Cluster]:
    """The partition t-0 on brokers 1, 2 and 3, whose registrations name a disk."""
    async with open_cluster(brokers=()) as cluster:
        for node_id in BROKERS:
            await cluster.controller.register_broker(replace(registration(node_id), log_dirs=(disk(node_id),)))
            await cluster.beat(node_id)
        await cluster.create("t", [BROKERS], configs={"min.insync.replicas": str(min_isr)})
        yield cluster


async def fence(cluster: Cluster, *nodes: int) -> None:
    for node_id in nodes:
        await cluster.beat(node_id, want_fence=True)


async def return_of(cluster: Cluster, node_id: int, *, is_clean: bool, disks: tuple[int, ...] = (1,)) -> None:
    assert isinstance(cluster.clock, VirtualClock)
    cluster.clock.move(SESSION + 1)
    await cluster.controller.register_broker(coming_back(cluster, node_id, is_clean=is_clean, disks=disks))
    await cluster.beat(node_id)


def state(cluster: Cluster) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    found = cluster.partition("t")
    return found.leader, found.isr, found.elr, found.last_known_elr


async def test_replicas_that_leave_a_set_that_is_too_small_stay_eligible() -> None:
    async with three_replicas() as cluster:
        await fence(cluster, 3)
        assert state(cluster) == (1, (1, 2), (), ())  # two in sync commit records that 3 does not get
        await fence(cluster, 2)
        assert state(cluster) == (1, (1,), (2,), ())
        await fence(cluster, 1)
        assert state(cluster) == (NO_LEADER, (), (1, 2), (1,))
        await cluster.beat(3)
        assert cluster.partition("t").leader == NO_LEADER
        await cluster.beat(2)
        assert state(cluster) == (2, (2,), (1,), ())
        assert cluster.partition("t").leader_recovery_state is LeaderRecoveryState.RECOVERED


async def test_nobody_is_eligible_once_enough_are_in_sync() -> None:
    async with three_replicas() as cluster:
        await fence(cluster, 3, 2)
        assert state(cluster) == (1, (1,), (2,), ())
        await cluster.beat(3)
        found, topic = cluster.partition("t"), cluster.image.topics["t"]
        change = IsrChange(
            topic_id=topic.topic_id,
            partition=0,
            leader_epoch=found.leader_epoch,
            partition_epoch=found.partition_epoch,
            isr=(IsrMember(1), IsrMember(3, cluster.image.brokers[3].epoch)),
        )
        (answer,) = await cluster.controller.alter_partition(1, cluster.image.brokers[1].epoch, [change])
        assert answer == cluster.partition("t")
        assert state(cluster) == (1, (1, 3), (), ())


async def test_a_leader_that_shrinks_its_set_below_the_least_keeps_the_others_eligible() -> None:
    async with three_replicas() as cluster:
        topic = cluster.image.topics["t"]
        change = IsrChange(topic_id=topic.topic_id, partition=0, leader_epoch=0, partition_epoch=0, isr=(IsrMember(1),))
        await cluster.controller.alter_partition(1, cluster.image.brokers[1].epoch, [change])
        assert state(cluster) == (1, (1,), (2, 3), ())
        await fence(cluster, 1)
        assert state(cluster) == (2, (2,), (1, 3), ())


@pytest.mark.parametrize("disks", [(1,), (2,)], ids=["same-disk", "wiped"])
async def test_a_broker_that_was_not_stopped_cleanly_is_eligible_no_more(disks: tuple[int, ...]) -> None:
    async with three_replicas() as cluster:
        await fence(cluster, 3, 2, 1)
        assert state(cluster) == (NO_LEADER, (), (1, 2), (1,))
        await return_of(cluster, 2, is_clean=False, disks=disks)
        assert state(cluster) == (NO_LEADER, (), (1,), (1,))
        await return_of(cluster, 1, is_clean=True)
        assert state(cluster) == (1, (1,), (), ())


async def test_a_clean_restart_keeps_a_broker_eligible() -> None:
    async with three_replicas() as cluster:
        await fence(cluster, 3, 2, 1)
        await return_of(cluster, 2, is_clean=True)
        assert state(cluster) == (2, (2,), (1,), ())


async def test_the_last_known_leader_leads_when_all_machines_have_crashed(caplog: pytest.LogCaptureFixture) -> None:
    async with three_replicas() as cluster:
        await fence(cluster, 3, 2, 1)
        await return_of(cluster, 2, is_clean=False)
        await return_of(cluster, 3, is_clean=False)
        assert state(cluster) == (NO_LEADER, (), (1,), (1,))
        assert "Records may be lost" not in caplog.text
        await return_of(cluster, 1, is_clean=False)
        assert state(cluster) == (1, (1,), (), ())
        assert "Brokers that were not in sync (1) lead 1 of the partitions now" in caplog.text
        assert cluster.partition("t").leader_recovery_state is LeaderRecoveryState.RECOVERING


async def test_t6_the_last_replica_in_sync_returns_with_a_wiped_directory(caplog: pytest.LogCaptureFixture) -> None:
    """It must not lead with an empty log: the others would throw away what they have."""
    async with three_replicas(min_isr=1) as cluster:
        await fence(cluster, 3, 2, 1)
        assert state(cluster) == (NO_LEADER, (), (1,), (1,))
        with caplog.at_level(logging.ERROR):
            await return_of(cluster, 1, is_clean=False, disks=(2,))
        assert state(cluster) == (NO_LEADER, (), (), ())
        (line,) = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
        assert "Broker 1 has started without the log that it had" in line
        assert "t-0" in line
        await cluster.beat(2)
        await cluster.beat(3)
        assert cluster.partition("t").leader == NO_LEADER
        wanted = TopicPartition("t", 0)
        assert await cluster.controller.elect_leaders(ElectionType.UNCLEAN, [wanted]) == {wanted: None}
        assert cluster.partition("t").has_leader
        assert cluster.partition("t").leader_recovery_state is LeaderRecoveryState.RECOVERING


async def test_a_wiped_leader_leaves_the_partition_to_the_others_at_once() -> None:
    async with three_replicas() as cluster:
        await return_of(cluster, 1, is_clean=False, disks=(2,))
        assert state(cluster) == (2, (2, 3), (), ())


async def test_one_of_several_disks_that_is_missing_counts_as_a_loss() -> None:
    async with three_replicas(min_isr=1) as cluster:
        await return_of(cluster, 1, is_clean=True, disks=(1, 2))
        await fence(cluster, 3, 2, 1)
        await return_of(cluster, 1, is_clean=True, disks=(2,))
        assert 1 not in cluster.partition("t").elr
        assert cluster.image.brokers[1].log_dirs == (disk(1, 2),)


async def test_a_broker_that_was_unregistered_has_to_prove_what_it_kept() -> None:
    async with three_replicas(min_isr=1) as cluster:
        await fence(cluster, 3, 2, 1)
        await cluster.controller.unregister_broker(1)
        assert state(cluster) == (NO_LEADER, (), (1,), (1,))
        await cluster.controller.register_broker(replace(registration(1, 7), log_dirs=(disk(1, 9),)))
        await cluster.beat(1)
        assert state(cluster) == (NO_LEADER, (), (), ())


async def test_the_only_replica_of_a_partition_stays_in_sync_with_itself() -> None:
    """There is no other one that could be preferred to it, whatever became of its log."""
    async with three_replicas() as cluster:
        await cluster.create("u", [[1]])
        await return_of(cluster, 1, is_clean=False, disks=(2,))
        found = cluster.partition("u")
        assert (found.leader, found.isr, found.elr, found.last_known_elr) == (1, (1,), (), ())
        assert found.leader_recovery_state is LeaderRecoveryState.RECOVERED


async def test_unclean_elections_prefer_who_is_eligible() -> None:
    async with three_replicas() as cluster:
        resource = ConfigResource(ConfigResourceType.TOPIC, "t")
        allow = ConfigChange("unclean.leader.election.enable", ConfigOperation.SET, "true")
        await cluster.controller.alter_configs([ConfigAlteration(resource=resource, changes=[allow])])
        await fence(cluster, 3, 2)
        assert state(cluster) == (1, (1,), (2,), ())
        await cluster.beat(3)
        await fence(cluster, 1)  # 2 is eligible and away; 3 is neither
        assert state(cluster) == (3, (3,), (), ())
        assert cluster.partition("t").leader_recovery_state is LeaderRecoveryState.RECOVERING
        assert cluster.controller.status().unclean_elections == 1


async def test_requested_elections_take_who_is_eligible_only_if_it_is_alive() -> None:
    async with three_replicas() as cluster:
        await fence(cluster, 3, 2, 1)
        wanted = TopicPartition("t", 0)
        answers = await cluster.controller.elect_leaders(ElectionType.UNCLEAN, [wanted])
        assert type(answers[wanted]) is EligibleLeadersNotAvailable


@pytest.mark.parametrize("is_default", [False, True], ids=["topic", "all-brokers"])
async def test_when_fewer_commit_the_others_are_eligible_no_more(is_default: bool) -> None:
    """The leader alone commits records from now on, which eligible replicas do not get."""
    async with three_replicas() as cluster:
        topic = ConfigResource(ConfigResourceType.TOPIC, "t")
        everywhere = ConfigResource(ConfigResourceType.BROKER, "")
        await alter(cluster, everywhere, "2")
        await fence(cluster, 3, 2)
        assert state(cluster) == (1, (1,), (2,), ())
        await alter(cluster, topic, "3")
        assert state(cluster) == (1, (1,), (2,), ())  # even less can be committed
        if is_default:
            await alter(cluster, topic, None)  # two again
            assert state(cluster) == (1, (1,), (2,), ())
            await alter(cluster, everywhere, "1")
        else:
            await alter(cluster, topic, "1")
        assert state(cluster) == (1, (1,), (), ())


async def test_without_a_leader_nothing_is_committed_whatever_the_setting_is() -> None:
    async with three_replicas() as cluster:
        await fence(cluster, 3, 2, 1)
        await alter(cluster, ConfigResource(ConfigResourceType.TOPIC, "t"), "1")
        assert state(cluster) == (NO_LEADER, (), (1, 2), (1,))
        await cluster.beat(2)
        assert state(cluster) == (2, (2,), (), ())


async def alter(cluster: Cluster, resource: ConfigResource, value: str | None) -> None:
    operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
    change = ConfigChange("min.insync.replicas", operation, value)
    answers = await cluster.controller.alter_configs([ConfigAlteration(resource=resource, changes=[change])])
    assert answers == [None]


async def test_how_many_commit_is_the_same_for_all_brokers() -> None:
    """A leader that commits with fewer than the controller believes would leave eligible replicas behind."""
    async with open_cluster(brokers=BROKERS, properties={"min.insync.replicas": "2"}) as cluster:
        assert cluster.image.cluster_default_overrides() == {"min.insync.replicas": "2"}
        await cluster.create("t", [BROKERS])
        await fence(cluster, 3, 2)
        assert state(cluster) == (1, (1,), (2,), ())
        change = ConfigChange("min.insync.replicas", ConfigOperation.SET, "1")
        one = ConfigAlteration(resource=ConfigResource(ConfigResourceType.BROKER, "1"), changes=[change])
        (refusal,) = await cluster.controller.alter_configs([one])
        assert type(refusal) is InvalidConfig
        await alter(cluster, ConfigResource(ConfigResourceType.BROKER, ""), None)
        assert state(cluster) == (1, (1,), (), ()), "files of brokers may differ: each may commit alone"
