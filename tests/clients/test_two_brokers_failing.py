"""Clusters whose brokers are killed, paused, restarted and stopped, with real processes and clients."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from strandline.wire.errors import ErrorCode
from tests.broker import BrokerProcess
from tests.clients.two_brokers import QUICK, SECONDS, BrokerCluster, consume_as_group, produce, running_cluster
from tests.postgres import Postgres, postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    with running_cluster(tmp_path, postgres_url) as running:
        yield running


def test_a_killed_controller_is_replaced_and_joins_again(cluster: BrokerCluster) -> None:
    controller = cluster.controller()
    survivor = 3 - controller
    cluster.create("before", partitions=4, via=survivor)
    values = [f"{number}".encode() for number in range(40)]
    produce(cluster.bootstrap, "before", values, partitions=4)

    cluster.brokers[controller].kill()
    # A request that arrives while there is no controller waits for the next one. Until the dead broker's session is
    # over, new partitions may be given to it; and what it led has no leader afterwards.
    assert cluster.create_straight("between", partitions=2, via=survivor) is ErrorCode.NONE
    assert cluster.controller() == survivor
    cluster.wait_alive(survivor)
    assert set(cluster.leaders("before", survivor)) == {survivor, -1}
    cluster.create("during", partitions=4, via=survivor)
    assert set(cluster.leaders("during", survivor)) == {survivor}
    produce(cluster.brokers[survivor].bootstrap, "during", [b"x"], partitions=1)

    cluster.brokers[controller].start()
    cluster.wait_alive(1, 2)
    assert cluster.controller() == survivor
    for topic, partitions in (("before", 4), ("between", 2)):
        cluster.wait_led(topic, partitions)  # they come back with their broker
    received = consume_as_group(cluster.bootstrap, "all", "before", lambda got: len(got) == len(values))
    assert sorted(received) == sorted(values)
    assert cluster.create_straight("after", partitions=2, via=controller) is ErrorCode.NONE


def test_a_killed_broker_is_fenced_and_joins_again(cluster: BrokerCluster) -> None:
    controller = cluster.controller()
    victim = 3 - controller
    cluster.create("t", partitions=2, via=victim)
    produce(cluster.bootstrap, "t", [b"0", b"1"], partitions=2)
    cluster.brokers[victim].kill()
    cluster.wait_alive(controller)
    assert set(cluster.leaders("t", controller)) == {controller, -1}
    cluster.brokers[victim].start()
    cluster.wait_alive(1, 2)
    cluster.wait_led("t", 2)
    assert sorted(consume_as_group(cluster.bootstrap, "g", "t", lambda got: len(got) == 2)) == [b"0", b"1"]


def test_a_controller_that_was_paused_finds_itself_replaced(cluster: BrokerCluster) -> None:
    controller = cluster.controller()
    other = 3 - controller
    cluster.create("t", partitions=2, via=other)
    pid = cluster.brokers[controller].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: cluster.alive(other) == {other}, within=SECONDS, what="the paused broker to be fenced")
        assert cluster.describe(other).controller_id == other
    finally:
        os.kill(pid, signal.SIGCONT)
    assert cluster.create_straight("u", partitions=2, via=controller) is ErrorCode.NONE
    cluster.wait_alive(1, 2)
    assert cluster.controller() == other
    cluster.wait_led("t", 2)
    produce(cluster.bootstrap, "t", [b"0", b"1"], partitions=2)


@pytest.mark.parametrize("who", ["controller first", "controller last"])
def test_brokers_stop_in_good_order_one_after_the_other(cluster: BrokerCluster, who: str) -> None:
    controller = cluster.controller()
    order = [controller, 3 - controller] if who == "controller first" else [3 - controller, controller]
    cluster.create("t", partitions=2, via=1)
    produce(cluster.bootstrap, "t", [b"0", b"1"], partitions=2)
    assert cluster.brokers[order[0]].stop() == 0
    cluster.wait_alive(order[1])
    assert cluster.create_straight("u", partitions=2, via=order[1]) is ErrorCode.NONE
    assert cluster.controller() == order[1]
    assert cluster.brokers[order[1]].stop() == 0
    for node_id in order:
        assert "did not finish the controlled shutdown" not in cluster.brokers[node_id].log_text
        assert "Traceback" not in cluster.brokers[node_id].log_text
    for node_id in order:
        cluster.brokers[node_id].start()
    cluster.wait_alive(1, 2)
    assert sorted(consume_as_group(cluster.bootstrap, "g", "t", lambda got: len(got) == 2)) == [b"0", b"1"]


def test_brokers_that_start_and_stop_at_the_same_time(tmp_path: Path, postgres_url: str) -> None:
    with running_cluster(tmp_path, postgres_url, node_ids=()) as cluster:
        for node_id in (1, 2, 3):
            settings = {**QUICK, "node.id": str(node_id), "strandline.metadata.url": postgres_url}
            cluster.brokers[node_id] = BrokerProcess(tmp_path / f"broker-{node_id}", settings=settings)
        try:
            for round_number in range(2):
                for broker in cluster.brokers.values():
                    broker.spawn()
                for broker in cluster.brokers.values():
                    wait_until(broker._accepts, within=SECONDS, what="the broker to serve")
                cluster.wait_alive(1, 2, 3)
                assert len({cluster.describe(node_id).cluster_id for node_id in (1, 2, 3)}) == 1
                cluster.create(f"t{round_number}", partitions=6, via=2)
                assert set(cluster.leaders(f"t{round_number}", 3)) == {1, 2, 3}
                for broker in cluster.brokers.values():
                    assert broker.process is not None
                    broker.process.send_signal(signal.SIGTERM)
                for broker in cluster.brokers.values():
                    assert broker.wait() == 0
                    assert "Traceback" not in broker.log_text
        finally:
            for broker in cluster.brokers.values():
                broker.close()


def test_three_brokers_survive_the_death_of_two_controllers(tmp_path: Path, postgres_url: str) -> None:
    with running_cluster(tmp_path, postgres_url, node_ids=(1, 2, 3)) as cluster:
        cluster.create("t", partitions=6, via=3)
        produce(cluster.bootstrap, "t", [b"%d" % number for number in range(60)], partitions=6)
        dead = []
        for _ in range(2):
            dead.append(cluster.controller())
            cluster.brokers[dead[-1]].kill()
            cluster.wait_alive(*cluster.running)
            assert cluster.controller() in cluster.running
        (last,) = cluster.running
        assert cluster.create_straight("u", partitions=2, via=last) is ErrorCode.NONE
        for node_id in dead:
            cluster.brokers[node_id].start()
        cluster.wait_alive(1, 2, 3)
        assert cluster.controller() == last
        received = consume_as_group(cluster.bootstrap, "g", "t", lambda got: len(got) == 60)
        assert len(set(received)) == 60
        cluster.admin(dead[0]).create_topics([NewTopic("v", 3, 1)])["v"].result(SECONDS)


def test_a_second_process_with_the_same_id_is_refused(
    cluster: BrokerCluster, tmp_path: Path, postgres: Postgres
) -> None:
    twin = BrokerProcess(tmp_path / "twin", settings=cluster.brokers[2].settings)
    try:
        twin.spawn()
        assert twin.wait(within=SECONDS) != 0
        assert "node.id 2" in twin.log_text
    finally:
        twin.close()
    assert cluster.alive(1) == {1, 2}
