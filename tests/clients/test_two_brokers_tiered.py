"""Tiered topics of two brokers: one storage for segments, and a description of which each broker leads a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.model import REMOTE_LOG_METADATA_TOPIC
from tests.broker import BrokerProcess
from tests.clients import tiering
from tests.clients.tiering import TIERED, numbered, read, remote_files, values, wait_tiered
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

PARTITIONS = 4


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    shared = {**tiering.QUICK, "rsm.config.url": f"file://{tmp_path}/broker-1/remote"}
    with running_cluster(tmp_path, postgres_url, settings=shared) as running:
        yield running


@pytest.fixture
def tiered(cluster: BrokerCluster, unique_name: Callable[[], str]) -> str:
    """A topic with partitions on both brokers, all of which have left the disks but for the active segments."""
    topic = unique_name()
    cluster.create(topic, partitions=PARTITIONS, via=1, config=TIERED)
    leaders = cluster.leaders(topic, 1)
    assert set(leaders) == {1, 2}
    for partition, leader in enumerate(leaders):
        tiering.produce(cluster.brokers[1], topic, numbered(1000 * partition, 60), partition=partition)
        wait_tiered(cluster.brokers[leader], topic, partition)
    return topic


def test_partitions_of_both_brokers_are_tiered_and_read(cluster: BrokerCluster, tiered: str) -> None:
    assert set(cluster.leaders(REMOTE_LOG_METADATA_TOPIC, 1)) == {1, 2}
    for partition in range(PARTITIONS):
        found = read(cluster.brokers[2], tiered, 60, partition=partition)
        assert values(found) == list(range(1000 * partition, 1000 * partition + 60))


def test_a_deleted_topic_leaves_nothing_in_the_storage_that_they_share(cluster: BrokerCluster, tiered: str) -> None:
    assert remote_files(cluster.brokers[1], tiered)
    cluster.admin(2).delete_topics([tiered])[tiered].result(SECONDS)
    wait_until(lambda: not remote_files(cluster.brokers[1], tiered), "the storage to have nothing of the topic")


def test_a_topic_deleted_while_a_leader_is_away_leaves_nothing_either(cluster: BrokerCluster, tiered: str) -> None:
    away = next(node_id for node_id in (1, 2) if node_id != cluster.controller())
    cluster.brokers[away].kill()
    there = 3 - away
    cluster.admin(there).delete_topics([tiered])[tiered].result(SECONDS)
    cluster.brokers[away].start()
    wait_until(lambda: not remote_files(cluster.brokers[1], tiered), "the storage to have nothing of the topic")


def test_a_broker_that_was_not_told_where_the_segments_are_does_not_start_beside_others(
    tmp_path: Path, postgres_url: str
) -> None:
    settings = {
        "node.id": "2",
        "strandline.metadata.url": postgres_url,
        "remote.log.storage.system.enable": "true",
    }
    with running_cluster(tmp_path, postgres_url, (1,)):
        second = BrokerProcess(tmp_path / "broker-2", settings=settings)
        second.spawn()
        assert second.wait() != 0
    assert "Give every broker the same rsm.config.url." in second.log_text
