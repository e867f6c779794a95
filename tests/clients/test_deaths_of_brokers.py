"""Brokers of a cluster die, or only seem to. Sessions are long, and none is over but those of suspended brokers."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.registry import decode_response, encode_request
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.postgres import Postgres, postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

LONG: Mapping[str, str] = {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "600000"}

SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'strandline-session'"


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    with running_cluster(tmp_path, postgres_url, node_ids=(1, 2, 3), settings=LONG) as running:
        yield running


def fenced(cluster: BrokerCluster) -> list[tuple[int, str]]:
    """Which brokers any controller has fenced, and why."""
    logs = "".join(broker.log_text for broker in cluster.brokers.values())
    return [(int(node), why) for node, why in re.findall(r"broker (\d+) is fenced: (.*)", logs)]


def others(cluster: BrokerCluster, *node_ids: int) -> list[int]:
    return [node_id for node_id in cluster.brokers if node_id not in node_ids]


DEAD = "its process has ended"


def test_a_killed_broker_is_fenced_before_its_session_is_over_and_let_in_again_at_once(cluster: BrokerCluster) -> None:
    controller = cluster.controller()
    victim = others(cluster, controller)[0]
    cluster.brokers[victim].kill()
    cluster.wait_alive(*others(cluster, victim))
    assert fenced(cluster) == [(victim, DEAD)]
    cluster.brokers[victim].start()
    cluster.wait_alive(1, 2, 3)
    assert fenced(cluster) == [(victim, DEAD)]


def test_a_killed_controller_has_a_successor_before_its_lease_is_over(cluster: BrokerCluster) -> None:
    dead = []
    for _ in range(2):
        controller = cluster.controller()
        cluster.brokers[controller].kill()
        cluster.wait_alive(*others(cluster, controller))
        assert cluster.controller() != controller
        dead.append((controller, DEAD))
        cluster.brokers[controller].start()
        cluster.wait_alive(1, 2, 3)
    assert sorted(fenced(cluster)) == sorted(dead)


def test_a_broker_that_is_killed_and_started_again_is_let_in_at_once(cluster: BrokerCluster) -> None:
    controller = cluster.controller()
    victim = others(cluster, controller)[0]
    for _ in range(3):
        cluster.brokers[victim].kill()
        cluster.brokers[victim].start()
        cluster.wait_alive(1, 2, 3)
    assert cluster.controller() == controller


def test_a_restart_of_the_database_fences_nobody(cluster: BrokerCluster, postgres: Postgres) -> None:
    controller = cluster.controller()
    postgres._kill()
    postgres._ensure_running()
    wait_until(
        lambda: cluster.create_straight("after", via=controller) == 0, within=SECONDS, what="the database to be back"
    )
    # The looks go on, and the next death is seen: those that live were looked at as well.
    victim = others(cluster, cluster.controller())[0]
    cluster.brokers[victim].kill()
    cluster.wait_alive(*others(cluster, victim))
    assert fenced(cluster) == [(victim, DEAD)]


def test_brokers_that_lose_only_their_sessions_are_not_fenced(cluster: BrokerCluster, postgres: Postgres) -> None:
    controller = cluster.controller()
    for _ in range(3):
        for pid in [int(one) for one in re.findall(r"^\s*(\d+)\s*$", postgres.run(SESSIONS), re.MULTILINE)]:
            postgres.run(f"SELECT pg_terminate_backend({pid})")
    victim = others(cluster, controller)[0]
    cluster.brokers[victim].kill()
    cluster.wait_alive(*others(cluster, victim))
    assert fenced(cluster) == [(victim, DEAD)]
    assert cluster.controller() == controller


def test_a_suspended_broker_answers_nothing_by_what_it_knew_before(tmp_path: Path, postgres_url: str) -> None:
    with running_cluster(tmp_path, postgres_url, node_ids=(1, 2, 3)) as cluster:
        controller = cluster.controller()
        victim = others(cluster, controller)[0]
        cluster.create("t", partitions=3, via=controller)
        led = cluster.leaders("t", controller).index(victim)
        with socket.create_connection(("127.0.0.1", cluster.brokers[victim].port), timeout=SECONDS) as sock:
            assert leader_epoch(sock, led) == 0
            with cluster.brokers[victim].suspended():
                wait_until(
                    lambda: cluster.alive(controller) == set(others(cluster, victim)),
                    within=SECONDS,
                    what="the suspended broker to be fenced",
                )
                send_metadata_request(sock)
            assert received_leader_epoch(sock, led) >= 1, "it had lost the partition meanwhile, and knows it"
        assert fenced(cluster) == [(victim, "its session has expired")]
        assert "did not run for a while" in cluster.brokers[victim].log_text
        cluster.wait_alive(1, 2, 3)


def test_a_suspended_controller_has_a_successor_and_is_fenced(tmp_path: Path, postgres_url: str) -> None:
    with running_cluster(tmp_path, postgres_url, node_ids=(1, 2, 3)) as cluster:
        controller = cluster.controller()
        rest = others(cluster, controller)
        with cluster.brokers[controller].suspended():
            wait_until(
                lambda: cluster.alive(rest[0]) == set(rest), within=SECONDS, what="the suspended broker to be fenced"
            )
            assert cluster.describe(rest[0]).controller_id in rest
        cluster.wait_alive(1, 2, 3)
        assert fenced(cluster) == [(controller, "its session has expired")]


REQUEST = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
VERSION = 12


def send_metadata_request(sock: socket.socket) -> None:
    frame = encode_request(ApiKey.METADATA, VERSION, 0, None, REQUEST)
    sock.sendall(struct.pack(">i", len(frame)) + frame)


def received_leader_epoch(sock: socket.socket, partition: int) -> int:
    with sock.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4))
        _, answer = decode_response(ApiKey.METADATA, VERSION, memoryview(stream.read(size)))
    rows = answer.topics[0].partitions
    return next(int(row.leader_epoch) for row in rows if row.partition_index == partition)


def leader_epoch(sock: socket.socket, partition: int) -> int:
    """As the broker at the other end knows it."""
    send_metadata_request(sock)
    return received_leader_epoch(sock, partition)
