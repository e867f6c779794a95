"""What the living brokers say while another one, and what only it has, is away."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.clients.two_brokers import running_cluster
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]


@pytest.mark.timeout(240)
def test_partitions_without_a_leader_are_named_with_what_they_mean_until_their_broker_is_back(
    tmp_path: Path, postgres_url: str
) -> None:
    shared = {"strandline.objects.url": f"file://{tmp_path}/objects"}
    with running_cluster(tmp_path, postgres_url, settings=shared) as cluster:
        one, two = cluster.brokers[1], cluster.brokers[2]
        cluster.create("orders", partitions=2, via=1)
        cluster.create("diskless", partitions=2, via=1, config={"diskless.enable": "true"})
        consumer = Consumer({"bootstrap.servers": one.bootstrap, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("diskless", 0, 0)], asynchronous=False)
        consumer.close()
        dead = cluster.leaders("orders", 1).index(2)
        groups = [number for number, leader in enumerate(cluster.leaders("__consumer_offsets", 1)) if leader == 2]
        assert httpx.get(f"{one.http}/readyz").text == "ready\n"
        two.kill()

        def lines() -> list[str]:
            answer = httpx.get(f"{one.http}/readyz")
            assert answer.status_code == 200, "the others are served, and a restart would not help"
            return answer.text.splitlines()

        wait_until(lambda: len(lines()) == 3, within=60.0, what="the partitions to be named")
        ready, named, coordinators = lines()
        assert ready == "ready"
        assert named.startswith(f"{1 + len(groups)} partitions have no leader until broker 2 is back: ")
        assert f"orders-{dead}" in named
        assert "diskless-" not in named
        assert coordinators.startswith(f"__consumer_offsets has no leader for {', '.join(map(str, groups))}: ")
        assert "no coordinator" in coordinators
        assert "diskless" in coordinators
        page = httpx.get(f"{one.http}/").text
        assert named in page
        assert '<b class="bad">' in page
        assert httpx.get(f"{one.http}/status").json()["leaderless"] == [named, coordinators]
        two.start()
        wait_until(lambda: lines() == ["ready"], within=60.0, what="all partitions to be led")
