"""The controller as a whole: epochs, restarts, producer ids, snapshots, and what an idle broker costs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strandline.errors import NotController, StaleBrokerEpoch
from strandline.metadata import NewTopic, TopicImage
from strandline.metadata.controller.upkeep import SNAPSHOT_FEW, SNAPSHOT_RECORDS, SNAPSHOT_SECONDS
from strandline.metadata.topic_map import indexed_topics
from strandline.sql import open_store
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import member, open_cluster, registration


async def test_a_new_cluster_gets_an_id_that_stays(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    async with open_cluster(url) as cluster:
        cluster_id = cluster.image.cluster_id
        assert len(cluster_id) == 22
        assert (cluster.image.controller_id, cluster.image.controller_epoch) == (1, 1)
    async with open_cluster(url, brokers=()) as cluster:
        assert cluster.image.cluster_id == cluster_id
        assert cluster.image.controller_epoch == 2
        status = cluster.controller.status()
        assert (status.is_active, status.epoch, status.metadata_offset) == (True, 2, cluster.image.offset)


async def test_a_killed_broker_is_its_own_controller_again_without_waiting(tmp_path: Path) -> None:
    """open_cluster does not release the lease at its end: it is as if the process had been killed."""
    url = f"sqlite:///{tmp_path / 'm.db'}"
    async with open_cluster(url) as cluster:
        await cluster.create("t", [[1], [1]])
    async with open_cluster(url, brokers=()) as cluster:
        await cluster.start_broker(1, 2)
        assert [partition.leader_epoch for partition in cluster.image.topics["t"].partitions] == [2, 2]
    async with open_store(url) as sql:  # even under another id: the file has one process
        other = member(sql, VirtualClock(), node_id=5)
        assert await other.controller.activate()


async def test_two_controllers_in_one_process_do_not_share_the_lease() -> None:
    async with open_cluster() as cluster:
        other = member(cluster.sql, cluster.clock, node_id=2)
        assert not await other.controller.activate()
        with pytest.raises(NotController):
            await other.controller.create_topics([NewTopic(name="t")])
        await cluster.controller.leadership.resign()
        assert await other.controller.activate()
        with pytest.raises(NotController):
            await cluster.controller.create_topics([NewTopic(name="t")])


async def test_producer_ids_are_given_out_in_blocks_and_never_twice(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    async with open_cluster(url, brokers=(1, 2)) as cluster:
        one, two = (cluster.image.brokers[node].epoch for node in (1, 2))
        assert await cluster.controller.allocate_producer_ids(1, one) == range(1000)
        assert await cluster.controller.allocate_producer_ids(2, two) == range(1000, 2000)
        with pytest.raises(StaleBrokerEpoch):
            await cluster.controller.allocate_producer_ids(1, one + 1)
    async with open_cluster(url, brokers=()) as cluster:
        epoch = await cluster.start_broker(1, 2)
        assert await cluster.controller.allocate_producer_ids(1, epoch) == range(2000, 3000)


async def test_a_restart_with_many_partitions_is_a_few_records() -> None:
    async with open_cluster() as cluster:
        wishes = [NewTopic(name="big", num_partitions=1500), *(NewTopic(name=f"t{n}") for n in range(500))]
        answers = await cluster.controller.create_topics(wishes)
        assert all(isinstance(answer, TopicImage) for answer in answers)
        before = cluster.image.offset
        assert isinstance(cluster.clock, VirtualClock)
        cluster.clock.move(10.0)
        await cluster.start_broker(1, 2)
        assert cluster.image.offset - before == 4  # registered, lost all; unfenced, got all back
        assert {p.leader_epoch for _, p in cluster.image.all_partitions()} == {2}
        assert indexed_topics(cluster.image).partition_count == 2000
        assert await cluster.store.load() == cluster.image


async def test_partitions_share_their_replica_lists() -> None:
    async with open_cluster() as cluster:
        await cluster.controller.create_topics([NewTopic(name="t", num_partitions=50)])
        loaded = await cluster.store.load()
        assert len({id(partition.replicas) for partition in loaded.topics["t"].partitions}) == 1


async def test_an_idle_broker_writes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    async with open_cluster(url) as cluster:
        await cluster.create("t")
        changes = await _total_changes(cluster.sql)
        assert isinstance(cluster.clock, VirtualClock)
        async with cluster.loader.running(), cluster.controller.running():
            for _ in range(30):
                await cluster.clock.advance(1.0)
                await cluster.beat(1)
                await cluster.controller.upkeep.step()
            assert await _total_changes(cluster.sql) == changes


async def _total_changes(sql: object) -> int:
    async with sql.transaction() as tx:  # type: ignore[attr-defined]
        row = await tx.fetch_one("SELECT total_changes()")
        return int(row[0])


async def test_many_records_are_worth_a_snapshot_and_the_log_stays_short() -> None:
    async with open_cluster() as cluster:
        upkeep = cluster.controller.upkeep
        await upkeep.snapshot_if_due()
        assert await cluster.store.newest_snapshot_offset() == -1
        for round_ in range(3):
            wishes = [NewTopic(name=f"t{round_}-{n}") for n in range(SNAPSHOT_RECORDS // 2)]
            await cluster.controller.create_topics(wishes)
            await upkeep.snapshot_if_due()
            assert await cluster.store.newest_snapshot_offset() == cluster.image.offset
        records = await cluster.store.read(-1)
        assert len(records) <= SNAPSHOT_RECORDS + 1
        assert await cluster.store.load() == cluster.image


async def test_a_few_records_are_worth_a_snapshot_after_a_while() -> None:
    async with open_cluster() as cluster:
        await cluster.controller.create_topics([NewTopic(name=f"t{n}") for n in range(SNAPSHOT_FEW)])
        upkeep = cluster.controller.upkeep
        await upkeep.snapshot_if_due()
        assert await cluster.store.newest_snapshot_offset() == -1
        assert isinstance(cluster.clock, VirtualClock)
        cluster.clock.move(SNAPSHOT_SECONDS)
        await upkeep.snapshot_if_due()
        assert await cluster.store.newest_snapshot_offset() == cluster.image.offset


async def test_a_stop_in_good_order_leaves_a_snapshot_and_frees_the_lease() -> None:
    async with open_cluster() as cluster:
        async with cluster.controller.running():
            await cluster.controller.create_topics([NewTopic(name=f"t{n}") for n in range(SNAPSHOT_FEW)])
        assert await cluster.store.newest_snapshot_offset() == cluster.image.offset
        assert (await cluster.store.lease()).node_id is None
        assert not cluster.controller.is_active


@pytest.mark.parametrize("turns", range(0, 30, 3))
async def test_a_cancelled_request_leaves_the_controller_working(turns: int) -> None:
    async with open_cluster() as cluster:
        task = asyncio.create_task(cluster.create("t"))
        for _ in range(turns):
            await cluster.clock.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await cluster.create("u")
        assert {"u"} <= set(cluster.image.topics) <= {"t", "u"}
        assert await cluster.store.load() == cluster.image


async def test_registrations_of_one_broker_by_two_processes_are_told_apart() -> None:
    async with open_cluster(brokers=()) as cluster:
        first = await cluster.controller.register_broker(registration(1))
        again = await cluster.controller.register_broker(registration(1))
        assert first == again
