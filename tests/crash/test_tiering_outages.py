"""Leaders and databases that are away in the middle of a conversion: nothing is lost, and the next run finishes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from strandline.conversion_api.values import BegunSegment
from strandline.pipeline.client import BrokersUnavailable, RequestRefused, TieringClient
from tests.clients.test_two_brokers_diskless_reads import create
from tests.clients.two_brokers import BrokerCluster, running_cluster
from tests.crash.converting import SETTINGS, is_converted, read_log
from tests.crash.test_database_states import READ_ONLY, STOPPED, Database
from tests.pipeline.world import Pipeline, convert
from tests.postgres import Postgres, postgres
from tests.waiting import wait_until

__all__ = ["postgres"]

pytestmark = pytest.mark.timeout(240)

VALUES = [b"%d" % number * 300 for number in range(6)]


@pytest.fixture
def database(postgres: Postgres) -> Database:
    return Database(postgres)


@pytest.fixture
def cluster(tmp_path: Path, database: Database) -> Iterator[BrokerCluster]:
    shared = {
        **SETTINGS,
        "strandline.objects.url": f"file://{tmp_path}/objects",
        "rsm.config.url": f"file://{tmp_path}/remote",
        "inkless.tiering.max.segment.bytes": "1000",
    }
    with running_cluster(tmp_path, database.url, settings=shared) as running:
        yield running


def begun(pipeline: Pipeline) -> list[BegunSegment]:
    """Everything is split, and the segments of the only partition are announced."""
    pipeline.split()
    (chain,) = pipeline.begin()
    assert len(chain) >= 2
    return chain


def finish(cluster: BrokerCluster, topic: str, before: bytes) -> None:
    def is_done() -> bool:
        convert(cluster.bootstrap, topic)
        return is_converted(cluster.bootstrap, topic)

    wait_until(is_done, within=60, step=0.5, what="the conversion to finish")
    for broker in cluster.brokers.values():
        assert read_log(broker.bootstrap, topic) == before


def test_the_leader_is_away_between_begin_and_commit(cluster: BrokerCluster) -> None:
    """Killed and started again: it leads in another epoch, and commits what was begun in the one before. Suspended for
    longer than its session: the same."""
    asking = create(cluster, "orders")
    (leader,) = cluster.leaders("orders", 1)
    asking.write(leader, *VALUES)
    asking.write(3 - leader, *VALUES)
    before = read_log(cluster.brokers[1].bootstrap, "orders")
    with TieringClient(cluster.brokers[3 - leader].bootstrap) as client:
        client.trigger("orders")
        pipeline = Pipeline(client, ("orders",))
        chain = begun(pipeline)
        built = pipeline.build(chain)
        cluster.brokers[leader].kill()
        with ThreadPoolExecutor(1) as pool:
            committing = pool.submit(pipeline.commit, chain[0].partition, built[0])
            wait_until(lambda: cluster.alive(3 - leader) == {3 - leader}, within=30, what="the leader to be missed")
            cluster.brokers[leader].start()
            assert committing.result(60) == built[0].end_offset + 1
        with cluster.brokers[leader].suspended(), ThreadPoolExecutor(1) as pool:
            committing = pool.submit(pipeline.commit, chain[0].partition, built[1])
            wait_until(lambda: cluster.alive(3 - leader) == {3 - leader}, within=30, what="the leader to be missed")
            os.kill(cluster.brokers[leader].pid, signal.SIGCONT)
            assert committing.result(60) == built[1].end_offset + 1
        for one in built[2:]:
            pipeline.commit(chain[0].partition, one)
        assert read_log(cluster.brokers[3 - leader].bootstrap, "orders") == before
    finish(cluster, "orders", before)


def test_a_database_that_is_read_only_or_away_is_a_sentence_and_the_next_run_finishes(
    cluster: BrokerCluster, database: Database
) -> None:
    asking = create(cluster, "orders")
    asking.write(1, *VALUES)
    before = read_log(cluster.brokers[1].bootstrap, "orders")
    with TieringClient(cluster.bootstrap, timeout_s=60) as client:
        client.trigger("orders")
        pipeline = Pipeline(client, ("orders",))
        chain = begun(pipeline)
        built = pipeline.build(chain)
        with TieringClient(cluster.bootstrap, timeout_s=2) as impatient:
            for number, state in enumerate((READ_ONLY, STOPPED)):
                state.begin(database)
                try:
                    pipeline.calls = impatient
                    with pytest.raises((BrokersUnavailable, RequestRefused), match=r"\.$") as failure:
                        pipeline.commit(chain[0].partition, built[number])
                    assert failure.type is BrokersUnavailable, str(failure.value)
                finally:
                    state.end(database)
                pipeline.calls = client
                assert pipeline.commit(chain[0].partition, built[number]) == built[number].end_offset + 1
                assert read_log(cluster.brokers[1].bootstrap, "orders") == before
        for one in built[2:]:
            pipeline.commit(chain[0].partition, one)
    finish(cluster, "orders", before)


def test_two_claimants_at_once_make_each_segment_once(cluster: BrokerCluster, tmp_path: Path) -> None:
    asking = create(cluster, "orders")
    for node_id in (1, 2):
        asking.write(node_id, *VALUES)
    before = read_log(cluster.brokers[1].bootstrap, "orders")

    def run(bootstrap: str) -> int:
        with TieringClient(bootstrap) as client:
            try:
                return len(Pipeline(client, ("orders",)).run().segments)
            except RequestRefused:
                return 0  # the other one is at work on the partition

    with TieringClient(cluster.bootstrap) as client:
        client.trigger("orders")
    with ThreadPoolExecutor(2) as pool:
        made = sum(pool.map(run, [broker.bootstrap for broker in cluster.brokers.values()]))
    assert made
    finish(cluster, "orders", before)
    logs = sorted((tmp_path / "remote").rglob("orders-*/*.log"))
    assert sum(path.stat().st_size for path in logs) == len(before)
