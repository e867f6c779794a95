"""A diskless partition counts at one broker of a cluster, and a dead leader does not make it offline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.admin.http.scrapes import scrape
from tests.clients.two_brokers import SECONDS, BrokerCluster, produce, running_cluster
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

PARTITIONS = 8


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    shared = {"strandline.objects.url": f"file://{tmp_path}/objects"}
    with running_cluster(tmp_path, postgres_url, settings=shared) as running:
        yield running


def total(cluster: BrokerCluster, name: str) -> float:
    return sum(scrape(cluster.brokers[node_id])[name,] for node_id in cluster.running)


def ends(cluster: BrokerCluster, topic: str) -> list[float]:
    """The end offsets of the topic's partitions, by the broker at which they count."""
    found = [scrape(cluster.brokers[node_id]) for node_id in cluster.running]
    samples = [("kafka_log_log_logendoffset", topic, str(number)) for number in range(PARTITIONS)]
    return [samples_of[sample] for sample in samples for samples_of in found if sample in samples_of]


def test_diskless_partitions_count_where_their_clients_are_sent(cluster: BrokerCluster) -> None:
    leaders, offline = (
        "kafka_server_replicamanager_leadercount",
        "kafka_controller_kafkacontroller_offlinepartitionscount",
    )
    before = total(cluster, leaders)
    cluster.create("shared", partitions=PARTITIONS, via=1, config={"diskless.enable": "true"})
    produce(cluster.bootstrap, "shared", [b"x"] * 3 * PARTITIONS, partitions=PARTITIONS)
    assert total(cluster, leaders) == before + PARTITIONS
    wait_until(lambda: ends(cluster, "shared") == [3] * PARTITIONS, within=SECONDS, what="each partition once")
    led = sum(leader == 2 for leader in cluster.leaders("shared", 1))
    assert 0 < led < PARTITIONS, "both lead some"

    alone = scrape(cluster.brokers[1])[leaders,]
    cluster.brokers[2].kill()
    cluster.wait_alive(1)
    now = scrape(cluster.brokers[1])
    assert now[leaders,] == alone + led, "the survivor stands in for the other"
    assert now[offline,] == 0
    wait_until(lambda: ends(cluster, "shared") == [3] * PARTITIONS, within=SECONDS, what="the same offsets")
