"""The metadata log as a quorum: what the active controller knows about the brokers that read it."""

from __future__ import annotations

import pytest

from strandline.errors import NotController
from strandline.metadata import BrokerHeartbeat
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import open_cluster


async def test_voters_are_the_registered_brokers_with_what_they_have_read() -> None:
    async with open_cluster(brokers=(1, 2, 3)) as cluster:
        clock = cluster.clock
        assert isinstance(clock, VirtualClock)
        seen = cluster.image.offset
        await cluster.beat(2)
        caught_up_ms = clock.now_ms()
        await clock.advance(0.5)
        await cluster.create("t", [(1,)])
        await cluster.controller.broker_heartbeat(
            BrokerHeartbeat(node_id=2, broker_epoch=cluster.image.brokers[2].epoch, current_metadata_offset=seen)
        )
        quorum = cluster.controller.quorum()
        assert (quorum.leader_id, quorum.epoch) == (1, cluster.image.controller_epoch)
        assert quorum.high_watermark == cluster.image.offset + 1
        leader, behind, _ = quorum.voters
        assert (leader.node_id, leader.log_end_offset) == (1, quorum.high_watermark)
        assert (behind.node_id, behind.log_end_offset) == (2, seen + 1)
        assert (behind.last_fetch_ms, behind.last_caught_up_ms) == (clock.now_ms(), caught_up_ms)
        assert [one.port for one in quorum.listeners[3]] == [9092]


async def test_a_broker_that_a_new_controller_has_not_heard_of_yet_is_listed_without_times() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.controller.leadership.resign()
        assert await cluster.controller.activate()
        silent = cluster.controller.quorum().voters[1]
        assert (silent.node_id, silent.log_end_offset, silent.last_fetch_ms) == (2, -1, -1)


async def test_only_the_active_controller_knows() -> None:
    async with open_cluster() as cluster:
        await cluster.controller.leadership.resign()
        with pytest.raises(NotController):
            cluster.controller.quorum()
