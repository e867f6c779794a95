"""A pipeline that uploads segments where the brokers do not find them: nothing is converted, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.conversion_api.values import AbortSegment
from strandline.objects.marker import REMOTE_STORE_ID_KEY
from strandline.pipeline.client import RequestRefused, TieringClient
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, create, numbered, produce, read, remote_logs
from tests.pipeline.world import Pipeline, convert
from tests.waiting import wait_until

COUNT = 20
SETTINGS = QUICK | {
    "inkless.tiering.min.segment.bytes": "1",
    "inkless.file.cleaner.interval.ms": "50",
    "inkless.file.cleaner.retention.period.ms": "0",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path / "data", SETTINGS) as running:
        with AdminClient({"bootstrap.servers": running.bootstrap}) as admin:
            create(admin, "t", {"diskless.enable": "true"})
        produce(running, "t", numbered(0, COUNT))
        yield running


def test_a_segment_that_the_leader_does_not_find_is_not_committed(broker: BrokerProcess, tmp_path: Path) -> None:
    """Its rows and WAL objects would be deleted."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / REMOTE_STORE_ID_KEY).write_text('{"store_id": "another"}')
    with TieringClient(broker.bootstrap) as client:
        client.trigger("t")
        pipeline = Pipeline(client, ("t",), settings={"rsm.config.url": f"file://{elsewhere}"})
        pipeline.split()
        ((begun,),) = pipeline.begin()
        (built,) = pipeline.build([begun])
        with pytest.raises(RequestRefused) as refused:
            pipeline.commit(begun.partition, built)
        gone = AbortSegment(claimant=pipeline.claimant, partition=begun.partition, segment_id=built.segment_id)
        client.abort_segment(gone)
    for word in ("t-0", "offsets 0 to 19", f"file://{broker.data_dir}/remote", "rsm.config.url"):
        assert word in str(refused.value)
    broker.restart()  # nothing is in memory any more
    before = read(broker, "t", COUNT)
    assert len(before) == COUNT
    wait_until(lambda: convert(broker.bootstrap, "t").segments, what="the segment to be built again")
    assert len(remote_logs(broker, "t")) == 1
    assert read(broker, "t", COUNT) == before
