"""Three brokers with two log directories each: one that fails moves what is led in it, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.wire.messages.metadata import MetadataRequestTopic, MetadataResponsePartition
from tests.clients.two_brokers import SECONDS, BrokerCluster, all_led, produce, running_cluster
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

SETTINGS = {
    "broker.session.timeout.ms": "600000",  # no broker is fenced here
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "log.initial.task.delay.ms": "1",
    "min.insync.replicas": "2",
    "auto.leader.rebalance.enable": "false",
}
PARTITIONS = 12
VALUES = [b"%d" % number for number in range(120)]


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    with running_cluster(tmp_path, postgres_url, (1, 2, 3), SETTINGS, log_dirs=("a", "b")) as running:
        yield running


def partitions(cluster: BrokerCluster, topic: str, via: int) -> list[MetadataResponsePartition]:
    (found,) = cluster._metadata(via, [MetadataRequestTopic(name=topic)]).topics
    return sorted(found.partitions, key=lambda row: row.partition_index)


def wait_in_sync(cluster: BrokerCluster, topic: str) -> None:
    for via in cluster.running:
        wait_until(
            lambda via=via: all(len(row.isr_nodes) == 3 for row in partitions(cluster, topic, via)),  # type: ignore[misc]
            within=SECONDS,
            what=f"all replicas of {topic} to be in sync, as broker {via} sees it",
        )


def held_in(cluster: BrokerCluster, node_id: int, name: str, topic: str) -> set[int]:
    """The partitions of which this broker has a log in that directory."""
    directory = cluster.brokers[node_id].data_dir / name
    return {int(path.name.rpartition("-")[2]) for path in directory.glob(f"{topic}-*") if path.name.count("-") == 1}


def break_directory(directory: Path) -> None:
    """What was opened can still be written; no file can be created."""
    directory.rename(directory.with_name(f"{directory.name}-gone"))
    directory.touch()


def mend_directory(directory: Path) -> None:
    directory.unlink()
    directory.with_name(f"{directory.name}-gone").rename(directory)


def test_a_directory_that_fails_moves_its_leaders_only(cluster: BrokerCluster) -> None:
    cluster.create("t", partitions=PARTITIONS, replicas=3, via=1)
    wait_in_sync(cluster, "t")
    produce(cluster.bootstrap, "t", VALUES, partitions=PARTITIONS)
    victim = next(one for one in cluster.brokers if one != cluster.controller())
    other = next(one for one in cluster.brokers if one != victim)
    before = partitions(cluster, "t", other)
    led = {row.partition_index for row in before if row.leader_id == victim}
    # Logs and leaders are placed apart from each other: all that it leads may be in one of its directories.
    failing, other_one = ("b", "a") if led & held_in(cluster, victim, "b", "t") else ("a", "b")
    broken = cluster.brokers[victim].data_dir / failing
    gone, kept = held_in(cluster, victim, failing, "t"), held_in(cluster, victim, other_one, "t")
    assert len(gone) == len(kept) == PARTITIONS // 2
    led_there = led & gone
    assert led_there

    break_directory(broken)
    produce(cluster.bootstrap, "t", VALUES, partitions=PARTITIONS)  # moves the high watermarks: they are checkpointed
    wait_until(
        lambda: all(
            victim not in row.isr_nodes for row in partitions(cluster, "t", other) if row.partition_index in gone
        ),
        within=SECONDS,
        what="the replicas in the broken directory to leave the in-sync sets",
    )
    after = partitions(cluster, "t", other)
    for was, row in zip(before, after, strict=True):
        number = row.partition_index
        if number in kept:
            assert (row.leader_id, row.leader_epoch) == (was.leader_id, was.leader_epoch), (
                "it has nothing to do with it"
            )
            assert sorted(row.isr_nodes) == [1, 2, 3]
            assert row.offline_replicas == []
            continue
        assert row.offline_replicas == [victim]
        if number in led_there:
            assert row.leader_id not in (victim, -1)
            assert row.leader_epoch == was.leader_epoch + 1
        else:
            assert row.leader_id == was.leader_id
    produce(cluster.bootstrap, "t", VALUES, partitions=PARTITIONS)
    assert cluster.alive(other) == {1, 2, 3}

    # A start without it: the replicas in it are not made anew in the other one.
    cluster.brokers[victim].kill()
    cluster.brokers[victim].start()
    cluster.wait_alive(1, 2, 3)
    wait_until(
        lambda: all(
            (victim in row.isr_nodes) == (row.partition_index in kept) for row in partitions(cluster, "t", other)
        ),
        within=SECONDS,
        what="the broker to be in sync again with what is in the directory that it has",
    )
    assert held_in(cluster, victim, other_one, "t") == kept
    produce(cluster.bootstrap, "t", VALUES, partitions=PARTITIONS)

    # It is back.
    cluster.brokers[victim].kill()
    mend_directory(broken)
    cluster.brokers[victim].start()
    wait_in_sync(cluster, "t")
    assert (held_in(cluster, victim, other_one, "t"), held_in(cluster, victim, failing, "t")) == (kept, gone)


def test_a_disk_that_was_replaced_is_filled_again(cluster: BrokerCluster) -> None:
    """The replicas that were on it begin with nothing. None of them leads before it has what was committed."""
    cluster.create("t", partitions=PARTITIONS, replicas=3, via=1)
    wait_in_sync(cluster, "t")
    produce(cluster.bootstrap, "t", VALUES, partitions=PARTITIONS)
    victim = next(one for one in cluster.brokers if one != cluster.controller())
    replaced = cluster.brokers[victim].data_dir / "b"
    cluster.brokers[victim].stop()
    replaced.rename(replaced.with_name("b-old"))
    cluster.brokers[victim].start()
    wait_in_sync(cluster, "t")
    assert held_in(cluster, victim, "a", "t") | held_in(cluster, victim, "b", "t") == set(range(PARTITIONS))
    assert all_led(cluster.leaders("t", victim), PARTITIONS)


def test_a_directory_that_is_taken_out_and_put_back_again(cluster: BrokerCluster) -> None:
    """Its replicas are copied to the other one, and stay there."""
    cluster.create("t", partitions=PARTITIONS, replicas=3, via=1)
    wait_in_sync(cluster, "t")
    produce(cluster.bootstrap, "t", VALUES, partitions=PARTITIONS)
    victim = next(one for one in cluster.brokers if one != cluster.controller())
    broker = cluster.brokers[victim]
    with_both = broker.settings
    in_b = held_in(cluster, victim, "b", "t")
    broker.stop()
    broker.settings = {**with_both, "log.dirs": str(broker.data_dir / "a")}
    broker.start()
    wait_in_sync(cluster, "t")
    assert held_in(cluster, victim, "a", "t") == set(range(PARTITIONS))
    produce(cluster.bootstrap, "t", VALUES, partitions=PARTITIONS)
    broker.stop()
    broker.settings = with_both
    broker.start()
    wait_in_sync(cluster, "t")
    assert held_in(cluster, victim, "a", "t") == set(range(PARTITIONS))
    assert held_in(cluster, victim, "b", "t") == set()
    assert len([*(broker.data_dir / "b").glob("t-*-stray")]) == len(in_b)
