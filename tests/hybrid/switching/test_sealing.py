"""Setting a boundary while the partition changes hands, or stays classic after all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from strandline.controlplane import SqlControlPlane
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Classic
from strandline.hybrid.parts.replica import ReplicaPart
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.switching.sealing import QUIET_WITHIN_S, BoundarySetter
from strandline.hybrid.switching.stages import Stage
from strandline.hybrid.switching.switch import PartitionSwitch
from strandline.tasks import next_turn
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import open_cluster
from tests.replication.conftest import Fixture, batch, fixture, image
from tests.replication.test_partition import append

__all__ = ["fixture"]


@pytest_asyncio.fixture
async def plane() -> AsyncIterator[SqlControlPlane]:
    async with open_cluster() as cluster:
        yield SqlControlPlane(cluster.sql)


def pending(fixture: Fixture, *, isr: tuple[int, ...] = (1,)) -> PartitionSwitch:
    """A switch that has not begun."""
    replica = fixture.partition()
    replica.follow(image(epoch=3, replicas=isr, isr=isr))
    part = ReplicaPart(replica, TieredTopics())
    return PartitionSwitch(Classic(part, ServedPartition(part)))


async def test_a_partition_that_is_classic_again_is_left_alone(fixture: Fixture, plane: SqlControlPlane) -> None:
    """Its topic was aborted while other partitions of it had their turn."""
    switch = pending(fixture)
    switch.released()
    assert await BoundarySetter(plane.migrations, VirtualClock()).set([switch], 1, is_wanted=lambda _: False) == []
    assert switch.replica.gate is None or not switch.replica.gate.refuses_new_transactions
    assert not switch.replica.is_sealed


async def test_a_new_leadership_that_knows_no_boundary_yet_is_not_unsealed_by_the_one_before(
    fixture: Fixture, plane: SqlControlPlane
) -> None:
    switch, clock = pending(fixture, isr=(1, 2)), VirtualClock()
    append(switch.replica, batch(b"not replicated"), acks=1)
    setting = asyncio.create_task(
        BoundarySetter(plane.migrations, clock).set([switch], 1, is_wanted=lambda one: one.is_pending)
    )
    while not switch.replica.is_sealed:
        await next_turn()
    switch.replica.follow(image(epoch=4, replicas=(1, 2), isr=(1, 2), version=1))
    switch.epoch_began()
    await clock.advance(QUIET_WITHIN_S + 1)
    assert await setting == []
    assert switch.stage is Stage.UNKNOWN
    assert switch.replica.is_sealed
