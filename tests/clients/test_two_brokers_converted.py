"""Converted records of a diskless topic on two brokers: each serves them, whichever leads, whatever it knew before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.model import REMOTE_LOG_METADATA_TOPIC
from strandline.wire.errors import ErrorCode
from tests.clients import tiering
from tests.clients.test_two_brokers_diskless_reads import Asking, create
from tests.clients.two_brokers import BrokerCluster, running_cluster
from tests.files import files_below
from tests.pipeline.world import convert
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    """Nothing is served from memory, and objects go as soon as no row needs them."""
    shared = {
        **tiering.QUICK,
        "strandline.objects.url": f"file://{tmp_path}/objects",
        "rsm.config.url": f"file://{tmp_path}/remote",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "inkless.consume.cache.max.bytes": "0",
        "inkless.file.cleaner.interval.ms": "100",
        "inkless.file.cleaner.retention.period.ms": "0",
    }
    with running_cluster(tmp_path, postgres_url, settings=shared) as running:
        yield running


def wait_objects_gone(tmp_path: Path) -> None:
    wal = tmp_path / "objects" / "wal"
    wait_until(lambda: not files_below(wal), within=30, what="the WAL objects to go")


def wait_serves(topic: Asking, node_id: int, *values: bytes, offset: int = 0) -> None:
    wait_until(
        lambda: b"".join(_read_from(topic, node_id, offset)) == b"".join(values),
        within=30,
        what=f"{values} at broker {node_id}",
    )


def _read_from(topic: Asking, node_id: int, offset: int) -> list[bytes]:
    """As a consumer does, which waits as long as its client says."""
    found: list[bytes] = []
    while part := topic.fetch(node_id, offset + len(found), max_wait_ms=500).values:
        found += part
    return found


def test_both_brokers_serve_what_was_converted_and_deletions_reach_both(
    cluster: BrokerCluster, unique_name: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(cluster, unique_name())
    (leader,) = cluster.leaders(topic.topic, 1)
    other = 3 - leader
    topic.write(1, b"a", b"b")
    topic.write(2, b"c")
    topic.wait_values(b"a", b"b", b"c")
    convert(cluster.bootstrap, topic.topic)
    wait_objects_gone(tmp_path)
    # The other broker knows the log of before: it finds neither rows nor objects, and no client sees an error.
    served = topic.fetch(other, max_wait_ms=5000)
    assert (served.error, served.values, served.end) == (ErrorCode.NONE, [b"a", b"b", b"c"], 3)
    topic.wait_values(b"a", b"b", b"c")
    topic.write(other, b"d")
    topic.wait_values(b"a", b"b", b"c", b"d")
    convert(cluster.bootstrap, topic.topic)
    for deleting, reading, before in ((leader, other, 2), (other, leader, 3)):
        assert topic.delete(deleting, before) is ErrorCode.NONE
        for node_id in (deleting, reading):
            wait_until(
                lambda n=node_id, o=before: topic.fetch(n, o - 1).error is ErrorCode.OFFSET_OUT_OF_RANGE,  # type: ignore[misc]
                what="the deletion to arrive",
            )
            wait_serves(topic, node_id, *(b"c", b"d")[before - 2 :], offset=before)


def test_a_broker_that_was_away_or_has_no_remote_storage(
    cluster: BrokerCluster, unique_name: Callable[[], str], tmp_path: Path
) -> None:
    # Remote log metadata has one replica: the broker that stays has to be the one that leads it.
    for _ in range(10):
        topic = create(cluster, unique_name())
        (leader,) = cluster.leaders(topic.topic, 1)
        topic.write(leader, b"a", b"b")
        convert(cluster.bootstrap, topic.topic)
        if set(cluster.leaders(REMOTE_LOG_METADATA_TOPIC, leader)) == {leader}:
            break
    other = cluster.brokers[3 - leader]
    other.kill()
    topic.write(leader, b"c")
    convert(cluster.brokers[leader].bootstrap, topic.topic)
    topic.write(leader, b"d")
    other.start()
    wait_serves(topic, 3 - leader, b"a", b"b", b"c", b"d")

    other.stop()
    other.settings = {**other.settings, "remote.log.storage.system.enable": "false"}
    other.start()
    wait_serves(topic, 3 - leader, b"d", offset=3)
    assert topic.fetch(3 - leader, 0, max_wait_ms=100).error is ErrorCode.KAFKA_STORAGE_ERROR
    wait_serves(topic, leader, b"a", b"b", b"c", b"d")
