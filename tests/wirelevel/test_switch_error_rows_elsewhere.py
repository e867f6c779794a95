"""What a broker answers about a partition that becomes diskless, and whose log another broker has.

One test for each row of the design's tables about followers; Strandline has no followers, so that every other broker is
one. Where the tables and the text of the design disagree, any broker that knows the boundary takes writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from strandline.model import TopicIdPartition, TopicPartition
from strandline.remote.storage.names import partition_directory
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from tests.broker import BrokerProcess
from tests.clients import two_brokers
from tests.clients.switching import ONE_AT_A_TIME, boundaries, hold_queue, switch
from tests.clients.tiering import QUICK
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.link import Link
from tests.postgres import start_postgres
from tests.waiting import wait_until
from tests.wirelevel.asking import (
    Asked,
    ask_for_end_of_epoch,
    ask_for_offset,
    ask_to_delete,
    ask_to_fetch,
    ask_to_produce,
    client_of,
    offsets_in,
)
from tests.wirelevel.raw import batch
from tests.wirelevel.test_switch_error_rows import BEFORE, TIERED

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Two brokers; the second one's connections to the database can be cut. Partition `there` is led by the first."""

    cluster: BrokerCluster
    link: Link
    remote: Path
    there: int
    here: int

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Of the second broker."""
        with client_of(self.cluster.brokers[2]) as client:
            yield client

    @contextmanager
    def leader(self) -> Iterator[Client]:
        with client_of(self.cluster.brokers[1]) as client:
            yield client

    @contextmanager
    def nothing_copied(self) -> Iterator[None]:
        """Remote storage cannot take the partition `there`, until the block ends."""
        partition = TopicIdPartition(self.cluster.topic_id("t", 1), TopicPartition("t", self.there))
        place = self.remote / partition_directory(partition)
        place.touch()
        yield
        place.unlink()

    def switch(self) -> None:
        """Let the pending topic have its turn."""
        self.cluster.admin(1).delete_topics(["front"])["front"].result(SECONDS)
        wait_until(
            lambda: boundaries(self.cluster.brokers[1], "t")[self.there] == BEFORE,
            within=SECONDS,
            what="the boundary of the partition that the first broker leads",
        )

    def wait_known(self) -> None:
        """Until the second broker knows the boundary."""
        with self.client() as client:
            wait_until(
                lambda: ask_for_offset(client, "t", LATEST, partition=self.there).error == ErrorCode.NONE,
                within=SECONDS,
                what="broker 2 to know the boundary",
            )


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
    """The switch of topic `t` is pending, behind another one."""
    url = start_postgres().new_database()
    shared = {
        **QUICK,
        **ONE_AT_A_TIME,
        "rsm.config.url": f"file://{tmp_path}/remote",
        "strandline.objects.url": f"file://{tmp_path}/objects",
    }
    database = urlsplit(url)
    (directory,) = parse_qs(database.query)["host"]
    with Link(f"{directory}/.s.PGSQL.5432") as link, running_cluster(tmp_path, url, (1,), shared) as cluster:
        linked = f"postgresql://postgres:@127.0.0.1:{link.port}{database.path}"
        own = {**two_brokers.QUICK, **shared, "node.id": "2", "strandline.metadata.url": linked}
        cluster.brokers[2] = BrokerProcess(tmp_path / "broker-2", settings=own)
        try:
            hold_queue(cluster.brokers[1], cluster.admin(1))
            cluster.brokers[2].start()
            cluster.wait_alive(1, 2)
            cluster.create("t", partitions=2, via=1, config=TIERED)
            leaders = cluster.leaders("t", 1)
            for partition, leader in enumerate(leaders):
                with client_of(cluster.brokers[leader]) as client:
                    answer = ask_to_produce(client, "t", batch(b"a", b"b", b"c"), partition=partition)
                    assert answer == Asked(0, 0, 0)
            switch(cluster.admin(1), "t")
            yield Elsewhere(cluster, link, tmp_path / "remote", leaders.index(1), leaders.index(2))
        finally:
            cluster.brokers[2].close()


def errors_of(client: Client, partition: int, offset: int) -> dict[str, int]:
    """Of every request about a partition that a client may send to the wrong broker."""
    return {
        "produce": ask_to_produce(client, "t", batch(b"x"), partition=partition).error,
        "fetch": ask_to_fetch(client, "t", offset, partition=partition).error_code,
        "earliest": ask_for_offset(client, "t", EARLIEST, partition=partition).error,
        "latest": ask_for_offset(client, "t", LATEST, partition=partition).error,
        "by time": ask_for_offset(client, "t", 0, partition=partition).error,
        "max timestamp": ask_for_offset(client, "t", MAX_TIMESTAMP, partition=partition).error,
        "epoch": ask_for_end_of_epoch(client, "t", 0, partition=partition)[0],
        "delete": ask_to_delete(client, "t", 1, partition=partition).error,
    }


def test_rows_of_a_broker_without_the_log_before_and_after_the_boundary(elsewhere: Elsewhere) -> None:
    there = elsewhere.there
    with elsewhere.nothing_copied():
        with elsewhere.client() as client:
            # Migration pending (B0 not set), follower: NOT_LEADER_OR_FOLLOWER.
            assert set(errors_of(client, there, 0).values()) == {NOT_LEADER}
            # After B0 set, but the broker does not know it: NOT_LEADER_OR_FOLLOWER for reads; writes are repeated too.
            elsewhere.link.go_down()
            elsewhere.switch()
            found = errors_of(client, there, 0) | {"fetch at B0": errors_of(client, there, BEFORE)["fetch"]}
            assert found.pop("produce") in (NOT_LEADER, ErrorCode.REQUEST_TIMED_OUT)
            assert set(found.values()) == {NOT_LEADER}
            elsewhere.link.come_back()
        elsewhere.wait_known()
        with elsewhere.client() as client, elsewhere.leader() as leader:
            # After B0 set and known: any broker takes writes, and serves what is above B0.
            assert ask_to_produce(client, "t", batch(b"d"), partition=there) == Asked(0, BEFORE, 0)
            assert ask_to_produce(leader, "t", batch(b"e"), partition=there) == Asked(0, BEFORE + 1, 0)
            for one in (client, leader):
                row = ask_to_fetch(one, "t", BEFORE, partition=there, wait_ms=10_000)
                assert (row.error_code, offsets_in(row)[0]) == (0, BEFORE)
                assert ask_for_offset(one, "t", LATEST, partition=there) == Asked(0, BEFORE + 2)
            # Non-leader, below B0, before readiness: NOT_LEADER_OR_FOLLOWER, also for EARLIEST and searches by time.
            found = errors_of(client, there, 0)
            assert (found.pop("produce"), found.pop("latest")) == (0, 0)
            assert set(found.values()) == {NOT_LEADER}, found
            row = ask_to_fetch(leader, "t", 0, partition=there)
            assert (row.error_code, offsets_in(row)) == (0, [0, 1, 2])
    with elsewhere.client() as client:
        # The same after readiness: any broker serves what is remote.
        wait_until(
            lambda: ask_to_fetch(client, "t", 0, partition=there).error_code == ErrorCode.NONE,
            within=SECONDS,
            what="broker 2 to serve the prefix from remote storage",
        )
        assert set(errors_of(client, there, 0).values()) == {ErrorCode.NONE}


def test_rows_of_a_control_plane_that_is_away(elsewhere: Elsewhere) -> None:
    """Transient trouble is REQUEST_TIMED_OUT; the boundary that is known stays known, and the prefix is served."""
    here = elsewhere.here
    elsewhere.switch()
    wait_until(
        lambda: boundaries(elsewhere.cluster.brokers[1], "t")[here] == BEFORE, within=SECONDS, what="its boundary"
    )
    with elsewhere.client() as client:
        wait_until(
            lambda: ask_to_produce(client, "t", batch(b"d"), partition=here).error == ErrorCode.NONE,
            within=SECONDS,
            what="broker 2 to take diskless writes",
        )
        elsewhere.link.go_down()
        wait_until(
            lambda: ask_for_offset(client, "t", LATEST, partition=here).error == ErrorCode.REQUEST_TIMED_OUT,
            within=SECONDS,
            what="REQUEST_TIMED_OUT for LATEST",
        )
        row = ask_to_fetch(client, "t", 0, partition=here)
        assert (row.error_code, offsets_in(row)) == (0, [0, 1, 2])
        assert ask_for_offset(client, "t", EARLIEST, partition=here) == Asked(0, 0)
        assert ask_for_offset(client, "t", 0, partition=here)[:2] == (0, 0), "the prefix has the smallest offset"
        assert ask_for_offset(client, "t", MAX_TIMESTAMP, partition=here).error == ErrorCode.REQUEST_TIMED_OUT
        assert ask_to_delete(client, "t", 1, partition=here).error == ErrorCode.REQUEST_TIMED_OUT
        elsewhere.link.come_back()
        wait_until(
            lambda: ask_for_offset(client, "t", LATEST, partition=here).error == ErrorCode.NONE,
            within=SECONDS,
            what="the control plane",
        )
