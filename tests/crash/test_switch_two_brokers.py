"""Two brokers on one PostgreSQL database: leaders die, hang and are taken for dead in the middle of a switch, while the
other broker is restarted, takes writes, and sees the topic grow or go."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from confluent_kafka.admin import AdminClient

from strandline.crash import ENVIRONMENT_VARIABLE
from tests.clients.tiering import create, kafka_admin
from tests.clients.two_brokers import BrokerCluster, running_cluster
from tests.crash.switching import (
    HISTORY,
    SETTINGS,
    TOPIC,
    assert_one_log,
    boundaries,
    partitions_of,
    request_switch,
    stop_all,
    wait_stopped,
    wait_switched,
)
from tests.crash.test_diskless_stores_away import PARTITIONS, Wanderer
from tests.crash.writers import Writer, read_all, wait_for_more
from tests.postgres import Postgres, postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

pytestmark = pytest.mark.timeout(240)

SIGKILLED = -9
SECONDS = 60.0


class Nomad(Wanderer):
    """A producer that sends each batch to any broker, whether or not that one runs and knows the boundary."""

    def _try(self, partition: int, values: list[str]) -> int | None:
        try:
            return super()._try(partition, values)
        except OSError:
            return None


@contextmanager
def cluster_with(
    directory: Path, url: str, places: dict[int, str], *, is_loaded: bool = True
) -> Iterator[tuple[BrokerCluster, list[Writer]]]:
    """Two brokers, each of which leads partitions of a topic; one of them dies or stops at a place of the switch."""
    shared = {
        **SETTINGS,
        "strandline.objects.url": f"file://{directory}/objects",
        "rsm.config.url": f"file://{directory}/remote",
    }
    with running_cluster(directory, url, settings=shared) as cluster:
        for node_id, place in places.items():
            broker = cluster.brokers[node_id]
            broker.stop()
            broker.environment = {ENVIRONMENT_VARIABLE: place}
            broker.start()
        cluster.wait_alive(1, 2)
        cluster.create(TOPIC, partitions=PARTITIONS, via=1, config=HISTORY)
        assert set(cluster.leaders(TOPIC, 1)) == {1, 2}
        writers: list[Writer] = [Writer(cluster.bootstrap, TOPIC, "writer-0", PARTITIONS, pause=0.002)]
        for number in range(2):
            nomad = Nomad(cluster.bootstrap, TOPIC, f"nomad-{number}", PARTITIONS)
            nomad.ports = tuple(broker.port for broker in cluster.brokers.values())
            writers.append(nomad)
        writers = writers if is_loaded else writers[:1]
        try:
            for writer in writers:
                writer.start()
            wait_for_more(writers, 200)
            if not is_loaded:
                stop_all(writers)
            yield cluster, writers
        finally:
            for broker in cluster.brokers.values():
                if broker.process is not None:
                    broker.process.send_signal(signal.SIGCONT)
                if not broker.is_running:
                    broker.environment = {}
                    broker.start()
            if is_loaded:
                stop_all(writers)


def check(cluster: BrokerCluster, writers: list[Writer]) -> None:
    """Both brokers tell the same boundaries, and nothing was lost, doubled or moved."""
    stop_all(writers)
    assert boundaries(cluster.brokers[1]) == boundaries(cluster.brokers[2])
    assert_one_log(writers, read_all(cluster.bootstrap, TOPIC, PARTITIONS), PARTITIONS)
    for broker in cluster.brokers.values():
        assert "Traceback" not in broker.log_text


def no_log_begins_at_0(postgres: Postgres, url: str, topic: str = TOPIC) -> bool:
    name = urlsplit(url).path.removeprefix("/")
    wrong = f"SELECT count(*) FROM inkless_log WHERE topic_name = '{topic}' AND diskless_log_start_offset = 0"
    return "\n     0\n" in postgres.run(f"\\c {name}\n{wrong};\n")


@pytest.mark.parametrize(
    "place",
    [
        "switch.after_flush",
        "controlplane.migration.before_commit",
    ],
)
def test_a_leader_dies_while_the_other_broker_starts(
    tmp_path: Path, postgres: Postgres, postgres_url: str, place: str
) -> None:
    """The other broker knows neither a boundary nor a log when it starts, and must not begin the partition at 0."""
    with cluster_with(tmp_path, postgres_url, {2: place}) as (cluster, writers):
        request_switch(cluster.brokers[1])
        dying, other = cluster.brokers[2], cluster.brokers[1]
        assert dying.wait() == SIGKILLED
        other.restart()
        assert no_log_begins_at_0(postgres, postgres_url)
        dying.environment = {}
        dying.start()
        wait_switched(other)
        assert no_log_begins_at_0(postgres, postgres_url)
        wait_for_more(writers, 200)
        check(cluster, writers)


def test_a_leader_that_was_suspended_past_its_session_and_its_lease_sets_no_second_boundary(
    tmp_path: Path, postgres: Postgres, postgres_url: str
) -> None:
    """Between its seal and its boundary. Meanwhile partitions are added: they are diskless from the beginning, and the
    others keep their records (lesson 7)."""
    with cluster_with(tmp_path, postgres_url, {1: "stop@switch.after_flush"}) as (cluster, writers):
        wait_until(lambda: cluster.controller() in (1, 2), what="a controller")
        suspended, other = cluster.brokers[1], cluster.brokers[2]
        led = [number for number, leader in enumerate(cluster.leaders(TOPIC, 2)) if leader == 1]
        request_switch(other)
        wait_stopped(suspended)
        wait_until(
            lambda: all(p["b0"] >= 0 for p in partitions_of(other) if p["partition"] not in led),
            within=SECONDS,
            what="the boundaries of the broker that runs",
        )
        wait_until(lambda: cluster.alive(2) == {2}, within=SECONDS, what="the session to end")
        wait_until(lambda: cluster.describe(2).controller_id == 2, within=SECONDS, what="the lease to end")
        # Not one who knew the suspended broker as the controller: he would ask that one.
        add_partitions(AdminClient({"bootstrap.servers": other.bootstrap}), TOPIC, PARTITIONS + 1)
        assert all(p["b0"] == -1 for p in partitions_of(other) if p["partition"] in led)
        assert suspended.process is not None
        suspended.process.send_signal(signal.SIGCONT)
        wait_switched(other)
        found = boundaries(other)
        assert min(found[:PARTITIONS]) > 0
        assert found[PARTITIONS] == 0
        wait_for_more(writers, 200)
        check(cluster, writers)


def add_partitions(admin: AdminClient, topic: str, total: int) -> None:
    untyped: Any = admin
    untyped.create_partitions([kafka_admin.NewPartitions(topic, total)])[topic].result(SECONDS)


def test_a_topic_is_deleted_and_created_again_while_it_is_switched(tmp_path: Path, postgres_url: str) -> None:
    """The leader of the old topic wakes up with a boundary for it: the new one has nothing to do with that."""
    places = {2: "stop@switch.after_flush"}
    with cluster_with(tmp_path, postgres_url, places, is_loaded=False) as (cluster, _):
        suspended, other = cluster.brokers[2], cluster.brokers[1]
        request_switch(other)
        wait_stopped(suspended)
        untyped: Any = cluster.admin(1)
        untyped.delete_topics([TOPIC])[TOPIC].result(SECONDS)
        wait_until(lambda: TOPIC not in cluster.topics(1), within=SECONDS, what="the topic to go")
        create(cluster.admin(1), TOPIC, HISTORY, partitions=PARTITIONS)
        assert suspended.process is not None
        suspended.process.send_signal(signal.SIGCONT)
        cluster.wait_alive(1, 2)
        cluster.wait_led(TOPIC, PARTITIONS)
        assert partitions_of(other) == [], "the new topic is a classic one"
        fresh: list[Writer] = [Writer(cluster.bootstrap, TOPIC, "fresh", PARTITIONS, pause=0.002)]
        fresh[0].start()
        try:
            wait_for_more(fresh, 100)
            request_switch(other)
            assert min(wait_switched(other)) > 0
            wait_for_more(fresh, 100)
        finally:
            stop_all(fresh)
        check(cluster, fresh)
