"""Diskless topics of two brokers that disagree: about the metadata, because one was suspended, or about the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
import pytest

from strandline.clock import SystemClock
from strandline.diskless.wal import verify
from strandline.records import BatchHeader, Record, TimestampType, build_batch, iter_headers
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.clients.test_two_brokers_diskless import DISKLESS, cluster, is_served
from tests.clients.two_brokers import BrokerCluster, running_cluster
from tests.moments import T0
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["cluster", "postgres", "postgres_url"]

HALF_AN_HOUR_MS = 1_800_000  # brokers start: strandline.clock.difference.max.ms is an hour
_HALF_AN_HOUR_AHEAD = """
CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS $$ SELECT pg_catalog.clock_timestamp() + interval '30 minutes' $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$;
"""


def append(client: Client, topic: str, partition: int = 0) -> PartitionProduceResponse:
    """What a broker answers to one record."""
    data = PartitionProduceData(index=partition, records=bytes(build_batch([Record(0, T0, None, b"value")])))
    request = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    answer = client.request(ApiKey.PRODUCE, request, version=12).responses[0].partition_responses[0]
    assert ErrorCode(answer.error_code) is ErrorCode.NONE, answer.error_message
    return answer  # type: ignore[no-any-return]


def leader_of(client: Client, topic: str, partition: int) -> int:
    """The leader that one broker names. An AdminClient might ask the broker that is suspended."""
    answer = client.request(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    leaders: dict[int, int] = {row.partition_index: row.leader_id for row in answer.topics[0].partitions}
    return leaders.get(partition, -1)


def headers(cluster: BrokerCluster, node_id: int, topic: str, partition: int, count: int) -> list[BatchHeader]:
    """The batches of a partition as one broker gives them to a consumer, one fetch for each."""
    found: list[BatchHeader] = []
    with Client.connect("127.0.0.1", cluster.brokers[node_id].port) as client:
        while len(found) < count:
            offset = found[-1].next_offset if found else 0
            wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
            request = FetchRequest(max_wait_ms=5_000, min_bytes=1, max_bytes=1 << 20)
            request.topics = [FetchTopic(topic=topic, partitions=[wanted])]
            answer = client.request(ApiKey.FETCH, request, version=12).responses[0].partitions[0]
            assert ErrorCode(answer.error_code) is ErrorCode.NONE
            found += [header for _, header in iter_headers(answer.records or b"")]
    return found


def test_the_epochs_of_a_partition_never_go_back_when_a_broker_with_old_metadata_commits_late(
    cluster: BrokerCluster, tmp_path: Path, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    awake = cluster.controller()
    slept = 3 - awake
    late_broker = cluster.brokers[slept]
    late_broker.settings = {**late_broker.settings, "broker.session.timeout.ms": "600000"}  # it notices no suspension
    late_broker.restart()
    cluster.wait_alive(awake, slept)
    cluster.create(name, partitions=4, via=awake, config=DISKLESS)
    wait_until(lambda: is_served(cluster, name, awake) and is_served(cluster, name, slept), what="both to serve it")
    partition = cluster.leaders(name, awake).index(slept)
    with (
        ThreadPoolExecutor(1) as pool,
        Client.connect("127.0.0.1", cluster.brokers[slept].port, timeout_s=60) as late,
        Client.connect("127.0.0.1", cluster.brokers[awake].port) as client,
    ):
        with cluster.brokers[slept].suspended():
            answer = pool.submit(append, late, name, partition)
            wait_until(lambda: leader_of(client, name, partition) == awake, within=60.0, what="another leader")
            assert append(client, name, partition).base_offset == 0
        assert answer.result().base_offset == 1
    (accepted_late,) = [
        extent.leader_epoch
        for path in (tmp_path / "objects").rglob(f"wal/*/{slept}-*")
        for extent in verify(path.read_bytes()).extents
    ]
    for node_id in (awake, slept):
        first, second = headers(cluster, node_id, name, partition, 2)
        assert first.leader_epoch == second.leader_epoch > accepted_late


@pytest.fixture
def cluster_behind_its_database(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    """Two brokers whose clocks are half an hour behind that of the database."""

    async def set_clock() -> None:
        connection = await asyncpg.connect(postgres_url)
        await connection.execute(_HALF_AN_HOUR_AHEAD)
        await connection.close()

    asyncio.run(set_clock())
    shared = {"strandline.objects.url": f"file://{tmp_path}/objects"}
    with running_cluster(tmp_path, postgres_url, settings=shared) as running:
        yield running


def test_log_append_time_is_the_databases_in_answers_and_on_both_brokers(
    cluster_behind_its_database: BrokerCluster, unique_name: Callable[[], str]
) -> None:
    cluster, name = cluster_behind_its_database, unique_name()
    cluster.create(name, via=1, config={**DISKLESS, "message.timestamp.type": "LogAppendTime"})
    wait_until(lambda: is_served(cluster, name, 1) and is_served(cluster, name, 2), what="both brokers to serve it")
    begun = SystemClock().now_ms()
    told = []
    for node_id in (1, 2, 1):
        with Client.connect("127.0.0.1", cluster.brokers[node_id].port) as client:
            told.append(append(client, name).log_append_time_ms)
    assert begun + HALF_AN_HOUR_MS <= told[0]
    assert all(one <= other for one, other in pairwise(told))
    for node_id in (1, 2):
        found = headers(cluster, node_id, name, 0, 3)
        assert [header.max_timestamp for header in found] == told
        assert {header.timestamp_type for header in found} == {TimestampType.LOG_APPEND_TIME}
