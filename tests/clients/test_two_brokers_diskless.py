"""Diskless topics of two brokers: one PostgreSQL and one object store, and either broker takes any write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.clients.drivers import DRIVERS, Driver, Sent, driver_name
from tests.clients.two_brokers import BrokerCluster, consume_as_group, produce, running_cluster
from tests.moments import T0
from tests.postgres import postgres, postgres_url
from tests.server.handlers.producing import produce as produce_straight
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

DISKLESS = {"diskless.enable": "true"}


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    shared = {"strandline.objects.url": f"file://{tmp_path}/objects"}
    with running_cluster(tmp_path, postgres_url, settings=shared) as running:
        yield running


def is_served(cluster: BrokerCluster, topic: str, node_id: int) -> bool:
    """Whether a broker has opened the object store for this topic."""
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])]
    )
    with Client.connect("127.0.0.1", cluster.brokers[node_id].port) as client:
        answer = client.request(ApiKey.LIST_OFFSETS, request)
    return bool(answer.topics[0].partitions[0].error_code == ErrorCode.NONE)


def test_both_brokers_write_the_same_partition_at_once(cluster: BrokerCluster, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    cluster.create(name, via=1, config=DISKLESS)
    wait_until(lambda: is_served(cluster, name, 1) and is_served(cluster, name, 2), what="both brokers to serve it")
    batches, size = 50, 3

    def write(node_id: int) -> list[int]:
        with Client.connect("127.0.0.1", cluster.brokers[node_id].port) as client:
            return [produce_straight(client, name, *[T0] * size) for _ in range(batches)]

    with ThreadPoolExecutor(4) as pool:
        offsets = list(pool.map(write, (1, 2, 1, 2)))
    assert all(given == sorted(given) for given in offsets), "one connection's batches keep their order"
    together = sorted(offset for given in offsets for offset in given)
    assert together == list(range(0, 4 * batches * size, size)), "no gaps, nothing twice"
    for node_id in (1, 2):
        received = consume_as_group(
            cluster.brokers[node_id].bootstrap, f"{name}-{node_id}", name, lambda got: len(got) >= 4 * batches * size
        )
        assert len(received) == 4 * batches * size


@pytest.mark.parametrize("driver", DRIVERS, ids=driver_name)
def test_what_one_broker_was_given_the_other_gives_back(
    cluster: BrokerCluster, driver: Driver, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    cluster.create(name, partitions=2, via=2, config=DISKLESS)
    for partition in (0, 1):
        sent = [Sent(b"%d" % number) for number in range(50)]
        assert driver.produce(cluster.brokers[1].bootstrap, name, sent, partition=partition) == list(range(50))
        received = driver.consume(cluster.brokers[2].bootstrap, name, 50, partition=partition)
        assert [record.value for record in received] == [record.value for record in sent]


def test_a_dead_brokers_partitions_are_served_by_the_other(
    cluster: BrokerCluster, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    cluster.create(name, partitions=4, via=1, config=DISKLESS)
    values = [b"%d" % number for number in range(40)]
    produce(cluster.bootstrap, name, values, partitions=4)
    dead = cluster.controller()
    survivor = 3 - dead
    cluster.brokers[dead].kill()
    wait_until(lambda: set(cluster.leaders(name, survivor)) == {survivor}, within=60.0, what="one leader for all")
    produce(cluster.brokers[survivor].bootstrap, name, values, partitions=4)
    # The group's own topic is a classic one: a coordinator that died with its broker waits for it.
    cluster.brokers[dead].start()
    cluster.wait_alive(1, 2)
    received = consume_as_group(cluster.bootstrap, name, name, lambda got: len(got) >= 80)
    assert sorted(received) == sorted(values * 2)


def test_a_session_that_never_waits_sees_what_the_other_broker_was_given(
    cluster: BrokerCluster, unique_name: Callable[[], str]
) -> None:
    """The fetch does not watch the partition, so the end that the broker knows grows old."""
    name = unique_name()
    cluster.create(name, via=1, config=DISKLESS)
    wait_until(lambda: is_served(cluster, name, 1) and is_served(cluster, name, 2), what="both brokers to serve it")
    whole = FetchTopic(topic=name, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
    with Client.connect("127.0.0.1", cluster.brokers[2].port) as client:

        def fetch(session_id: int, epoch: int, topics: list[FetchTopic]) -> FetchResponse:
            request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 26, topics=topics)
            request.session_id, request.session_epoch = session_id, epoch
            answer: FetchResponse = client.request(ApiKey.FETCH, request, version=12)
            assert answer.error_code == ErrorCode.NONE
            return answer

        session_id = fetch(0, 0, [whole]).session_id
        epochs = count(1)
        assert not fetch(session_id, next(epochs), []).responses
        with Client.connect("127.0.0.1", cluster.brokers[1].port) as other:
            produce_straight(other, name, T0)
        wait_until(lambda: bool(fetch(session_id, next(epochs), []).responses), what="the other broker's record")
