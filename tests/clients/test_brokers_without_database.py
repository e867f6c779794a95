"""A broker that reaches the other brokers and not the database goes on leading what it leads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from strandline.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from tests.broker import BrokerProcess
from tests.clients.two_brokers import QUICK, SECONDS, BrokerCluster, consume_as_group, produce
from tests.link import Link
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

CUT_OFF = 3
LONGER_THAN_A_SESSION_MS = 4500


@contextmanager
def linked_cluster(directory: Path, postgres_url: str) -> Iterator[tuple[BrokerCluster, Link]]:
    """Three brokers. The connections of one to the database can be cut."""
    database = urlsplit(postgres_url)
    (socket,) = parse_qs(database.query)["host"]
    with Link(f"{socket}/.s.PGSQL.5432") as link:
        linked = f"postgresql://postgres:@127.0.0.1:{link.port}{database.path}"
        cluster = BrokerCluster(
            {
                node_id: BrokerProcess(
                    directory / f"broker-{node_id}",
                    settings={
                        **QUICK,
                        "node.id": str(node_id),
                        "strandline.metadata.url": linked if node_id == CUT_OFF else postgres_url,
                    },
                )
                for node_id in (1, 2, CUT_OFF)
            }
        )
        try:
            for broker in cluster.brokers.values():
                broker.start()
            cluster.wait_alive(1, 2, CUT_OFF)
            yield cluster, link
        finally:
            link.come_back()
            for broker in cluster.brokers.values():
                broker.close()


def create_on(cluster: BrokerCluster, topic: str, *replicas: int) -> None:
    """A topic of one partition with these replicas, all of which have to have what is acknowledged."""
    wanted = CreatableTopic(
        name=topic,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))],
        configs=[CreatableTopicConfig(name="min.insync.replicas", value=str(len(replicas)))],
    )
    with cluster.connect(replicas[0]) as client:
        (answer,) = client.request(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[wanted])).topics
    assert answer.error_code == 0
    cluster.wait_led(topic, 1)


def fencings(cluster: BrokerCluster, node_id: int) -> int:
    """How often this broker was fenced, by the logs of all controllers."""
    return sum(broker.log_text.count(f"broker {node_id} is fenced") for broker in cluster.brokers.values())


def goes_on(cluster: BrokerCluster, topic: str, values: list[bytes], *, since: int) -> None:
    """For longer than a session, the broker without the database is a member, and takes records.

    It was cut off when its log was `since` characters long: it may have searched for a controller before.
    """
    others = [node_id for node_id in cluster.running if node_id != CUT_OFF]

    def asked() -> bool:
        return "is asked as the controller" in cluster.brokers[CUT_OFF].log_text[since:]

    wait_until(asked, within=SECONDS, what="the new controller to be found")
    produce(cluster.brokers[CUT_OFF].bootstrap, topic, values, partitions=1)
    first = last_heard(cluster, others[0])
    wait_until(
        lambda: last_heard(cluster, others[0]) - first > LONGER_THAN_A_SESSION_MS,
        within=SECONDS,
        what="heartbeats for more than a session",
    )
    assert all(CUT_OFF in cluster.alive(node_id) for node_id in others)
    assert fencings(cluster, CUT_OFF) == 0


def last_heard(cluster: BrokerCluster, via: int) -> int:
    """When the controller heard from the broker that is cut off, by the controller's clock in milliseconds; or -1."""
    topic = RequestTopicData(topic_name="__cluster_metadata", partitions=[RequestPartitionData(partition_index=0)])
    with cluster.connect(via) as client:
        answer = client.request(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest(topics=[topic]))
    (partition,) = answer.topics[0].partitions
    heard = {voter.replica_id: int(voter.last_fetch_timestamp) for voter in partition.current_voters}
    return heard.get(CUT_OFF, -1)


@pytest.mark.parametrize("cut", [Link.go_down, Link.hang], ids=["away", "silent"])
def test_it_finds_the_successor_of_a_controller_that_dies(
    tmp_path: Path, postgres_url: str, cut: Callable[[Link], None]
) -> None:
    with linked_cluster(tmp_path, postgres_url) as (cluster, link):
        controller = move_controller(cluster, away_from=CUT_OFF)
        (other,) = {1, 2} - {controller}
        create_on(cluster, "t", CUT_OFF, other)
        produce(cluster.brokers[CUT_OFF].bootstrap, "t", [b"before"], partitions=1)
        since = len(cluster.brokers[CUT_OFF].log_text)
        cut(link)
        cluster.brokers[controller].kill()
        goes_on(cluster, "t", [b"during"], since=since)
        link.come_back()
        wait_until(
            lambda: cluster.describe(CUT_OFF).controller_id == other, within=SECONDS, what="the metadata to be read"
        )
        produce(cluster.brokers[CUT_OFF].bootstrap, "t", [b"after"], partitions=1)
        values = consume_as_group(cluster.bootstrap, "g", "t", lambda got: len(got) == 3)
        assert values == [b"before", b"during", b"after"]
        assert cluster.leaders("t", other) == [CUT_OFF]
        assert fencings(cluster, CUT_OFF) == 0


@pytest.mark.parametrize("cut", [Link.go_down, Link.hang], ids=["away", "silent"])
def test_a_controller_that_loses_the_database_goes_on_as_a_broker(
    tmp_path: Path, postgres_url: str, cut: Callable[[Link], None]
) -> None:
    with linked_cluster(tmp_path, postgres_url) as (cluster, link):
        move_controller(cluster, to=CUT_OFF)
        create_on(cluster, "t", CUT_OFF, 1, 2)
        produce(cluster.brokers[CUT_OFF].bootstrap, "t", [b"before"], partitions=1)
        since = len(cluster.brokers[CUT_OFF].log_text)
        cut(link)
        goes_on(cluster, "t", [b"during"], since=since)
        link.come_back()
        cluster.wait_alive(1, 2, CUT_OFF)
        assert cluster.controller() != CUT_OFF
        values = consume_as_group(cluster.bootstrap, "g", "t", lambda got: len(got) == 2)
        assert values == [b"before", b"during"]
        assert fencings(cluster, CUT_OFF) == 0


def move_controller(cluster: BrokerCluster, *, to: int | None = None, away_from: int | None = None) -> int:
    """Stop controllers until another broker is it. All are alive afterwards."""
    while True:
        controller = cluster.controller()
        if controller == to or (to is None and controller != away_from):
            return controller
        cluster.brokers[controller].stop()
        cluster.controller()
        cluster.brokers[controller].start()
        cluster.wait_alive(*cluster.brokers)
