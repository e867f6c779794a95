"""The clusters of the benchmark: what their nodes are told, and the ports that they get."""

from __future__ import annotations

from pathlib import Path

from bench import kafka
from bench.cluster.systems import NODES, KafkaNodes
from bench.cluster.view import NO_LEADER, Shown
from bench.process import free_port
from bench.systems import ApacheKafka


def settings_of_kafka(tmp_path: Path) -> dict[int, dict[str, str]]:
    """What each of three nodes would be started with: nothing is fetched, and nothing runs."""
    libraries = tmp_path / "cache" / f"kafka-{kafka.VERSION}" / "libs"
    libraries.mkdir(parents=True)
    (libraries / "complete").touch()
    cluster = KafkaNodes(ApacheKafka(tmp_path / "cache"), 3).new_cluster(tmp_path / "data")
    found = {}
    for node_id, broker in cluster.brokers.items():
        assert isinstance(broker, kafka.KafkaBroker)
        broker.data_dir.mkdir(parents=True)
        (broker.data_dir / "meta.properties").touch()  # as if it were formatted
        broker.format()
        lines = broker.data_dir.with_name(f"{broker.data_dir.name}.properties").read_text().splitlines()
        found[node_id] = dict(line.split("=", 1) for line in lines)
        assert found[node_id]["advertised.listeners"] == f"PLAINTEXT://{broker.bootstrap}"
    return found


def test_three_nodes_of_kafka_are_one_quorum(tmp_path: Path) -> None:
    settings = settings_of_kafka(tmp_path)
    assert [*settings] == [*NODES]
    (voters,) = {one["controller.quorum.voters"] for one in settings.values()}
    addresses = dict(voter.split("@") for voter in voters.split(","))
    for node_id, one in settings.items():
        assert one["node.id"] == str(node_id)
        assert one["process.roles"] == "broker,controller"
        assert one["listeners"] == f"{one['advertised.listeners']},CONTROLLER://{addresses[str(node_id)]}"
        assert one["offsets.topic.replication.factor"] == "3"
    assert len({one["log.dirs"] for one in settings.values()}) == 3
    assert len({one["listeners"] for one in settings.values()}) == 3


def test_a_port_is_given_once_and_is_none_that_the_system_gives_to_outgoing_connections() -> None:
    ports = [free_port() for _ in range(50)]
    assert len({*ports}) == 50
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(port < first for port in ports)


def shown(*in_sync: int, leader: int = 1) -> Shown:
    return Shown(leader=leader, leader_epoch=0, replicas=(1, 2, 3), in_sync=in_sync)


def test_a_partition_is_whole_when_it_is_led_and_all_replicas_are_in_sync() -> None:
    assert shown(3, 1, 2).is_whole
    assert not shown(1, 2).is_whole
    assert not shown(1, 2, 3, leader=NO_LEADER).is_whole
    assert shown(1, 2, 3).is_led_as_preferred
    assert not shown(1, 2, 3, leader=2).is_led_as_preferred
