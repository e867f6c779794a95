"""The broker that has the log of a switched partition is killed: another one serves what remote storage has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from strandline.wire.errors import ErrorCode
from tests.clients import tiering
from tests.clients.switching import HYBRID, status, wait_state
from tests.clients.test_two_brokers_diskless_reads import Asking
from tests.clients.tiering import TIERED, alter, earliest, kafka_admin, numbered, offset_of, produce, read, values
from tests.clients.transactions import transactional_producer
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.moments import T0
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    shared = {
        **tiering.QUICK,
        "rsm.config.url": f"file://{tmp_path}/shared",
        "strandline.objects.url": f"file://{tmp_path}/objects",
    }
    with running_cluster(tmp_path, postgres_url, settings=shared) as running:
        yield running


def test_a_prefix_in_remote_storage_is_served_by_the_others_while_its_broker_is_away(cluster: BrokerCluster) -> None:
    stays = cluster.controller()
    owner = 3 - stays
    topic = NewTopic("t", num_partitions=1, replica_assignment=[[owner]], config=dict(TIERED))
    cluster.admin(stays).create_topics([topic])["t"].result(SECONDS)
    cluster.wait_led("t", 1)
    there, here = cluster.brokers[owner], cluster.brokers[stays]
    produce(there, "t", numbered(0, 120, start_ms=T0))
    aborted = transactional_producer(cluster.bootstrap, "aborted")
    aborted.begin_transaction()
    aborted.produce("t", b"never", partition=0)
    aborted.flush()
    aborted.abort_transaction()
    alter(cluster.admin(stays), "t", {"diskless.enable": "true"})
    wait_state(there, "t", HYBRID)
    (b0,) = [partition["b0"] for partition in status(there, "t")["partitions"]]
    assert b0 == 122, "120 records, one that was aborted, and its marker"
    produce(here, "t", numbered(120, 20))

    asking = Asking(cluster, "t")
    wait_until(lambda: asking.fetch(stays).values, within=SECONDS, what="the other broker to know the prefix")
    there.kill()
    wait_until(lambda: cluster.leaders("t", stays) == [stays], within=SECONDS, what="a stand-in")
    produce(here, "t", numbered(140, 20))
    assert values(read(here, "t", 160, isolation="read_committed")) == list(range(160))
    admin = cluster.admin(stays)
    assert earliest(admin, "t") == 0
    assert offset_of(admin, "t", kafka_admin.OffsetSpec.for_timestamp(T0 + 70)) == 70
    assert offset_of(admin, "t", kafka_admin.OffsetSpec.max_timestamp()) >= b0

    there.start()
    cluster.wait_alive(owner, stays)
    for node_id in (owner, stays):
        wait_until(lambda n=node_id: cluster.leaders("t", n) == [owner], within=SECONDS, what="the owner to lead")  # type: ignore[misc]
    produce(there, "t", numbered(160, 20))
    assert values(read(there, "t", 180, isolation="read_committed")) == list(range(180))
    for node_id in (owner, stays):
        wait_until(lambda n=node_id: asking.fetch(n).error is ErrorCode.NONE, within=SECONDS, what="the prefix")  # type: ignore[misc]
        wait_until(lambda n=node_id: asking.fetch(n).end == 182, within=SECONDS, what="the last records to be known")  # type: ignore[misc]
    assert asking.read(owner).data == asking.read(stays).data
    assert status(there, "t")["partitions"][0]["b0"] == b0
