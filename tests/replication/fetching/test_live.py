"""A follower copies from a real broker over a real connection."""

from __future__ import annotations

import asyncio
from pathlib import Path

import uvloop

from strandline.config.replication import ReplicationSettings
from tests.replication.fetching.live import FixedImages, copied, live_follower, live_leader
from tests.waiting import until


async def test_what_is_produced_is_copied(tmp_path: Path) -> None:
    await what_is_produced_is_copied(tmp_path)


def test_what_is_produced_is_copied_on_the_loop_of_a_broker(tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(what_is_produced_is_copied(tmp_path))


async def what_is_produced_is_copied(tmp_path: Path) -> None:
    async with live_leader(tmp_path / "leader") as leader:
        topic_id = await leader.create("orders")
        await leader.produce("orders", b"before")
        async with live_follower(tmp_path / "follower", FixedImages(leader.image())) as follower:
            replica = follower.replica("orders", topic_id)
            follower.follow(replica)
            await copied(leader.log("orders"), replica.log)
            for value in range(20):
                await leader.produce("orders", b"%d" % value, b"more")
            await copied(leader.log("orders"), replica.log)
            await until(lambda: replica.log.high_watermark == 41, "the high watermark")
            assert follower.fetchers.status().max_lag == 0


async def test_large_records_are_written_by_the_thread_of_the_log_directory(tmp_path: Path) -> None:
    await large_records_are_copied(tmp_path)


def test_large_records_are_copied_on_the_loop_of_a_broker(tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(large_records_are_copied(tmp_path))


async def large_records_are_copied(tmp_path: Path) -> None:
    async with live_leader(tmp_path / "leader") as leader:
        topic_id = await leader.create("orders", 3)
        for partition in range(3):
            for number in range(8):
                await leader.produce("orders", b"%d" % number * 300_000, partition=partition)
        async with live_follower(tmp_path / "follower", FixedImages(leader.image())) as follower:
            replicas = [follower.replica("orders", topic_id, number) for number in range(3)]
            for replica in replicas:
                follower.follow(replica)
            for replica in replicas:
                await copied(leader.log("orders", replica.topic_partition.partition), replica.log)
                await until(lambda log=replica.log: log.high_watermark == 8, "the high watermark")  # type: ignore[misc]
            assert follower.fetchers.status().connections == 1
            assert follower.fetchers.status().bytes_in == sum(replica.log.size for replica in replicas)


async def test_a_session_goes_on_when_a_request_that_waits_is_given_up(tmp_path: Path) -> None:
    async with live_leader(tmp_path / "leader") as leader:
        topic_id = await leader.create("orders", 4)
        # Long enough that the test would time out if anything waited for it.
        settings = ReplicationSettings(replica_fetch_wait_max_ms=25_000)
        async with live_follower(tmp_path / "follower", FixedImages(leader.image()), settings) as follower:
            for number in range(4):
                await leader.produce("orders", b"%d" % number, partition=number)
                replica = follower.replica("orders", topic_id, number)
                follower.follow(replica)
                await copied(leader.log("orders", number), replica.log)
            assert len(leader.broker.sessions) == 1


async def test_a_follower_comes_back_with_what_it_had(tmp_path: Path) -> None:
    async with live_leader(tmp_path / "leader") as leader:
        topic_id = await leader.create("orders")
        await leader.produce("orders", b"a", b"b")
        for expected in (2, 3):
            async with live_follower(tmp_path / "follower", FixedImages(leader.image())) as follower:
                replica = follower.replica("orders", topic_id)
                assert replica.log.log_end_offset == (0 if expected == 2 else 2)
                follower.follow(replica)
                await copied(leader.log("orders"), replica.log)
                assert replica.log.log_end_offset == expected
            await leader.produce("orders", b"c")
