"""The storage for segments is away in the middle of a conversion: a sentence, nothing lost, and it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.pipeline.client import BrokersUnavailable, TieringClient
from strandline.remote.ports import RemoteStorageError
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import create, numbered, produce
from tests.crash.converting import DISKLESS, SETTINGS, is_converted, read_log, rows_left
from tests.crash.tiered_store import s3_settings
from tests.link import Link
from tests.pipeline.world import Pipeline
from tests.s3 import S3, s3, s3_link, s3_url

__all__ = ["s3", "s3_link", "s3_url"]

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def broker(tmp_path: Path, s3: S3, s3_link: Link, s3_url: str) -> Iterator[BrokerProcess]:
    storage = s3_settings(s3, s3_url, port=s3_link.port)
    with running_broker(tmp_path / "data", SETTINGS | storage) as running:
        yield running


def test_the_storage_for_segments_is_away_before_an_upload_and_before_a_commit(
    broker: BrokerProcess, s3_link: Link
) -> None:
    topic = create(AdminClient({"bootstrap.servers": broker.bootstrap}), "orders", DISKLESS)
    produce(broker, topic, numbered(0, 30))
    before = read_log(broker.bootstrap, topic)
    secrets = {name: value for name, value in broker.settings.items() if "aws." in name}
    with TieringClient(broker.bootstrap) as client:
        pipeline = Pipeline(client, (topic,), settings=secrets, claim_ms=240_000)
        pipeline.split()
        (chain,) = pipeline.begin()
        s3_link.go_down()
        with pytest.raises(RemoteStorageError) as failure:
            pipeline.build(chain)
        assert "Traceback" not in str(failure.value)
        assert read_log(broker.bootstrap, topic) == before
        s3_link.come_back()
        built = pipeline.build(chain)
        s3_link.go_down()
        with (
            TieringClient(broker.bootstrap, timeout_s=15) as hasty,
            pytest.raises(BrokersUnavailable, match="Remote storage is not available for orders-0"),
        ):
            Pipeline(hasty, claimant=pipeline.claimant).commit(chain[0].partition, built[0])
        assert read_log(broker.bootstrap, topic) == before
        s3_link.come_back()
        assert pipeline.commit(chain[0].partition, built[0]) == 30
    assert read_log(broker.bootstrap, topic) == before
    assert is_converted(broker.bootstrap, topic)
    assert rows_left(broker, "inkless_batch", "inkless_split_batch", "inkless_tiering_segment") == {}
