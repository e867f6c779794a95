"""Converted segments expire, topics go and come back in the middle of a conversion, and input is damaged."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from strandline.conversion_api.values import AbortSegment, BegunSegment, ClusterDescription
from strandline.pipeline.client import RequestRefused, TieringClient
from strandline.pipeline.damage import ConversionFailed, DamagedSplit, MissingObject
from strandline.pipeline.segments import metadata_of
from strandline.pipeline.stores import StoreSettings, open_stores
from strandline.remote.values import LogSegmentData
from tests.broker import BrokerProcess, running_broker
from tests.clients.switching import DISKLESS_ONLY, HYBRID, described_state
from tests.clients.tiering import (
    SECONDS,
    alter,
    create,
    earliest,
    kafka_admin,
    numbered,
    produce,
    read,
    remote_logs,
    values,
)
from tests.crash.converting import SETTINGS, findings, is_converted, objects, read_log, rows_left, wait_tidy
from tests.pipeline.world import Pipeline, convert
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

DISKLESS = {"diskless.enable": "true", "retention.ms": "-1", "local.retention.ms": "-1"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    quick = {"inkless.retention.enforcement.interval.ms": "200", "inkless.tiering.max.segment.bytes": "15000"}
    with running_broker(tmp_path / "data", SETTINGS | quick) as running:
        yield running


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap}) as opened:  # closed before the broker ends
        yield opened


def delete_before(broker: BrokerProcess, topic: str, offset: int) -> None:
    untyped = kafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    deleted = untyped.delete_records([TopicPartition(topic, 0, offset)])
    assert [one.result(SECONDS).low_watermark for one in deleted.values()] == [offset]


def wait_start(broker: BrokerProcess, admin: AdminClient, topic: str, offset: int, end: int) -> None:
    wait_until(lambda: earliest(admin, topic) == offset, f"the log to begin with offset {offset}")
    assert values(read(broker, topic, end - offset, offset=offset)) == [*range(offset, end)]


@pytest.mark.long
def test_converted_records_expire_until_nothing_is_left_and_are_converted_again(
    broker: BrokerProcess, admin: AdminClient
) -> None:
    """By size, by DeleteRecords into a segment, by age; then the topic is DISKLESS_ONLY again, and HYBRID again."""
    topic = create(admin, "orders", DISKLESS)
    produce(broker, topic, numbered(0, 50))
    assert len(convert(broker.bootstrap, topic).segments) == 5
    produce(broker, topic, numbered(50, 10))
    alter(admin, topic, {"retention.bytes": "35000"})
    wait_start(broker, admin, topic, 20, 60)
    wait_until(lambda: len(remote_logs(broker, topic)) == 3, "two segments to go")
    delete_before(broker, topic, 35)
    wait_start(broker, admin, topic, 35, 60)
    wait_until(lambda: len(remote_logs(broker, topic)) == 2, "another segment to go")
    assert described_state(admin, topic) == HYBRID
    alter(admin, topic, {"retention.bytes": "-1", "retention.ms": "1"})
    wait_until(lambda: earliest(admin, topic) == 60, "everything to expire")
    wait_until(lambda: not remote_logs(broker, topic), "all segments to go")
    wait_until(lambda: described_state(admin, topic) == DISKLESS_ONLY, "the state to say so")
    alter(admin, topic, {"retention.ms": "-1"})
    produce(broker, topic, numbered(60, 30))
    before = read_log(broker.bootstrap, topic)
    convert(broker.bootstrap, topic)
    assert described_state(admin, topic) == HYBRID
    assert is_converted(broker.bootstrap, topic)
    assert read_log(broker.bootstrap, topic) == before
    broker.restart()
    assert read_log(broker.bootstrap, topic) == before
    assert values(read(broker, topic, 30, offset=60)) == [*range(60, 90)]
    wait_tidy(broker)
    wait_until(lambda: rows_left(broker) == {}, "the rows of deleted files to go, too")


def begin_all(pipeline: Pipeline) -> list[BegunSegment]:
    pipeline.split()
    (chain,) = pipeline.begin()
    return chain


def test_a_topic_is_deleted_and_created_again_while_segments_of_it_are_uploaded(
    broker: BrokerProcess, admin: AdminClient
) -> None:
    topic = create(admin, "orders", DISKLESS)
    produce(broker, topic, numbered(0, 30))
    with TieringClient(broker.bootstrap, timeout_s=20) as client:
        client.trigger(topic)
        pipeline = Pipeline(client, (topic,))
        chain = begin_all(pipeline)
        first, *others = pipeline.build(chain)
        assert others
        pipeline.commit(chain[0].partition, first)
        admin.delete_topics([topic])[topic].result(SECONDS)
        create(admin, topic, DISKLESS)
        produce(broker, topic, numbered(100, 20))
        for one in others:
            with pytest.raises(RequestRefused, match="was deleted"):
                pipeline.commit(chain[0].partition, one)
    assert values(read(broker, topic, 20)) == [*range(100, 120)]
    convert(broker.bootstrap, topic)
    assert values(read(broker, topic, 20)) == [*range(100, 120)]
    wait_tidy(broker)
    wait_until(lambda: not objects(broker), "the objects to go")
    wait_until(lambda: rows_left(broker) == {}, "their rows to go")
    assert findings(broker) == []


@pytest.mark.parametrize("is_topic_deleted", [True, False], ids=["topic deleted", "given up"])
def test_what_a_task_uploads_too_late_goes(broker: BrokerProcess, admin: AdminClient, is_topic_deleted: bool) -> None:
    """A task that was suspended goes on when everything about its segment is over."""
    topic = create(admin, "orders", DISKLESS)
    produce(broker, topic, numbered(0, 30))
    with TieringClient(broker.bootstrap, timeout_s=20) as client:
        client.trigger(topic)
        pipeline = Pipeline(client, (topic,))
        first, *_ = chain = begin_all(pipeline)
        if is_topic_deleted:
            admin.delete_topics([topic])[topic].result(SECONDS)
        else:
            client.abort_segment(
                AbortSegment(claimant=pipeline.claimant, partition=first.partition, segment_id=first.segment.segment_id)
            )
        wait_until(lambda: rows_left(broker, "inkless_tiering_given_up") != {}, "the segments to be given up")
        wait_until(lambda: rows_left(broker, "inkless_tiering_segment") == {}, "all of them to be given up")
        assert rows_left(broker, "inkless_tiering_given_up") == {"inkless_tiering_given_up": len(chain)}
        if is_topic_deleted:  # what is uploaded while the topic is being deleted goes with it
            deleted = "deleted the remote segment"
            wait_until(lambda: broker.log_text.count(deleted) == len(chain), "the segments of the topic to be deleted")
        asyncio.run(upload(client.describe(), chain))
    assert len(remote_logs(broker, topic)) == len(chain)
    broker.stop()
    with closing(sqlite3.connect(broker.data_dir / "metadata.db")) as database, database:
        database.execute("UPDATE inkless_tiering_given_up SET due_at_ms = 0")
    broker.start()
    wait_until(lambda: not remote_logs(broker, topic), "what came late to go")
    wait_until(lambda: rows_left(broker, "inkless_tiering_given_up") == {}, "its rows to go")
    wait_tidy(broker)
    assert findings(broker) == []


async def upload(cluster: ClusterDescription, chain: Sequence[BegunSegment]) -> None:
    """Whatever bytes: those of split files may be gone."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "file"
        file.write_bytes(b"late")
        files = LogSegmentData(
            log_segment=file,
            offset_index=file,
            time_index=file,
            transaction_index=None,
            producer_snapshot_index=file,
            leader_epoch_index=b"0\n0\n",
        )
        async with open_stores(StoreSettings(cluster.store_settings, cluster.cluster_id)) as stores:
            for begun in chain:
                await stores.remote.copy_log_segment_data(metadata_of(begun.partition, begun.segment), files)


