"""A database that has lost its last commits: what was given up in the meantime is not taken for complete."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.tiering.brokers import RequestRefused
from strandline.tiering.client import TieringClient
from strandline.tiering_api.values import AbortSegment
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, create, numbered, produce, read
from tests.tiering.world import Pipeline, convert

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
