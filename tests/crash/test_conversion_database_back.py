"""A database that has lost its last commits: neither what was given up nor what was converted counts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.conversion_api.values import AbortSegment
from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.pipeline.brokers import RequestRefused
from strandline.pipeline.client import TieringClient
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, create, numbered, produce, read, remote_logs, values
from tests.crash.converting import is_converted, read_log
from tests.files import files_below
from tests.pipeline.world import Pipeline, convert
from tests.waiting import wait_until

SETTINGS = QUICK | {"inkless.tiering.min.segment.bytes": "1", "inkless.consume.cache.max.bytes": "0"}


def databases(broker: BrokerProcess) -> list[Path]:
    found = [path for path in broker.data_dir.rglob("*") if path.is_file() and ".db" in path.name]
    assert found
    return found


def test_a_segment_that_was_given_up_is_not_committed(tmp_path: Path) -> None:
    """Its bytes are gone: the rows of its records must stay."""
    with running_broker(tmp_path / "data", SETTINGS) as broker:
        topic = create(AdminClient({"bootstrap.servers": broker.bootstrap}), "t", {"diskless.enable": "true"})
        produce(broker, topic, numbered(0, 30))
        before = read(broker, topic, 30)
        with TieringClient(broker.bootstrap) as client:
            client.trigger(topic)
            pipeline = Pipeline(client, (topic,))
            pipeline.split()
            ((begun,),) = pipeline.begin()
            (built,) = pipeline.build([begun])
        broker.stop()
        copies = {path: path.read_bytes() for path in databases(broker)}
        broker.environment = {ENVIRONMENT_VARIABLE: "tiering.abort.after_delete_started"}
        broker.start()
        with TieringClient(broker.bootstrap) as client:
            client.abort_segment(
                AbortSegment(claimant=pipeline.claimant, partition=begun.partition, segment_id=begun.segment.segment_id)
            )
        broker.wait()
        broker.environment = {}
        for path in databases(broker):
            path.unlink()
        for path, copy in copies.items():
            path.write_bytes(copy)
        broker.start()
        with TieringClient(broker.bootstrap) as client:
            pipeline.calls = client
            with pytest.raises(RequestRefused, match="was given up"):
                pipeline.commit(begun.partition, built)
            assert read(broker, topic, 30) == before
            client.abort_segment(
                AbortSegment(claimant=pipeline.claimant, partition=begun.partition, segment_id=begun.segment.segment_id)
            )
        assert len(convert(broker.bootstrap, topic).segments) == 1
        assert read(broker, topic, 30) == before


CONFIG = {"diskless.enable": "true", "local.retention.ms": "-1", "retention.ms": "-1"}


def copy_of_database(broker: BrokerProcess, copy: Path) -> None:
    """As a standby has it that is behind."""
    source = f"file:{broker.data_dir}/metadata.db?mode=ro"
    with closing(sqlite3.connect(source, uri=True)) as database, closing(sqlite3.connect(copy)) as other:
        database.backup(other)


def go_back_to(broker: BrokerProcess, copy: Path) -> None:
    broker.stop()
    for path in databases(broker):
        path.unlink()
    (broker.data_dir / "metadata.db").write_bytes(copy.read_bytes())
    broker.start()


@pytest.mark.parametrize("segment_bytes", ["200000", "15000"], ids=["one segment", "several"])
def test_segments_of_a_lost_history_are_not_read(tmp_path: Path, segment_bytes: str) -> None:
    """Their offsets were given to other records, which were acknowledged and are converted too."""
    settings = SETTINGS | {"inkless.tiering.max.segment.bytes": segment_bytes}
    with running_broker(tmp_path / "data", settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for topic in ("first", "t"):
            create(admin, topic, CONFIG)
        produce(broker, "first", numbered(0, 10))
        convert(broker.bootstrap, "first")  # __remote_log_metadata is there before the copy
        produce(broker, "t", numbered(0, 10))
        copy_of_database(broker, tmp_path / "copy.db")
        produce(broker, "t", numbered(10, 20))
        convert(broker.bootstrap, "t")
        go_back_to(broker, tmp_path / "copy.db")
        produce(broker, "t", numbered(510, 20))
        expected = [*range(10), *range(510, 530)]
        assert values(read(broker, "t", 30)) == expected
        convert(broker.bootstrap, "t")
        assert is_converted(broker.bootstrap, "t")
        for _ in range(2):
            for offset in range(30):
                assert values(read(broker, "t", 30 - offset, offset=offset)) == expected[offset:]
            broker.restart()


def test_a_segment_whose_commit_was_lost_is_committed_again(tmp_path: Path) -> None:
    """It may be the only copy: the WAL objects of its records are gone."""
    settings = SETTINGS | {
        "inkless.file.cleaner.interval.ms": "100",
        "inkless.file.cleaner.retention.period.ms": "0",
        "inkless.tiering.splitter.claim.duration.ms": "1000",
    }
    with running_broker(tmp_path / "data", settings) as broker:
        create(AdminClient({"bootstrap.servers": broker.bootstrap}), "t", CONFIG)
        produce(broker, "t", numbered(0, 30))
        before = read_log(broker.bootstrap, "t")
        with TieringClient(broker.bootstrap) as client:
            client.trigger("t")
            pipeline = Pipeline(client, ("t",), claim_ms=1000)
            pipeline.split()
            (chain,) = pipeline.begin()
            built = pipeline.build(chain)
            copy_of_database(broker, tmp_path / "copy.db")
            for one in built:
                pipeline.commit(chain[0].partition, one)
        wait_until(lambda: not files_below(broker.data_dir / "objects" / "wal"), "the WAL objects to go")
        go_back_to(broker, tmp_path / "copy.db")
        wait_until(lambda: is_converted(broker.bootstrap, "t"), "the segment to be committed")
        assert len(remote_logs(broker, "t")) == len(chain)
        assert read_log(broker.bootstrap, "t") == before
