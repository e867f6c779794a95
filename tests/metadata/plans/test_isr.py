"""AlterPartition: the order of checks, and what a legal change does."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from strandline.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NotController,
    StaleBrokerEpoch,
    StrandlineError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from strandline.metadata import IsrChange, IsrMember, LeaderRecoveryState, PartitionImage
from tests.metadata.cluster import Cluster, open_cluster

RECOVERING = LeaderRecoveryState.RECOVERING


def change(cluster: Cluster, *nodes: int) -> IsrChange:
    """What the leader of t-0 would ask for."""
    partition = cluster.partition("t")
    return IsrChange(
        topic_id=cluster.image.topics["t"].topic_id,
        partition=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=tuple(IsrMember(node, cluster.image.brokers[node].epoch) for node in nodes),
    )


async def ask(cluster: Cluster, wish: IsrChange, node_id: int = 1) -> PartitionImage | StrandlineError:
    epoch = cluster.image.brokers[node_id].epoch
    (answer,) = await cluster.controller.alter_partition(node_id, epoch, [wish])
    return answer


async def test_the_set_shrinks_and_grows_without_a_new_leader_epoch() -> None:
    async with open_cluster(brokers=(1, 2, 3)) as cluster:
        await cluster.create("t", [[1, 2, 3]])
        answer = await ask(cluster, change(cluster, 1))
        assert answer == cluster.partition("t")
        assert (cluster.partition("t").isr, cluster.partition("t").partition_epoch) == ((1,), 1)
        await ask(cluster, change(cluster, 3, 1))
        partition = cluster.partition("t")
        assert partition.isr == (1, 3)  # in the order of the assignment
        assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 0, 2)


async def test_a_set_that_is_already_so_changes_nothing() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        before = cluster.image
        assert await ask(cluster, change(cluster, 2, 1)) == cluster.partition("t")
        assert cluster.image is before


async def test_a_stale_broker_is_refused_as_a_whole() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]])
        with pytest.raises(StaleBrokerEpoch):
            await cluster.controller.alter_partition(1, cluster.image.brokers[1].epoch + 1, [change(cluster, 1)])


async def test_illegal_wishes_are_refused_in_kafkas_order() -> None:
    async with open_cluster(brokers=(1, 2, 3)) as cluster:
        await cluster.create("t", [[1, 2]])
        await ask(cluster, change(cluster, 1))
        await ask(cluster, change(cluster, 1, 2))
        await cluster.beat(1, want_fence=True)  # leader epoch 1, led by 2
        await cluster.beat(1)
        good = change(cluster, 2)
        stranger = (IsrMember(2), IsrMember(3))
        cases: list[tuple[IsrChange, int, type[StrandlineError]]] = [
            (replace(good, topic_id=uuid.UUID(int=5)), 2, UnknownTopicId),
            (replace(good, partition=7), 2, UnknownTopicOrPartition),
            (replace(good, leader_epoch=9, partition_epoch=0), 2, NotController),
            (replace(good, leader_epoch=0, partition_epoch=9), 2, NotController),
            (replace(good, leader_epoch=0, partition_epoch=0), 1, FencedLeaderEpoch),
            (replace(good, partition_epoch=0), 1, InvalidRequest),  # not the leader, before the old partition epoch
            (replace(good, partition_epoch=0, isr=stranger), 2, InvalidUpdateVersion),
            (replace(good, isr=stranger), 2, InvalidRequest),
            (replace(good, isr=(IsrMember(2), IsrMember(2))), 2, InvalidRequest),
            (replace(good, isr=(IsrMember(1),)), 2, InvalidRequest),
            (replace(good, isr=()), 2, InvalidRequest),
            (replace(good, leader_recovery_state=RECOVERING), 2, InvalidRequest),
            (replace(good, isr=(IsrMember(2), IsrMember(1, 12345))), 2, IneligibleReplica),
        ]
        before = cluster.image
        for wish, sender, kind in cases:
            assert type(await ask(cluster, wish, sender)) is kind, (wish, kind)
        assert cluster.image is before


async def test_brokers_that_may_not_be_in_sync_are_ineligible() -> None:
    async with open_cluster(brokers=(1, 2, 3)) as cluster:
        await cluster.create("t", [[1, 2, 3]])
        await cluster.create("u", [[3]])
        await cluster.beat(2, want_fence=True)
        await cluster.beat(3, want_shut_down=True)
        for node in (2, 3):
            answer = await ask(cluster, change(cluster, 1, node))
            assert type(answer) is IneligibleReplica
        await cluster.controller.unregister_broker(2)
        wish = replace(change(cluster, 1), isr=(IsrMember(1), IsrMember(2)))
        assert type(await ask(cluster, wish)) is IneligibleReplica


async def test_a_recovering_leader_recovers_and_then_others_join() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1, 2]], configs={"unclean.leader.election.enable": "true"})
        await cluster.beat(2, want_fence=True)
        await cluster.beat(1, want_fence=True)
        await cluster.beat(2)
        await cluster.beat(1)
        assert cluster.partition("t").leader_recovery_state is RECOVERING
        wish = change(cluster, 2, 1)
        assert type(await ask(cluster, replace(wish, leader_recovery_state=RECOVERING), 2)) is InvalidRequest
        answer = await ask(cluster, wish, 2)
        assert isinstance(answer, PartitionImage)
        assert (answer.isr, answer.leader_recovery_state) == ((1, 2), LeaderRecoveryState.RECOVERED)
        assert (
            type(await ask(cluster, replace(change(cluster, 2), leader_recovery_state=RECOVERING), 2)) is InvalidRequest
        )
