"""A topic is to become diskless whose partitions are on another broker than the controller."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.cimpl import NewTopic

from tests.clients import tiering
from tests.clients.test_switch_refusals import ON, STATE, refusal, settings_of, validate
from tests.clients.tiering import alter, numbered, read, values
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.postgres import Postgres, postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

# A broker that does not answer stays the leader for the time of a test.
PATIENT = {"broker.session.timeout.ms": "60000"}


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    shared = {**tiering.QUICK, **PATIENT, "rsm.config.url": f"file://{tmp_path}/shared"}
    shared["strandline.objects.url"] = f"file://{tmp_path}/objects"
    with running_cluster(tmp_path, postgres_url, settings=shared) as running:
        yield running


def create(cluster: BrokerCluster, name: str, *replicas: int, **configs: str) -> str:
    """A topic with a partition on each of these brokers."""
    config = {key.replace("_", "."): value for key, value in configs.items()}
    topic = NewTopic(name, num_partitions=len(replicas), replica_assignment=[[one] for one in replicas], config=config)
    cluster.admin(1).create_topics([topic])[name].result(SECONDS)
    cluster.wait_led(name, len(replicas))
    return name


def test_a_store_that_the_brokers_do_not_share_refuses_the_switch(tmp_path: Path, postgres_url: str) -> None:
    with running_cluster(tmp_path, postgres_url) as cluster:
        topic = create(cluster, "t", 1, 2)
        error = refusal(lambda: alter(cluster.admin(1), topic, ON))
        assert error.code() == KafkaError.INVALID_CONFIG
        assert "Give every broker the same strandline.objects.url." in error.str()
        assert settings_of(cluster.admin(1), topic)["diskless.enable"] == "false"


def test_records_that_another_broker_has_are_seen_and_a_broker_that_does_not_answer_is_named(
    cluster: BrokerCluster,
) -> None:
    here = cluster.controller()
    there = 3 - here
    topic = create(cluster, "t", here, there, there)
    for node_id in (here, there):
        validate(cluster.admin(node_id), topic, ON)
    tiering.produce(cluster.brokers[here], topic, numbered(0, 1), partition=2)
    for node_id in (here, there):
        error = refusal(lambda: alter(cluster.admin(node_id), topic, ON))  # noqa: B023
        assert error.code() == KafkaError.INVALID_CONFIG
        assert "partition 2 has records, and they are not tiered." in error.str()
    cluster.brokers[there].kill()
    error = refusal(lambda: alter(cluster.admin(here), topic, ON))
    assert error.name() == "REQUEST_TIMED_OUT"
    assert f"cannot be asked of broker {there}, which leads partition 1." in error.str()
    assert settings_of(cluster.admin(here), topic)["diskless.enable"] == "false"


def test_a_switch_that_its_leader_has_not_begun_is_aborted_and_the_topic_goes_on(cluster: BrokerCluster) -> None:
    here = cluster.controller()
    there = 3 - here
    admin, leader = cluster.admin(here), cluster.brokers[there]
    topic = create(cluster, "t", there, remote_storage_enable="true")
    tiering.produce(leader, topic, numbered(0, 10))
    before = settings_of(admin, topic)
    assert before[STATE] == "TIERED_ONLY"
    with leader.suspended():
        alter(admin, topic, ON)
        assert settings_of(admin, topic) == {**before, **ON, STATE: "MIGRATING"}
        error = refusal(lambda: alter(admin, topic, {"unclean.leader.election.enable": "true"}))
        assert error.code() == KafkaError.INVALID_CONFIG
        alter(admin, topic, {"diskless.enable": "false"})
        assert settings_of(admin, topic) == before
    tiering.produce(leader, topic, numbered(10, 10))
    assert values(read(leader, topic, 20)) == list(range(20))
    assert settings_of(cluster.admin(there), topic) == before


def test_a_record_that_comes_before_the_turn_of_its_topic_is_tiered_or_stops_the_switch(
    tmp_path: Path, postgres_url: str
) -> None:
    one_by_one = {"inkless.migration.parallel.topics": "1", "inkless.migration.segment.wait.ms": "0"}
    stores = {"rsm.config.url": f"file://{tmp_path}/shared", "strandline.objects.url": f"file://{tmp_path}/objects"}
    shared = {**tiering.QUICK, **PATIENT, **one_by_one, **stores}
    with running_cluster(tmp_path, postgres_url, settings=shared) as cluster:
        here = cluster.controller()
        there = 3 - here
        admin, broker = cluster.admin(here), cluster.brokers[here]
        first = create(cluster, "first", there, remote_storage_enable="true")
        second = create(cluster, "second", here)
        with cluster.brokers[there].suspended():
            alter(admin, first, ON)
            alter(admin, second, ON)  # it is empty, and waits for the first one
            tiering.produce(broker, second, numbered(0, 10))
            assert settings_of(admin, second)[STATE] == "MIGRATING"

        def problem() -> bool:
            with urllib.request.urlopen(f"{broker.http}/topics/{second}/migration", timeout=SECONDS) as answer:
                return b"has records and remote.storage.enable is false: set it to true" in answer.read()

        wait_until(problem, "the switch to say why it does not begin")
        alter(admin, second, {"remote.storage.enable": "true"})
        wait_until(lambda: settings_of(admin, second)[STATE] == "HYBRID", "the second topic to be switched")
        tiering.produce(broker, second, numbered(10, 10))
        assert values(read(broker, second, 20)) == list(range(20))


def test_the_state_is_unknown_while_the_database_hangs(tmp_path: Path, postgres: Postgres, postgres_url: str) -> None:
    with running_cluster(tmp_path, postgres_url, (1,), settings=PATIENT) as cluster:
        admin = cluster.admin(1)
        for name, configs in (("diskless", ON), ("classic", {})):
            cluster.create(name, via=1, config=configs)
        with postgres.paused():
            assert settings_of(admin, "diskless")[STATE] == "UNKNOWN"
            assert settings_of(admin, "classic")[STATE] == "N/A"
        wait_until(lambda: settings_of(admin, "diskless")[STATE] == "DISKLESS_ONLY", "the state to be known")