@pytest.mark.parametrize("is_missing", [True, False], ids=["missing", "damaged"])
def test_a_split_file_that_is_missing_or_damaged(broker: BrokerProcess, admin: AdminClient, is_missing: bool) -> None:
    """A sentence names it, readers do not notice, other topics go on, and a copy that is put back is converted."""
    for topic in ("lossy", "sound"):
        create(admin, topic, DISKLESS)
        produce(broker, topic, numbered(0, 10))
    before = read_log(broker.bootstrap, "lossy")
    with TieringClient(broker.bootstrap) as client:
        for topic in ("lossy", "sound"):
            client.trigger(topic)
        lossy = Pipeline(client, ("lossy",))
        (split,), _ = lossy.split()
        path = broker.data_dir / "objects" / split.file.object_key
        whole = path.read_bytes()
        if is_missing:
            path.unlink()
        else:
            path.write_bytes(whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
        ((begun,),) = lossy.begin()
        kind: type[ConversionFailed] = MissingObject if is_missing else DamagedSplit
        with pytest.raises(kind, match=split.file.object_key) as failure:
            lossy.build([begun])
        assert str(failure.value).endswith(".")
        client.abort_segment(
            AbortSegment(claimant=lossy.claimant, partition=begun.partition, segment_id=begun.segment.segment_id)
        )
        assert len(Pipeline(client, ("sound",)).run().segments) == 1
        assert read_log(broker.bootstrap, "lossy") == before, "the WAL object still has the records"
    path.parent.mkdir(parents=True, exist_ok=True)  # a directory goes with the last object in it
    path.write_bytes(whole)
    convert(broker.bootstrap, "lossy")
    assert is_converted(broker.bootstrap, "lossy")
    assert read_log(broker.bootstrap, "lossy") == before
    wait_tidy(broker)
