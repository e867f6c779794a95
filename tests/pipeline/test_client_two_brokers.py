"""The client of the tiering API and two brokers: it asks the leader of a partition, and notices that it has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from strandline.client import Cluster, HttpRefused
from strandline.client.http import exchange
from strandline.conversion_api.codec import encode
from strandline.conversion_api.values import API_VERSION, BeginSegment
from strandline.model import TopicIdPartition, TopicPartition
from strandline.pipeline.client import BrokersUnavailable, RequestRefused, TieringClient
from strandline.pipeline.driver.rounds import run_once
from tests.admin.http.scrapes import scrape
from tests.clients import tiering
from tests.clients.two_brokers import BrokerCluster, produce, running_cluster
from tests.pipeline.plain_driver import make_world, prepare_tasks
from tests.pipeline.world import convert
from tests.postgres import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]

pytestmark = pytest.mark.timeout(180)

PARTITIONS = 4


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    shared = {
        **tiering.QUICK,
        "strandline.objects.url": f"file://{tmp_path}/objects",
        "rsm.config.url": f"file://{tmp_path}/remote",
    }
    with running_cluster(tmp_path, postgres_url, settings=shared) as running:
        running.create("orders", partitions=PARTITIONS, via=1, config={"diskless.enable": "true"})
        yield running


def topic_id(cluster: BrokerCluster) -> UUID:
    with Cluster(cluster.brokers[cluster.running[0]].bootstrap) as kafka:
        found: UUID = kafka.metadata(["orders"]).topics[0].topic_id
        return found


def wish(cluster: BrokerCluster, partition: int) -> BeginSegment:
    """A segment that no leader begins: nothing is split."""
    where = TopicIdPartition(topic_id(cluster), TopicPartition("orders", partition))
    return BeginSegment(claimant="me", partition=where, base_offset=0, last_offset=9, claim_ms=1000)


def test_segments_are_begun_with_the_leaders_of_their_partitions(cluster: BrokerCluster) -> None:
    assert set(cluster.leaders("orders", 1)) == {1, 2}
    produce(cluster.bootstrap, "orders", [b"%d" % number for number in range(40)], partitions=PARTITIONS)
    with TieringClient(cluster.bootstrap) as client:
        (before,) = client.statuses(["orders"])
    lag = [scrape(broker).get(("inkless_tiering_lag_bytes", "orders"), 0.0) for broker in cluster.brokers.values()]
    assert sum(lag) == before.lag_bytes > 0, "sums over brokers count each partition once"
    assert all(lag), "each broker counts its own"
    # A client that knows one broker at the beginning: leaders of all partitions take part.
    done = convert(cluster.brokers[1].bootstrap, "orders")
    assert len(done.boundaries) == PARTITIONS
    with TieringClient(cluster.brokers[2].bootstrap) as client:
        (status,) = client.statuses(["orders"])
    assert [one.diskless_start_offset for one in status.partitions] == [10] * PARTITIONS


def test_a_broker_that_does_not_lead_says_who_does(cluster: BrokerCluster) -> None:
    leaders = cluster.leaders("orders", 1)
    for partition, leader in enumerate(leaders):
        other = 3 - leader
        address = cluster.brokers[other].http.removeprefix("http://")
        with pytest.raises(HttpRefused, match=f"but broker {leader} does") as refused:
            exchange(
                other, address, f"/tiering/v{API_VERSION}/begin-segment", encode(wish(cluster, partition)), what="begin"
            )
        assert (refused.value.status, refused.value.code) == (421, "NOT_LEADER_OR_FOLLOWER")


def test_a_leader_that_is_away_is_waited_for(cluster: BrokerCluster) -> None:
    """Nobody else may commit what it leads. The other partitions go on, and so does this one when it is back."""
    away = next(node_id for node_id in (1, 2) if node_id != cluster.controller())
    there = 3 - away
    leaders = cluster.leaders("orders", there)
    of = {leader: wish(cluster, leaders.index(leader)) for leader in (1, 2)}
    with TieringClient(cluster.bootstrap, timeout_s=2.0) as client:
        for leader in (1, 2):
            with pytest.raises(RequestRefused, match="orders-"):
                client.begin_segment(of[leader])
        cluster.brokers[away].kill()
        with pytest.raises(BrokersUnavailable, match="begin a segment of orders-"):
            client.begin_segment(of[away])
        with pytest.raises(RequestRefused):
            client.begin_segment(of[there])
    cluster.brokers[away].start()
    with TieringClient(cluster.brokers[there].bootstrap) as patient, pytest.raises(RequestRefused):
        patient.begin_segment(of[away])


def test_a_partition_has_one_name(cluster: BrokerCluster) -> None:
    """A segment must not be announced under the name of another topic."""
    right = wish(cluster, 0)
    wrong = replace(right, partition=TopicIdPartition(right.partition.topic_id, TopicPartition("other", 0)))
    address = cluster.brokers[cluster.leaders("orders", 1)[0]].http.removeprefix("http://")
    path = f"/tiering/v{API_VERSION}/begin-segment"
    with pytest.raises(HttpRefused, match="There is no partition other-0") as refused:
        exchange(1, address, path, encode(wrong), what="begin")
    assert refused.value.status == 404


def test_a_leader_that_is_away_holds_up_its_own_partitions_only(tmp_path: Path, postgres_url: str) -> None:
    shared = {
        **tiering.QUICK,
        "strandline.objects.url": f"file://{tmp_path}/objects",
        "rsm.config.url": f"file://{tmp_path}/remote",
        "inkless.tiering.min.segment.bytes": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    }
    with running_cluster(tmp_path, postgres_url, settings=shared) as cluster:
        for topic in ("first", "orders"):
            cluster.create(topic, partitions=PARTITIONS, via=1, config={"diskless.enable": "true"})
            produce(cluster.bootstrap, topic, [b"%d" % number for number in range(40)], partitions=PARTITIONS)
        convert(cluster.bootstrap, "first")  # __remote_log_metadata is there
        (survivor,) = set(cluster.leaders("__remote_log_metadata", 1))
        leaders = cluster.leaders("orders", 1)
        (away,) = set(leaders) - {survivor}
        with TieringClient(cluster.bootstrap) as client:
            client.trigger("orders")
        cluster.brokers[away].kill()
        prepare_tasks()
        with TieringClient(cluster.bootstrap, timeout_s=5) as client:
            world = make_world(client, ["orders"])
            asyncio.run(run_once(world))
            (status,) = client.statuses(["orders"])
        converted = {one.partition for one in status.partitions if one.diskless_start_offset > 0}
        assert converted == {number for number, leader in enumerate(leaders) if leader == survivor}
        sentences = world.troubles.sentences()
        assert len(sentences) == leaders.count(away)
        assert all("begin a segment of orders-" in sentence for sentence in sentences)
