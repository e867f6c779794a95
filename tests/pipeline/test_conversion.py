"""The pipeline without Spark on a real broker: records stay as they are, rows and objects go, segments come."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.pipeline.client import TieringClient
from strandline.pipeline.damage import MissingObject
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, create, numbered, produce, read, remote_logs
from tests.files import files_below
from tests.pipeline.world import Pipeline, convert
from tests.waiting import wait_until

SETTINGS = QUICK | {
    "inkless.tiering.min.segment.bytes": "1",
    "inkless.file.cleaner.interval.ms": "50",
    "inkless.file.cleaner.retention.period.ms": "0",
}
DISKLESS = {"diskless.enable": "true"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("conversion") / "data", SETTINGS) as running:
        yield running


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap}) as opened:  # closed before the broker ends
        yield opened


def objects(broker: BrokerProcess, kind: str) -> list[Path]:
    return files_below(broker.data_dir / "objects" / kind)


def test_a_topic_is_converted_and_reads_as_before(broker: BrokerProcess, admin: AdminClient) -> None:
    topic = create(admin, "orders", DISKLESS, partitions=2)
    for partition in range(2):
        produce(broker, topic, numbered(0, 60), partition=partition)
    before = [read(broker, topic, 60, partition=partition) for partition in range(2)]
    done = convert(broker.bootstrap, topic)
    assert len(done.segments) == len(remote_logs(broker, topic)) == 2
    assert {partition.partition: end for partition, end in done.boundaries.items()} == {0: 60, 1: 60}
    wait_until(lambda: not objects(broker, "wal") and not objects(broker, "split"), what="the objects to go")
    broker.restart()  # nothing is in memory any more
    assert [read(broker, topic, 60, partition=partition) for partition in range(2)] == before
    produce(broker, topic, numbered(60, 20), partition=1)
    done = convert(broker.bootstrap, topic)
    assert [segment.end_offset for segment in done.segments] == [79]
    assert read(broker, topic, 80, partition=1)[:60] == before[1]
    with TieringClient(broker.bootstrap) as client:
        (status,) = client.statuses([topic])
    assert (status.pending_batches_count, status.pending_split_files_count, status.lag_bytes) == (0, 0, 0)
    assert convert(broker.bootstrap, topic).segments == ()


def test_a_missing_wal_object_does_not_hold_others_up(broker: BrokerProcess, admin: AdminClient) -> None:
    for topic in ("lossy", "sound"):
        create(admin, topic, DISKLESS)
    before = set(objects(broker, "wal"))
    produce(broker, "lossy", numbered(0, 10))
    (lost,) = set(objects(broker, "wal")) - before
    produce(broker, "sound", numbered(0, 10))
    away = broker.data_dir / "away"
    lost.rename(away)
    with TieringClient(broker.bootstrap) as client:
        for topic in ("lossy", "sound"):
            client.trigger(topic)
        pipeline = Pipeline(client, ("lossy", "sound"))
        done = pipeline.run()
        assert [type(failure) for failure in done.failures] == [MissingObject]
        assert str(lost.relative_to(broker.data_dir / "objects")) in str(done.failures[0])
        assert [partition.topic for partition in done.boundaries] == ["sound"]
        lost.parent.mkdir(parents=True, exist_ok=True)  # it goes with the last object in it
        away.rename(lost)
        assert [partition.topic for partition in pipeline.run().boundaries] == ["lossy"]


def test_a_segment_that_several_finish_at_once_is_finished_for_all_of_them(
    broker: BrokerProcess, admin: AdminClient
) -> None:
    """As when the keeper of the leader carries on what the pipeline is about to commit."""
    topic = create(admin, "finished-by-many", DISKLESS, partitions=4)
    for partition in range(4):
        produce(broker, topic, numbered(0, 20), partition=partition)
    with TieringClient(broker.bootstrap) as client:
        client.trigger(topic)
        pipeline = Pipeline(client, (topic,), settings={})
        pipeline.split()
        chains = pipeline.begin()
        assert len(chains) == 4
        with ThreadPoolExecutor(8) as pool:
            for chain in chains:
                (built,) = pipeline.build(chain)
                answers = [pool.submit(pipeline.commit, chain[0].partition, built) for _ in range(8)]
                assert [answer.result() for answer in answers] == [20] * 8
    assert len(remote_logs(broker, topic)) == 4
