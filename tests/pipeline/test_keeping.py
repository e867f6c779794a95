"""What a leader does for converted partitions in the background: one that is in trouble does not hold up others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.conversion_api.values import AbortSegment
from strandline.pipeline.client import TieringClient
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, alter, create, numbered, produce, remote_logs
from tests.pipeline.hanging_storage import CLASS_NAME, hang, hung
from tests.pipeline.world import Pipeline, convert
from tests.waiting import wait_until

DISKLESS = {"diskless.enable": "true", "retention.ms": "-1"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {
        **QUICK,
        "inkless.tiering.min.segment.bytes": "1",
        "remote.log.storage.manager.class.name": CLASS_NAME,
        "remote.log.storage.manager.class.path": str(Path(__file__).parents[2]),
        "rsm.config.url": f"file://{tmp_path}/data/remote",
    }
    with running_broker(tmp_path / "data", settings) as running:
        yield running


def test_a_deletion_that_hangs_holds_up_no_other_partition(broker: BrokerProcess) -> None:
    with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin, TieringClient(broker.bootstrap) as client:
        for topic in ("hanging", "expiring", "given-up"):
            create(admin, topic, DISKLESS)
            produce(broker, topic, numbered(0, 20))
            convert(broker.bootstrap, topic)
        produce(broker, "given-up", numbered(20, 20))
        client.trigger("given-up")
        pipeline = Pipeline(client, ("given-up",))
        pipeline.split()
        ((begun,),) = pipeline.begin()
        hang(broker.data_dir, "hanging")
        alter(admin, "hanging", {"retention.ms": "1"})
        wait_until(lambda: hung(broker.data_dir), what="the deletion that hangs")

        alter(admin, "expiring", {"retention.ms": "1"})
        wait_until(lambda: not remote_logs(broker, "expiring"), what="the segment of another topic to expire")
        client.abort_segment(
            AbortSegment(claimant=pipeline.claimant, partition=begun.partition, segment_id=begun.segment.segment_id)
        )
        wait_until(lambda: len(pipeline.begin()) == 1, what="the segment that was given up to be begun again")
        assert hung(broker.data_dir) == ["hanging"]
